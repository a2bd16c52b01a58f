"""What is around the items of a set as they are put to a model: examples, a chat."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from probelight.io.errors import UsageError
from probelight.io.package import shipped_path
from probelight.models.settings import ModelSettings
from probelight.probes.prompts import Chat, Prompts, PromptSettings, Templates
from probelight.probes.record import Record, Setup
from probelight.probes.source import ProbeData, load_probe

if TYPE_CHECKING:
    from probelight.models.scorer import Question, Scorer


DEFAULT_PROMPT = PromptSettings()


TRAIN = "train"


def prompt_config(shots: int, chat: Chat, prompt: PromptSettings) -> dict[str, Any]:
    """Return what a run's config says of how items are put to a model: no more than matters."""
    config: dict[str, Any] = {"shots": shots, "chat": chat}
    config |= {"system": prompt.system, "begin": prompt.begin} if chat != "never" else {}
    config |= {"seed": prompt.seed} if shots else {}
    templates, default_prompt = Templates.read(shipped_path(prompt.file)), PromptSettings()
    config["templates"] = {name: text for name, text in asdict(templates).items() if text}
    has_default_texts = templates == Templates.read(shipped_path(default_prompt.file))
    if replace(prompt, file=default_prompt.file) != default_prompt or not has_default_texts:
        texts = json.dumps(config | {"shots": 0, "chat": ""}, sort_keys=True)
        config["own"] = sha256(texts.encode()).hexdigest()[:6]
    return config


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
    prompt: Mapping[str, Any] | None, data: ProbeData, examples: ProbeData | None = None
) -> Prompts:
    """Return how the items of a set are put to a model, by the `prompt` of a run's config."""
    config, prompt = data.config, prompt or {}
    return Prompts(
        templates=Templates(**prompt["templates"]) if prompt else None,
        setup=config.setup,
        group_by=config.group_by,
        train=examples.records if examples else (),
        num_shots=prompt.get("shots", 0),
        seed=prompt.get("seed", 0),
    )


def refuse_unused(
    prompt: PromptSettings, config: Mapping[str, Any], letters: bool, setups: Collection[Setup]
) -> None:
    """Raise UsageError for settings of prompts that would do nothing, or two things.

    `config` is the `prompt_config` of a run with sets of these setups.
    """
    defaults, in_chat = PromptSettings(), config["chat"] != "never"
    if not in_chat and (prompt.system or prompt.begin):
        raise UsageError("--prompt.system and .begin are only for a chat; add --chat auto")
    if not config["shots"] and prompt.seed != defaults.seed:
        raise UsageError("--prompt.seed is only for examples before an item; add --shots")
    asks_in_text = "mc_qa" in setups and has_words_text(config)
    if asks_in_text and in_chat:
        raise UsageError(
            f"--prompt.file {prompt.file}: `words_mc_qa` is around a question without a chat, "
            "`chat_mc_qa` the message in one; leave out --chat, or words_mc_qa in the file"
        )
    if not (letters or in_chat or asks_in_text) and prompt.file != defaults.file:
        raise UsageError(
            f"--prompt.file {prompt.file} would change nothing: it has texts for letters (add "
            "--scoring letter), chats (--chat) or, as `words_mc_qa`, questions answered by words"
        )


def has_words_text(config: Mapping[str, Any] | None) -> bool:
    """Return whether the `prompt` of a config has a text around questions answered by words."""
    return "words_mc_qa" in (config or {}).get("templates", {})


def relevant_settings(question_settings: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
    """Return what of the settings matters to a set: texts around questions do not to sentences."""
    prompt = question_settings.get("prompt", {"shots": 0, "chat": "never"})
    is_for_all = "letters" in question_settings or prompt["shots"] or prompt["chat"] != "never"
    return dict(question_settings) if is_for_all or setup == "mc_qa" else {}


def template_sha256(model: ModelSettings, prompt: Mapping[str, Any] | None) -> str:
    """Return the checksum of a model's chat template; empty where it is asked without a chat.

    Raises:
        UsageError: If a chat is wanted always, and the model has none.
    """
    if prompt is None or prompt["chat"] == "never":
        return ""
    template, problem = "", f"is of kind {model.kind}; only causal models can chat"
    if model.kind == "causal":
        from probelight.models.loading import CAUSAL_LM, check_pretrained

        tokenizer = check_pretrained(CAUSAL_LM, model.checkpoint).tokenizer
        template = str(tokenizer.chat_template or "")
        problem = "has no chat template; give --chat auto or never"
    if not template and prompt["chat"] == "always":
        raise UsageError(f"--chat always: {model.label} {problem}")
    return sha256(template.encode()).hexdigest() if template else ""


def in_chat(scorer: Scorer, prompt: Mapping[str, Any] | None) -> Scorer | None:
    """Return a scorer in its chat, if the `prompt` of a config wants that and there is one."""
    if prompt is None or prompt["chat"] == "never":
        return None
    return scorer.in_chat(prompt["system"], prompt["begin"])


def mode_of(
    mode: str,
    is_in_chat: bool,
    num_shots: int,
    prompt: Mapping[str, Any] | None = None,
    *,
    has_texts: bool = False,
) -> str:
    """Return how choices get their scores, with what is around the items.

    Texts that are not the usual ones are named by a checksum, where an item `has_texts` or examples
    around it or is asked in a chat.
    """
    shots = f"{num_shots} shot{'s' * (num_shots > 1)}" if num_shots else ""
    checksum = (prompt or {}).get("own", "") if is_in_chat or shots or has_texts else ""
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
