"""What is around the items of a set as they are put to a model: examples, a chat."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from probelight.io.errors import UsageError
from probelight.io.package import shipped_path
from probelight.models.registry import ModelSettings
from probelight.probes.prompts import Chat, Prompts, PromptSettings, PromptSpec, Templates
from probelight.probes.record import Record, Setup
from probelight.probes.source import ProbeData, load_probe

if TYPE_CHECKING:
    from probelight.models.scorer import Question, Scorer


DEFAULT_PROMPT = PromptSettings()
TRAIN = "train"


def prompt_spec(shots: int, chat: Chat, prompt: PromptSettings) -> PromptSpec:
    """Return what of the settings decides numbers: no more than matters."""
    templates = Templates.read(shipped_path(prompt.file))
    chat_texts: dict[str, Any] = {}
    if chat != "never":
        chat_texts = {"system": prompt.system, "begin": prompt.begin}
    spec = PromptSpec(
        templates=templates,
        shots=shots,
        chat=chat,
        seed=prompt.seed if shots else 0,
        thinking=prompt.thinking if chat != "never" else DEFAULT_PROMPT.thinking,
        **chat_texts,
    )
    has_default_texts = templates == Templates.read(shipped_path(DEFAULT_PROMPT.file))
    if replace(prompt, file=DEFAULT_PROMPT.file) == DEFAULT_PROMPT and has_default_texts:
        return spec
    texts: dict[str, Any] = {"shots": 0, "chat": "", **chat_texts}
    texts |= {"seed": prompt.seed} if shots else {}
    texts |= {} if spec.thinking == DEFAULT_PROMPT.thinking else {"thinking": spec.thinking}
    texts["templates"] = {name: text for name, text in asdict(templates).items() if text}
    checksum = sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()
    return replace(spec, checksum=checksum[:6])


def examples_of(data: ProbeData, split: str, mirror: str | None) -> ProbeData:
    """Return the train split of a set's probe, from which examples are drawn."""
    config = data.config
    if not split or TRAIN not in config.splits:
        raise UsageError(f"--shots: {config.name} has no train split to take examples from")
    if split == TRAIN:
        raise UsageError(
            f"--shots: {config.name}:{TRAIN} is the split of the examples; choose another split"
        )
    return load_probe(config, TRAIN, mirror=mirror, pairs=True)


def prompts_of(
    prompt: PromptSpec | None, data: ProbeData, examples: ProbeData | None = None
) -> Prompts:
    """Return how the items of a set are put to a model: as they are, or by the prompt of a run."""
    prompts = Prompts(None, data.config.setup, data.config.group_by)
    if prompt is None:
        return prompts
    return replace(
        prompts,
        templates=prompt.templates,
        train=examples.records if examples else (),
        num_shots=prompt.shots,
        **{
            name: getattr(prompt, name)
            for name in ("seed", "chat", "system", "begin", "thinking", "checksum")
        },
    )


def refuse_unused(
    prompt: PromptSettings, spec: PromptSpec, letters: bool, setups: Collection[Setup]
) -> None:
    """Raise UsageError for settings of prompts that would do nothing, or two things.

    `spec` is the `prompt_spec` of a run with sets of these setups.
    """
    is_chat = spec.chat != "never"
    if not is_chat and (prompt.system or prompt.begin or prompt.thinking != spec.thinking):
        raise UsageError(
            "--prompt.system, .begin and .thinking are only for a chat; add --chat auto"
        )
    if not spec.shots and prompt.seed != DEFAULT_PROMPT.seed:
        raise UsageError("--prompt.seed is only for examples before an item; add --shots")
    asks_in_text = any(spec.templates.around_words(setup) for setup in setups)
    if asks_in_text and is_chat:
        raise UsageError(
            f"--prompt.file {prompt.file}: `words_mc_qa` is around a question without a chat, "
            "`chat_mc_qa` the message in one; leave out --chat, or words_mc_qa in the file"
        )
    if not (letters or is_chat or asks_in_text) and prompt.file != DEFAULT_PROMPT.file:
        raise UsageError(
            f"--prompt.file {prompt.file} would change nothing: it has texts for letters (add "
            "--scoring letter), chats (--chat) or, as `words_mc_qa`, questions answered by words"
        )


def template_sha256(model: ModelSettings, prompt: PromptSpec | None) -> str:
    """Return the checksum of a model's chat template; empty where it is asked without a chat.

    Raises:
        UsageError: If a chat is wanted always, and the model has none.
    """
    if prompt is None or prompt.chat == "never":
        return ""
    template, problem = "", f"is of kind {model.kind}; only causal models can chat"
    if model.kind == "causal":
        from probelight.models.loading import CAUSAL_LM, check_pretrained

        tokenizer = check_pretrained(CAUSAL_LM, model.checkpoint).tokenizer
        template = str(tokenizer.chat_template or "")
        problem = "has no chat template; give --chat auto or never"
    if not template and prompt.chat == "always":
        raise UsageError(f"--chat always: {model.label} {problem}")
    return sha256(template.encode()).hexdigest() if template else ""


def in_chat(scorer: Scorer, prompts: Prompts) -> Scorer | None:
    """Return a scorer in its chat, if the prompts want that and there is one."""
    if prompts.chat == "never":
        return None
    return scorer.in_chat(prompts.system, prompts.begin, prompts.thinking)


def mode_of(mode: str, prompts: Prompts, *, is_in_chat: bool, by_letter: bool = False) -> str:
    """Return how choices get their scores, with what is around the items.

    Texts that are not the usual ones are named by a checksum, where there are texts or examples
    around an item, or it is asked in a chat. Sentences of minimal pairs have none but for letters.
    """
    has_shots = by_letter or prompts.setup != "minimal_pair"
    num_shots = prompts.num_shots if has_shots else 0
    shots = f"{num_shots} shot{'s' * (num_shots > 1)}" if num_shots else ""
    has_texts = by_letter or bool(prompts.words_template)
    checksum = prompts.checksum if is_in_chat or shots or has_texts else ""
    texts = checksum and f"prompt {checksum}"
    return ", ".join(filter(None, (mode, "chat" * is_in_chat, shots, texts)))


def refuse_cut(question: Question, records: Sequence[Record], context: str) -> None:
    """Raise UsageError where a text of prompts is so long that an encoder would cut it.

    `context` says what is around the items.
    """
    encoder: Any = question.encoder
    tokenizer, most = encoder.tokenizer, encoder.max_length
    room = most - tokenizer.num_special_tokens_to_add()
    # No tokenizer makes more tokens of a text than it has bytes.
    texts = {f"{r.stem} {max(r.choices, key=len)}": r for r in records}
    long = [text for text in texts if len(text.encode()) > room]
    if not long:
        return
    token_ids = tokenizer(long, add_special_tokens=False, verbose=False).input_ids
    size, text = max((len(ids), text) for text, ids in zip(long, token_ids, strict=True))
    if size > room:
        needed = size + most - room
        raise UsageError(
            f"{texts[text].where}: with {context} it has about {needed} tokens, more than the "
            f"{most} that are read; give --model.max_length {needed + 8} if the model supports it"
        )
