"""Medals: full, partial or no success of a model on a probe, by a stated rule (table 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from probelight.io.documents import STRICT, read_yaml, typed
from probelight.io.errors import ConfigError
from probelight.reports.curve.curve import FULL, Curve
from probelight.reports.curve.facts import NO_LANGUAGE
from probelight.reports.curve.summary import (
    Summary,
    baselines,
    difference,
    random_twin,
    rivals,
    summaries,
)
from probelight.reports.kit.columns import attributes, field, fields, text
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.table import Across, Column, Declared, Table
from probelight.reports.kit.text import ABSENT, points, rate
from probelight.results.load import Results

Medal = Literal["full", "partial", "none", "not judged"]
MARKS = {"full": "✓ full", "partial": "~ partial", "none": "✗ none", "not judged": ABSENT}
CONDITIONS = ("high", "above baselines", "needs language")
RULE_PATH = Path(__file__).with_name("medals.yaml")


@dataclass(frozen=True)
class MedalRule:
    """What makes a success. Accuracies and differences are fractions.

    Args:
        high: Way from chance (0) to perfect (1) that zero-shot or WS must have gone.
        above_baselines: WS minus the WS of each baseline, of random weights and of the most
            frequent answer: its 95% interval must lie above this.
        lang_sense: The interval of the unclipped LangSense without language must lie above this.
        partial: How many of the three conditions make a partial success.
        need_baseline: Not judged without a baseline over word vectors.
        need_random: Not judged without the same architecture with random weights.
    """

    __pydantic_config__: ClassVar = STRICT

    high: float = 0.5
    above_baselines: float = 0.0
    lang_sense: float = 0.02
    partial: int = 2
    need_baseline: bool = True
    need_random: bool = False

    @property
    def words(self) -> str:
        """The rule as a person says it."""
        needed = ["a no-language control", "recorded hits"]
        needed += ["a baseline over word vectors"] * self.need_baseline
        needed += ["random weights"] * self.need_random
        return (
            f"High: zero-shot or WS has gone at least {100 * self.high:.0f}% of the way from "
            "chance to 100%. Above baselines: the 95% interval of WS minus that of every baseline, "
            "of the same architecture with random weights and of always giving the most frequent "
            f"answer lies above {points(self.above_baselines)} points. Needs language: the "
            "interval of the unclipped LangSense without language lies above "
            f"{points(self.lang_sense)} points. Full success is all three, partial is "
            f"{self.partial} of them; {ABSENT} is not judged, for want of {', '.join(needed[:-1])} "
            f"or {needed[-1]}."
        )


@dataclass(frozen=True)
class Judgement:
    """One model on one probe.

    Attributes:
        met: Whether each of `CONDITIONS` holds; empty where it was not judged.
        lacking: What a judgement would have needed.
    """

    summary: Summary
    medal: Medal
    met: tuple[bool, ...] = ()
    lacking: tuple[str, ...] = ()

    @property
    def curve(self) -> Curve:
        """What was judged."""
        return self.summary.curve


def read_rule(path: Path = RULE_PATH) -> MedalRule:
    """Reads a rule; keys that are left out keep their defaults.

    Raises:
        ConfigError: If the file is no YAML mapping, or a key or value is not one of the rule's.
    """
    rule = typed(MedalRule, read_yaml(path), str(path), ConfigError)
    if not (0 <= rule.high <= 1 and 1 <= rule.partial <= len(CONDITIONS)):
        raise ConfigError(f"{path}: high must be in 0..1 and partial in 1..{len(CONDITIONS)}")
    return rule


def judge(summary: Summary, others: Sequence[Summary], rule: MedalRule) -> Judgement:
    """Judges one curve against the others of its probe."""
    twin, lower = random_twin(summary, others), baselines(summary, others)
    language = summary.lang_gap(NO_LANGUAGE)
    own = summary.weighted_sum
    lacking = ["a no-language control"] * (language is None)
    lacking += ["a baseline"] * (rule.need_baseline and not lower)
    lacking += ["random weights"] * (rule.need_random and twin is None)
    lacking += ["a chance level"] * (summary.curve.chance is None)
    lacking += ["hits"] * (own is None or own.ci_low is None)
    gaps = [difference("weighted_sum", summary, other) for other in rivals(summary, others)]
    lacking += ["the baselines' curves on the same items and points"] * (None in map(_low, gaps))
    if lacking:
        return Judgement(summary, "not judged", lacking=tuple(lacking))
    met = (
        _is_high(summary, rule.high),
        _is_above(summary, gaps, rule.above_baselines),
        (_low(language) or 0.0) > rule.lang_sense,
    )
    number = sum(met)
    medal: Medal = "full" if all(met) else "partial" if number >= rule.partial else "none"
    return Judgement(summary, medal, met)


def judgements(results: Results, rule: MedalRule) -> list[Judgement]:
    """Every model on every probe, each by the curve that LangSense is from (not `linear`)."""
    found = summaries(results)
    return [
        judge(summary, found, rule)
        for summary in found
        if summary.role == "model" and summary.curve.mode != "linear"
    ]


def medals_table(results: Results, rule_path: Path | None = None) -> Table | None:
    """Probes by models, with the conditions that each met, by a file's rule or the shipped one."""
    rule = read_rule(rule_path or RULE_PATH)
    found = judgements(results, rule)
    columns: list[Column[Judgement]] = [
        text("probe", lambda one: one.curve.probe, "probe", lambda one: _how(one, found)),
        attributes("model", lambda one: one.curve),
        field("split", lambda one: one.curve.where),
        attributes("mode learning_rate", lambda one: one.curve),
    ]
    across: Across[Judgement] = Across(
        lambda one: one.curve.model,
        lambda one: (one.curve.probe, _how(one, found)),
        lambda model: [
            text(model, lambda one: MARKS[one.medal], small=_why),
            attributes("medal"),
            fields(_conditions),
            field("lacking", lambda one: ", ".join(one.lacking)),
        ],
    )
    judged = [one for one in found if not one.lacking]
    note = (
        f"{rule.words} The marks of the paper's table 12 did not survive in its text, so only ours "
        "are here."
    )
    if found and not judged:
        lacking = dict.fromkeys(name for one in found for name in one.lacking)
        note = f"No curve is judged: all lack {', '.join(lacking)}."
    return Declared("curve_medals", "Medals", note, columns, across).of(found, judged)


