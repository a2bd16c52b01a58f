"""Whether a model knew a skill, learned it, or neither: the one rule, for page and terminal.

Two claims can be made of a model, and each is held against numbers of its own:

- it knew the skill: its score before any training on the probe (`Case.start`);
- it learned it: its score after the most training there is (`Case.end`), which has to be above that
  before training as well.

A score shows something where its whole 95% interval lies above chance and above always giving the
most frequent answer, a like-for-like control was run beside it, and it is above every control and
every baseline that sees only a part of the input (`Case.is_shown`). The verdict is the first claim
that holds. Where none holds, it is "cannot tell" if a score is above chance, or might be far above
it, else "not shown", for which no control is needed.

From the least to the most the verdicts are "not shown", "cannot tell", "learned it" and "knew it".
A control enters a claim only as a condition that it can fail, so a better control, or a further one
beside a like-for-like control, can lower a verdict and never raises it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from probelight.reports.kit.text import between, percent
from probelight.reports.overview.case import Case, Control, Score

Word = Literal["knew it", "learned it", "not shown", "cannot tell"]
RULES: Mapping[Word, str] = {
    "knew it": "Before it was trained on the probe the whole 95% interval of its score lies above "
    "chance and above always giving the most frequent answer, a like-for-like control was run, and "
    "every control, and every baseline that sees only a part of the input, scores less; “in part” "
    "is less than half of the way from chance to 100%.",
    "learned it": "It was not shown to know it; after the most training there is, the same holds, "
    "and the score is above its own before training; “in part” as above.",
    "not shown": "Neither before training nor after it can the score be told from chance, or from "
    "always giving the most frequent answer, and the interval ends below half of the way from "
    "chance to 100%. It needs no control.",
    "cannot tell": "The numbers do not decide: no like-for-like control was run, a control or a "
    "baseline of a part of the input scores as much, training gained no more than the interval "
    "allows, or the interval is missing or too wide.",
}
HELD = (
    "A control is like for like where it is the same kind of run on the same items after as many "
    "examples, but without the question, its language or the pre-training. A better control, or a "
    "further one beside it, can lower a verdict and never raises it."
)
NO_CONTROL = "but no like-for-like control was run beside it"


@dataclass(frozen=True)
class Evidence:
    """A number and what it is, in a few words."""

    label: str
    value: float


@dataclass(frozen=True)
class Judged:
    """A verdict with its reason.

    Attributes:
        word: The verdict.
        evidence: The two numbers that say most of it; fewer where there are not as many.
        reason: Why, in a sentence or two.
        in_part: Whether what it knew, or learned, is less than half of the way from chance to
            perfect.
    """

    word: Word
    evidence: tuple[Evidence, ...]
    reason: str
    in_part: bool = False

    @property
    def said(self) -> str:
        """The verdict as it is printed."""
        return f"{self.word}, in part" if self.in_part else self.word


def judge(case: Case) -> Judged:
    """The verdict on a model and a skill by `RULES`."""
    start, end = case.start, case.end
    if start and case.is_shown(start):
        return _knew(case, start)
    if end and case.is_shown(end) and case.rose:
        return _learned(case, end)
    if above := [score for score in case.scores if case.is_above(score)]:
        # What training did not raise is as good as what it began with.
        return _undecided(case, start if start in above and not case.rose else above[0])
    if case.unknown:
        return _unknown(case)
    if wide := case.too_wide:
        reason = f"{_told(wide)}: too few items to tell chance from knowing half of it."
        return Judged("cannot tell", _beside(case, wide), reason)
    return _not_shown(case)


def _knew(case: Case, start: Score) -> Judged:
    name, level = case.level
    end, in_part = case.end, start.measured.value < case.half
    reason = f"{_told(start)}, above {name} ({percent(level)}%){_controls(start)}."
    evidence = _beside(case, start)
    if end and case.rose and (control := end.as_good):
        reason += f" What it gained {end.when} came {control.how} too."
    elif end and case.rose and in_part and case.is_shown(end):
        reason += f" It learned more of it: {_told(end, first=False)}{_controls(end)}."
        evidence = (evidence[0], Evidence(end.when, end.measured.value))
    return Judged("knew it", evidence, reason, in_part)


def _learned(case: Case, end: Score) -> Judged:
    start = case.start
    reason = _told(end)
    reason += f", from {percent(start.measured.value)}% {start.when}" if start else ""
    evidence = _pair(end, max(end.controls, key=lambda control: control.value))
    in_part = end.measured.value < case.half
    return Judged("learned it", evidence, f"{reason}{_controls(end)}.", in_part)


def _undecided(case: Case, score: Score) -> Judged:
    """Above chance, and yet neither known nor learned."""
    name, level = case.level
    if control := score.as_good:
        reason = (
            f"{_told(score)}; {control.how} it is {percent(control.value)}%, which cannot be told "
            "from that."
        )
        return Judged("cannot tell", _pair(score, control), reason)
    start = case.start
    if start and score is case.end and not case.rose:
        reason = (
            f"{_told(score)}, above {name}, but not beyond doubt above the "
            f"{percent(start.measured.value)}% {start.when}."
        )
        first = Evidence("before", start.measured.value)
        return Judged("cannot tell", (first, Evidence(score.when, score.measured.value)), reason)
    reason = f"{_told(score)}, above {name} ({percent(level)}%), {NO_CONTROL}."
    return Judged("cannot tell", _beside(case, score), reason)


def _not_shown(case: Case) -> Judged:
    name, level = case.level
    told = ", ".join(_told(score, first=score is case.scores[0]) for score in case.scores)
    side = f"not above {name} ({percent(level)}%)"
    if case.stands(case.scores[0]) == "below":
        side = f"below chance ({percent(case.chance)}%)"
    reason = f"{told}: {side}."
    return Judged("not shown", _beside(case, case.scores[0]), reason)


def _unknown(case: Case) -> Judged:
    lacking = "chance level" if case.chance is None else "interval"
    reason = f"There is no {lacking} to hold its score against."
    return Judged("cannot tell", tuple(_beside(case, s)[0] for s in case.scores[:1]), reason)


def _beside(case: Case, score: Score) -> tuple[Evidence, ...]:
    name, level = case.level
    own = Evidence(score.when, score.measured.value)
    return (own,) if level is None else (own, Evidence(name, level))


def _pair(score: Score, control: Control) -> tuple[Evidence, ...]:
    return Evidence(score.when, score.measured.value), Evidence(control.how, control.value)


def _controls(score: Score) -> str:
    """What was held against a score, the best of each kind, those that are like for like first."""
    best: dict[str, float] = {}
    for control in sorted(score.controls, key=lambda one: not one.is_alike):
        best[control.how] = max(control.value, best.get(control.how, 0.0))
    told = ", ".join(f"{percent(value)}% {how}" for how, value in best.items())
    return f"; beside it {told}" if told else ""


def _told(score: Score, first: bool = True) -> str:
    """A score with its interval and when it was measured."""
    bounds = between(score.measured.ci_low, score.measured.ci_high)
    when = score.when[0].upper() + score.when[1:] if first else score.when
    inside = f" ({bounds})" if bounds else ""
    return f"{when} {percent(score.measured.value)}%{inside}"
