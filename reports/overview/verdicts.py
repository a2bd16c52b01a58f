"""Whether a model knew a skill, learned it, or neither: the one rule, for page and terminal alike.

A score is above a level where its whole 95% interval is, and above another score where the interval
of their difference on the same items lies above 0; where runs did not record their items, where the
two intervals do not meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reports.kit.measured import Measured
from reports.kit.text import between, percent
from reports.zero_shot.facts import Verdict as Stand
from reports.zero_shot.facts import verdict_of

Word = Literal["knew it", "learned it", "not shown", "cannot tell"]
HALF = 0.5  # way from chance (0) to perfect (1) from which a skill is known more than in part
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
class Control:
    """The same items answered without something, beside a score.

    Attributes:
        how: What was done, as the end of a sentence: "without its language".
        value: Its accuracy.
        is_lower: Whether the score is above it.
    """

    how: str
    value: float
    is_lower: bool


@dataclass(frozen=True)
class Score:
    """What was measured at one time.

    Attributes:
        when: "before training", "after 1,000 examples".
        measured: The accuracy with its interval.
        controls: What was held against it.
    """

    when: str
    measured: Measured
    controls: tuple[Control, ...] = ()

    @property
    def as_good(self) -> Control | None:
        """The best control that the score is not above; None where there is none."""
        failed = [control for control in self.controls if not control.is_lower]
        return max(failed, key=lambda control: control.value, default=None)


@dataclass(frozen=True)
class Case:
    """What is known of one model and one skill.

    Attributes:
        chance: Share of right answers by guessing.
        majority: That of always giving the most frequent answer, where it is known.
        start: Before training; None where there is no such score (a head without training).
        end: After the most training; None where nothing was trained.
        gain: The end minus the start on the same items; None where items were not recorded.
    """

    chance: float | None
    majority: float | None = None
    start: Score | None = None
    end: Score | None = None
    gain: Measured | None = None

    @property
    def scores(self) -> list[Score]:
        """The scores there are, the last one first."""
        return [score for score in (self.end, self.start) if score]

    @property
    def level(self) -> tuple[str, float | None]:
        """What a score has to be above, by its name: chance, or the most frequent answer."""
        if self.majority is not None and self.majority > (self.chance or 0.0):
            return "the most frequent answer", self.majority
        return "chance", self.chance

    @property
    def half(self) -> float:
        """The accuracy half of the way from chance to perfect."""
        chance = self.chance or 0.0
        return chance + HALF * (1 - chance)

    def is_above(self, score: Score | None) -> bool:
        """Whether a score is above chance and the most frequent answer."""
        return score is not None and self.stands(score) == "above"

    @property
    def rose(self) -> bool:
        """Whether the end is above the start; where there is no start, it need not be."""
        if self.start is None or self.end is None:
            return self.end is not None
        return is_gain(self.gain, self.end.measured, self.start.measured)

    @property
    def unknown(self) -> bool:
        """Whether a score cannot be held against chance, or there is none."""
        return not self.scores or any(self.stands(one) == "unknown" for one in self.scores)

    @property
    def too_wide(self) -> Score | None:
        """A score whose interval does not leave out half of the way to perfect."""
        return next((s for s in self.scores if (s.measured.ci_high or 0.0) >= self.half), None)

    def stands(self, score: Score) -> Stand:
        """Where a score stands against chance and the most frequent answer."""
        bounds = (score.measured.ci_low, score.measured.ci_high)
        return verdict_of(bounds, self.chance, self.majority)


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


def above(one: Measured, other: Measured) -> bool:
    """Whether an interval lies above another, for scores whose items were not recorded."""
    return one.ci_low is not None and other.ci_high is not None and one.ci_low > other.ci_high


def is_gain(gain: Measured | None, end: Measured, start: Measured) -> bool:
    """Whether a gain can be told from none, by its own interval where it has one."""
    if gain is not None and gain.ci_low is not None:
        return gain.ci_low > 0
    return above(end, start)


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
