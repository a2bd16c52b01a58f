"""What is around the items of a set as they are put to a model: examples, a chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from probelight.io.errors import UsageError
from probelight.io.package import shipped_path
from probelight.probes.prompts import Chat, Prompts, PromptSettings, Templates
from probelight.probes.record import Record
from probelight.probes.source import ProbeData, load_probe
from probelight.protocols.engine.settings import ModelSettings

if TYPE_CHECKING:
    from probelight.models.scorer import Question, Scorer

TRAIN = "train"


def prompt_config(shots: int, chat: Chat, prompt: PromptSettings) -> dict[str, Any]:
    """Return what a run's config says of how items are put to a model: no more than matters."""
    found: dict[str, Any] = {"shots": shots, "chat": chat}
    found |= {"system": prompt.system, "begin": prompt.begin} if chat != "never" else {}
    found |= {"seed": prompt.seed} if shots else {}
    return {**found, "templates": asdict(Templates.read(shipped_path(prompt.file)))}


def examples_of(data: ProbeData, split: str, mirror: str | None) -> ProbeData:
    """Return the train split of a set's probe, from which examples are drawn."""
    config = data.config
    if not split or TRAIN not in config.splits:
        raise UsageError(f"--shots: {config.name} has no train split to take examples from")
    if split == TRAIN:
        raise UsageError(f"--shots: {config.name}:{TRAIN} is what examples are taken from")
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


def refuse_without_chat(model: ModelSettings) -> None:
    """Raise UsageError for a model that cannot be asked in a chat."""
    label = f"--chat always: {model.label}"
    if model.kind != "causal":
        raise UsageError(f"{label} is of kind {model.kind}; only causal models answer in a chat")
    from probelight.models.loading import CAUSAL_LM, check_pretrained

    found = check_pretrained(CAUSAL_LM, model.name_or_path, model.revision, model.random_weights)
    if not found.tokenizer.chat_template:
        raise UsageError(f"{label}: its tokenizer has no chat template; give --chat auto or never")


def in_chat(scorer: Scorer, prompt: Mapping[str, Any] | None) -> Scorer | None:
    """Return a scorer in its chat, if the `prompt` of a config wants that and there is one."""
    if prompt is None or prompt["chat"] == "never":
        return None
    return scorer.in_chat(prompt["system"], prompt["begin"])


def mode_of(scorer: Scorer, num_shots: int) -> str:
    """Return how choices get their scores, with what is around the items."""
    shots = f"{num_shots} shot{'s' * (num_shots > 1)}" if num_shots else ""
    return ", ".join(filter(None, (scorer.mode, "chat" * scorer.is_in_chat, shots)))


def refuse_cut(question: Question, records: Sequence[Record], shown: str) -> None:
    """Raise UsageError where a text of prompts is so long that an encoder would cut it.

    `shown` says what is around the items.
    """
    encoder: Any = question.encoder
    tokenizer, most = encoder.tokenizer, encoder.max_length
    room = most - tokenizer.num_special_tokens_to_add()
    # No tokenizer makes more tokens of a text than it has bytes.
    texts = {f"{r.stem} {max(r.choices, key=len)}": r for r in records}
    long = [text for text in texts if len(text.encode()) > room]
    if not long:
        return
    for text, ids in zip(
        long, tokenizer(long, add_special_tokens=False, verbose=False).input_ids, strict=True
    ):
        if len(ids) > room:
            needed = len(ids) + most - room
            raise UsageError(
                f"{texts[text].where}: with {shown} it has about {needed} tokens, and {most} "
                f"are read; give --model.max_length {needed + 8} if the model takes so many"
            )