def _is_high(summary: Summary, needed: float) -> bool:
    chance = summary.curve.chance or 0.0
    best = max(e.value for e in (summary.zero_shot, summary.weighted_sum) if e is not None)
    return (best - chance) / (1 - chance) >= needed


def _is_above(summary: Summary, gaps: Sequence[Estimate | None], margin: float) -> bool:
    majority, own = summary.curve.majority, _low(summary.weighted_sum) or 0.0
    if majority is not None and own - majority <= margin:
        return False
    return all((_low(gap) or 0.0) > margin for gap in gaps)


def _low(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.ci_low


def _how(one: Judgement, found: Sequence[Judgement]) -> str:
    """What tells apart the curves of a model on a probe: its split, its mode, its rate."""
    curve = one.curve
    alike = {
        other.curve.learning_rate
        for other in found
        if (other.curve.probe, other.curve.mode) == (curve.probe, curve.mode)
    }
    said = [curve.where, "whole network" if curve.mode == FULL else ""]
    said.append(f"rate {rate(curve.learning_rate)}" if len(alike) > 1 else "")
    return ", ".join(filter(None, said))


def _why(one: Judgement) -> str:
    if one.lacking:
        return f"lacks {', '.join(one.lacking)}"
    return ", ".join(name for name, holds in zip(CONDITIONS, one.met, strict=True) if holds)


def _conditions(one: Judgement) -> dict[str, object]:
    met = one.met or (None,) * len(CONDITIONS)
    return {name.replace(" ", "_"): holds for name, holds in zip(CONDITIONS, met, strict=True)}
