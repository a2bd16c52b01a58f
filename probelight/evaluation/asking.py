"""How a set is asked: by which rules, in which orders of letters, in which texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from probelight.evaluation import prompting
from probelight.evaluation.sets import LoadedSet
from probelight.io.errors import UsageError, nearest
from probelight.metrics.scoring_rules import HARNESS, LETTER, OF_THE_ITEM, RULES
from probelight.probes.catalog import DOMAIN_STEMS, ProbeConfig
from probelight.probes.prompts import LetterSettings, Orders, PromptSettings, PromptSpec
from probelight.probes.record import Setup


@dataclass(frozen=True)
class Asking:
    """How a set is asked: by which rules, in which orders of letters, in which texts."""

    rules: Sequence[str] = ()
    orders: Orders | None = None
    prompt: PromptSpec | None = None

    def relevant_prompt(self, setup: Setup) -> PromptSpec | None:
        """Return the prompt where it matters: texts around questions do not to sentences."""
        if self.prompt is None:
            return None
        has_texts = self.prompt.templates.around_words(setup)
        return self.prompt if self.orders or self.prompt.has_context or has_texts else None


def as_in_harness(
    config: ProbeConfig,
    rules: Sequence[str],
    letters: LetterSettings,
    shots: int,
    prompt: PromptSettings,
) -> Asking:
    """Return how lm-evaluation-harness asks a probe, with further rules."""
    if config.harness is None:
        raise UsageError(
            f"--scoring harness: the config of {config.name} does not say, under `harness`, how "
            "lm-evaluation-harness asks it; score it by other rules"
        )
    rules = chosen_rules([*rules, *config.harness.scoring])
    prompt = replace(prompt, file=config.harness.prompt or prompt.file)
    orders = letters.orders if LETTER in rules else None
    return Asking(rules, orders, prompting.prompt_spec(shots, "never", prompt))


def chosen_rules(scoring: Sequence[str]) -> list[str]:
    """Return the wanted scoring rules in the order of `RULES`; refuse unknown ones."""
    for rule in scoring:
        if rule not in RULES:
            near = nearest(rule.lower(), [*RULES, HARNESS])
            raise UsageError(
                f"--scoring: there is no rule {rule!r}{near}; choose from "
                f"{', '.join([*RULES, HARNESS])}"
            )
    return [rule for rule in RULES if rule in scoring]


def refuse_sets(
    sets: Sequence[LoadedSet], rules: Sequence[str], prompt: PromptSpec, *, ranks: bool
) -> None:
    """Refuse questions that need a stem with one answer, where a set has whole sentences."""
    pairs = [loaded.name for loaded in sets if loaded.data.config.setup == "minimal_pair"]
    if ranks and pairs:
        raise UsageError(
            f"--ranks: {', '.join(pairs)} has minimal pairs, which are whole sentences without "
            "a mask, so words have no ranks; leave it out"
        )
    sentence_sets = [loaded.name for loaded in sets if loaded.data.config.setup not in DOMAIN_STEMS]
    stem_rules = [rule for rule in rules if rule not in OF_THE_ITEM]
    if sentence_sets and stem_rules:
        raise UsageError(
            f"--scoring {','.join(stem_rules)} puts other stems before the choices, but the items "
            f"of {sentence_sets[0]} are whole sentences; give only {', '.join(OF_THE_ITEM)}"
        )
    if prompt.has_context and ranks:
        raise UsageError("--ranks needs sentences as they are; leave out --shots and --chat")
    if prompt.has_context and sentence_sets and LETTER not in rules:
        raise UsageError(
            f"--shots and --chat: {sentence_sets[0]} has whole sentences, not answers; add "
            "--scoring letter, or leave them out"
        )
