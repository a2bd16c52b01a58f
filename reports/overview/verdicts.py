"""Whether a model knew a skill, learned it, or neither: the one rule, for page and terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reports.kit.text import between, percent
from reports.overview.case import Case, Control, Score

Word = Literal["knew it", "learned it", "not shown", "cannot tell"]
RULES: Mapping[Word, str] = {
    "knew it": "Before any training the whole 95% interval of its score lies above chance and "
    "above always giving the most frequent answer, and every control that was run scores less; "
    "“in part” is less than half of the way from chance to 100%.",
    "learned it": "It did not know it, or only in part; after the most training there is, the "
    "whole interval lies above chance and the most frequent answer, the score is above its own "
    "before training, and every control that was trained alike scores less; “in part” as above.",
    "not shown": "Neither before training nor after it can the score be told from chance, or from "
    "always giving the most frequent answer, and the interval ends below half of the way from "
    "chance to 100%.",
    "cannot tell": "The numbers do not decide: a control scores as much, training gained no more "
    "than the interval allows, or the interval is missing or too wide.",
}
NO_CONTROL = "No control was run beside it."


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
    knew = start if start and case.is_above(start) and not start.as_good else None
    learned = end if end and case.is_above(end) and not end.as_good and case.rose else None
    in_part = knew is not None and knew.measured.value < case.half
    if knew and not (in_part and learned):
        return _knew(case, knew, in_part)
    if learned:
        return _learned(case, learned, knew)
    for score in case.scores:
        if case.is_above(score):
            return _undecided(case, score)
    if case.unknown:
        return _unknown(case)
    if wide := case.too_wide:
        reason = f"{_told(wide)}: too few items to tell chance from knowing half of it."
        return Judged("cannot tell", _beside(case, wide), reason)
    return _not_shown(case)


def _knew(case: Case, start: Score, in_part: bool) -> Judged:
    name, level = case.level
    lower = [f"{c.how} it scores {percent(c.value)}%" for c in start.controls]
    reason = f"{_told(start)}, above {name} ({percent(level)}%)"
    reason += f"; {', '.join(lower)}." if lower else f". {NO_CONTROL}"
    end = case.end
    if end and case.rose and (control := end.as_good):
        reason += f" What it gained {end.when} came {control.how} too."
    return Judged("knew it", _beside(case, start), reason, in_part)


def _learned(case: Case, end: Score, knew: Score | None) -> Judged:
    start, control = case.start, max(end.controls, key=lambda c: c.value, default=None)
    reason = _told(end)
    reason += f", from {percent(start.measured.value)}% {start.when}" if start else ""
    reason += f"; {control.how} it scores {percent(control.value)}%." if control else ""
    reason += "" if control else f". {NO_CONTROL}"
    reason += " It knew a part of it before." if knew else ""
    evidence = _beside(case, end)
    if control:
        evidence = _pair(end, control)
    elif start:
        evidence = (Evidence("before", start.measured.value), evidence[0])
    return Judged("learned it", evidence, reason, in_part=end.measured.value < case.half)


def _undecided(case: Case, score: Score) -> Judged:
    """Above chance, and yet neither known nor learned."""
    if control := score.as_good:
        reason = (
            f"{_told(score)}, which cannot be told from what it scores {control.how} "
            f"({percent(control.value)}%)."
        )
        return Judged("cannot tell", _pair(score, control), reason)
    start = case.start
    if start is None or start is score:
        return _unknown(case)
    reason = (
        f"{_told(score)}, above {case.level[0]}, but not beyond doubt above the "
        f"{percent(start.measured.value)}% {start.when}."
    )
    first = Evidence("before", start.measured.value)
    return Judged("cannot tell", (first, Evidence(score.when, score.measured.value)), reason)


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


def _told(score: Score, first: bool = True) -> str:
    """A score with its interval and when it was measured."""
    bounds = between(score.measured.ci_low, score.measured.ci_high)
    when = score.when[0].upper() + score.when[1:] if first else score.when
    inside = f" ({bounds})" if bounds else ""
    return f"{when} {percent(score.measured.value)}%{inside}"
