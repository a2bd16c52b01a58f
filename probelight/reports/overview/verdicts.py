"""Whether a model knew a skill, learned it, or neither: the one rule, for page and terminal.

The verdict is the first of `RULES` that holds. A score is above another if the interval of their
difference on the same items is above 0; without recorded items, if the two intervals do not meet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from probelight.metrics.intervals import num_equivalent_items
from probelight.metrics.power import above_level
from probelight.reports.numbers import Estimate, between, percent, verdict_of

Word = Literal["knew it", "learned it", "not shown", "cannot tell"]
NO_SEPARATION = 0.5  # AUC of scores that do not depend on the right answer
Number = tuple[str, float]  # what it is, in a few words, and its value
RULES: Mapping[Word, str] = {
    "knew it": "Before any training on the probe, the whole 95% interval of the score is above "
    "chance and above always giving the most frequent answer. A like-for-like control was run, and "
    "every control, and every baseline that reads only part of the input, scores clearly lower. "
    "“In part”: the score is less than halfway from chance to 100%.",
    "learned it": "The verdict is not “knew it”. After the largest number of examples the score "
    "meets the conditions of “knew it”, and it is clearly higher than before training. “In part” "
    "as above.",
    "not shown": "The score is not clearly above chance, or above always giving the most frequent "
    "answer, before or after training, and its interval ends less than halfway from chance to "
    "100%. Nor do the scores of choices that all items share tell the right answers apart (AUC). "
    "This verdict needs no control.",
    "cannot tell": "The numbers do not decide: no like-for-like control was run, or a control or a "
    "baseline that reads only part of the input scores as well, or training did not clearly raise "
    "the score, or its scores tell the right answers apart but it prefers one answer, or the "
    "interval is missing or too wide.",
}
HELD = (
    "A score is clearly above another if the 95% interval of their difference on the same items is "
    "above 0. A like-for-like control is the same kind of run on the same items after the same "
    "number of examples, but without the question, its language or the pre-training. Without one "
    "the verdict on a score above chance is “cannot tell”; further controls can only lower it. "
    "The option --controls auto runs those of a zero-shot score."
)


@dataclass(frozen=True)
class ControlScore:
    """A score of the probe without something that knowing it takes."""

    how: str  # "without language", "by VecSimilarity"
    value: float  # accuracy
    is_lower: bool  # the score that it is a control of is above it
    is_alike: bool  # like for like; others can only speak against a score
    when: str = ""  # after fewer examples than the score: "after 125 examples"

    @property
    def words(self) -> str:
        """What it lacks, and when it was measured if that was earlier."""
        return f"{self.how} {self.when}".strip()


@dataclass(frozen=True, kw_only=True)
class Score(Estimate):
    """An accuracy that was measured at one time."""

    when: str  # "before training", "after 1,000 examples"
    controls: tuple[ControlScore, ...] = ()
    auc: Estimate | None = None  # of choices that all items share

    @property
    def as_good(self) -> ControlScore | None:
        """The best control that the score is not above; None if there is none."""
        failed = [control for control in self.controls if not control.is_lower]
        return max(failed, key=lambda control: control.value, default=None)

    @property
    def separates(self) -> bool:
        """Whether its scores tell the right answers apart, whatever the threshold."""
        return self.auc is not None and (self.auc.ci_low or 0.0) > NO_SEPARATION

    @property
    def number(self) -> Number:
        """The accuracy, labelled by when it was measured."""
        return self.when, self.value

    @property
    def words(self) -> str:
        """When it was measured, the score and its interval."""
        inside = between(*self.bounds)
        return f"{self.when} {percent(self.value)}%" + (f" ({inside})" if inside else "")

    @property
    def quoted(self) -> list[ControlScore]:
        """A control of each kind: the best that is like for like, or else the best."""
        by_kind: dict[str, ControlScore] = {}
        for control in sorted(self.controls, key=lambda c: (not c.is_alike, -c.value)):
            by_kind.setdefault(control.how, control)
        return list(by_kind.values())

    @property
    def compared(self) -> str:
        """The quoted controls, like-for-like ones first."""
        texts = [f"{percent(control.value)}% {control.words}" for control in self.quoted]
        return f"; compared with {', '.join(texts)}" if texts else ""


@dataclass(frozen=True)
class Case:
    """What is known of one model and one skill."""

    chance: float | None
    majority: float | None = None  # accuracy of the most frequent answer
    start: Score | None = None  # before any training on the probe; None for an untrained head
    end: Score | None = None  # after most training; None if nothing was trained
    least_gain: float | None = None  # lower end of end minus start, on the same recorded items

    def against_chance(self, score: Score) -> str:
        """Return where a score lies against chance and the most frequent answer."""
        return verdict_of(score.bounds, self.chance, self.majority)

    def is_shown(self, score: Score) -> bool:
        """Whether a score is above chance, majority and all controls, one like for like."""
        is_compared = any(control.is_alike for control in score.controls)
        return self.against_chance(score) == "above" and is_compared and score.as_good is None

    @property
    def rose(self) -> bool:
        """Whether the end is above the start, or there is no start."""
        if self.start is None or self.end is None:
            return self.end is not None
        return above(self.end, self.start) if self.least_gain is None else self.least_gain > 0


@dataclass(frozen=True)
class Verdict:
    """A verdict with its reason."""

    word: Word
    evidence: tuple[Number, ...]  # at most the two numbers that say most
    reason: str
    in_part: bool = False  # less than half of the way from chance to 100%

    @property
    def words(self) -> str:
        """The verdict as it is printed."""
        return f"{self.word}, in part" if self.in_part else self.word


def judge(case: Case) -> Verdict:
    """Return the verdict on a model and a skill by `RULES`."""
    start, end = case.start, case.end
    scores = [score for score in (end, start) if score]  # the last one first
    name, level = "chance", case.chance
    if case.majority is not None and case.majority > (case.chance or 0.0):
        name, level = "the most frequent answer", case.majority
    half = (1 + (case.chance or 0.0)) / 2  # from which it is not "in part"
    named = f"{name} ({percent(level)}%)"
    numbers: list[Number] = [] if level is None else [(name, level)]

    def verdict(word: Word, evidence: list[Number], reason: str, in_part: bool = False) -> Verdict:
        return Verdict(word, tuple(evidence), reason[0].upper() + reason[1:], in_part)

    if start and case.is_shown(start):
        in_part, evidence = start.value < half, [start.number, *numbers]
        reason = f"{start.words}, above {named}{start.compared}."
        if end and case.rose and (control := end.as_good):
            reason += f" Its gain {end.when} also appears {control.words}."
        elif end and case.rose and in_part and case.is_shown(end):
            evidence = [start.number, end.number]
            reason += f" Training raised it further: {end.words}{end.compared}."
        return verdict("knew it", evidence, reason, in_part)

    if end and case.rose and case.is_shown(end):
        since = f", from {percent(start.value)}% {start.when}" if start else ""
        best = max(end.quoted, key=lambda control: control.value)
        evidence = [end.number, (best.words, best.value)]
        reason = f"{end.words}{since}{end.compared}."
        return verdict("learned it", evidence, reason, end.value < half)

    if above_chance := [score for score in scores if case.against_chance(score) == "above"]:
        # What training did not raise is as good as what it began with.
        score = above_chance[-1 if start in above_chance and not case.rose else 0]
        if control := score.as_good:
            rival = f"{control.words} it is {percent(control.value)}%, which is not clearly lower"
            evidence = [score.number, (control.words, control.value)]
            return verdict("cannot tell", evidence, f"{score.words}; {rival}.")
        if start and score is end and not case.rose:
            start_score = f"the {percent(start.value)}% {start.when}"
            reason = f"{score.words}, above {name}, but not clearly above {start_score}."
            return verdict("cannot tell", [("before", start.value), score.number], reason)
        reason = f"{score.words}, above {named}, but no like-for-like control was run."
        return verdict("cannot tell", [score.number, *numbers], reason)

    if not scores or any(case.against_chance(score) == "unknown" for score in scores):
        reason = "There is no interval of its score."
        if case.chance is None:
            reason = "There is no chance level to compare its score with."
        evidence = [score.number for score in scores[:1]]
        return verdict("cannot tell", evidence, reason)

    last = scores[0]
    is_below = case.against_chance(last) == "below"
    against = f"below chance ({percent(case.chance)}%)" if is_below else f"not above {named}"
    if separating := next((score for score in scores if score.separates), None):
        auc = Score(**vars(separating.auc), when="AUC")
        reason = (
            f"{separating.words}: {against}. But its scores tell the right answers apart "
            f"({auc.words}; chance is {percent(NO_SEPARATION)}%): it parts them, but prefers one "
            "answer."
        )
        return verdict("cannot tell", [separating.number, auc.number], reason)

    for score in scores:
        if (score.ci_high or 0.0) >= half:
            reason = f"{score.words}: too few items to distinguish chance from knowing half of it."
            reason += _detectable(score, level, name)
            return verdict("cannot tell", [score.number, *numbers], reason)

    reason = f"{', '.join(score.words for score in scores)}: {against}."
    if not is_below:
        reason += _detectable(last, level, name)
    return verdict("not shown", [last.number, *numbers], reason)


def _detectable(score: Score, level: float | None, name: str) -> str:
    """Return how high an accuracy must be to be usually found above a level, by as many items."""
    if not level or score.ci_low is None or not 0 < score.ci_low < score.value:
        return ""
    least = above_level(num_equivalent_items(score.value, score.ci_low), level)
    if least > 1:
        return f" This set would usually not show even 100% as above {name}."
    accuracy = f"an accuracy of {percent(least)}% or more"
    return f" This set would usually show {accuracy} as above {name}."


def above(estimate: Estimate, reference: Estimate) -> bool:
    """Return whether an interval is above another, for scores without recorded items."""
    if estimate.ci_low is None or reference.ci_high is None:
        return False
    return estimate.ci_low > reference.ci_high
