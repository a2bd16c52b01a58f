"""What was measured of one model and one skill, and where it stands.

A score is above a level where its whole 95% interval is, and above another score where the interval
of their difference on the same items lies above 0; where runs did not record their items, where the
two intervals do not meet.
"""

from __future__ import annotations

from dataclasses import dataclass

from probelight.reports.kit.measured import Measured
from probelight.reports.zero_shot.facts import Verdict as Stand
from probelight.reports.zero_shot.facts import verdict_of

HALF = 0.5  # way from chance (0) to perfect (1) from which a skill is known more than in part


@dataclass(frozen=True)
class Control:
    """The probe answered without something that knowing it takes, beside a score.

    Attributes:
        how: Without what, or by what: "without its language", "by VecSimilarity".
        value: Its accuracy.
        is_lower: Whether the score is above it.
        is_alike: Whether it is like for like: the same kind of run on the same items, after as many
            training examples. Others, such as baselines that were trained on the choices alone,
            can only speak against a score.
    """

    how: str
    value: float
    is_lower: bool
    is_alike: bool


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

    @property
    def is_controlled(self) -> bool:
        """Whether a like-for-like control was run, and the score is above all controls."""
        return any(control.is_alike for control in self.controls) and self.as_good is None


@dataclass(frozen=True)
class Case:
    """What is known of one model and one skill.

    Attributes:
        chance: Share of right answers by guessing.
        majority: That of always giving the most frequent answer, where it is known.
        start: Before training on the probe; None where there is no such score (an untrained head).
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

    def is_shown(self, score: Score | None) -> bool:
        """Whether a score is above chance, the most frequent answer and its controls."""
        return score is not None and self.is_above(score) and score.is_controlled

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


def above(one: Measured, other: Measured) -> bool:
    """Whether an interval lies above another, for scores whose items were not recorded."""
    return one.ci_low is not None and other.ci_high is not None and one.ci_low > other.ci_high


def is_gain(gain: Measured | None, end: Measured, start: Measured) -> bool:
    """Whether a gain can be told from none, by its own interval where it has one."""
    if gain is not None and gain.ci_low is not None:
        return gain.ci_low > 0
    return above(end, start)


def or_none(change: Measured) -> str:
    """What is said behind a gain or a cost whose interval does not tell it from none."""
    if change.ci_low is None or change.ci_high is None:
        return ""
    return ", may be none" if change.ci_low <= 0 <= change.ci_high else ""
