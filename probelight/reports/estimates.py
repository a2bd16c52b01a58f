"""A measured number with its interval, and where it lies against chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from probelight.reports.words import missing
from probelight.results.frames import results_frame
from probelight.results.load import Results

Bounds = tuple[float | None, float | None]  # of an interval; None where it is not known
Verdict = Literal["above", "not above the majority", "not distinguishable", "below", "unknown"]
VERDICTS: Mapping[Verdict, str] = {  # as written in sentences
    "above": "above chance",
    "not above the majority": "no better than always giving the most frequent answer",
    "not distinguishable": "not clearly above chance",
    "below": "below chance",
    "unknown": "not comparable with chance (no chance level or no interval)",
}
WHOLE = ("", "standard")  # the `control` of an unchanged probe


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval, if that is known."""

    value: float
    ci_low: float | None = None
    ci_high: float | None = None

    @classmethod
    def of(cls, row: Any) -> Estimate:
        """Return the value and interval of a row of the results."""
        low, high = (None if missing(end) else end for end in (row.ci_low, row.ci_high))
        return cls(row.value, low, high)

    @property
    def bounds(self) -> Bounds:
        """Both ends of the interval."""
        return self.ci_low, self.ci_high

    @property
    def negative(self) -> Estimate:
        """Its negative: a cost as a gain."""
        if self.ci_low is None or self.ci_high is None:
            return Estimate(-self.value)
        return Estimate(-self.value, -self.ci_high, -self.ci_low)


def named(names: str, estimate: Estimate | None) -> dict[str, float | None]:
    """Return a number and both ends of its interval under three names, separated by blanks."""
    numbers = (estimate.value, *estimate.bounds) if estimate else (None, None, None)
    return dict(zip(names.split(), numbers, strict=True))


def verdict_of(bounds: Bounds, chance: float | None, majority: float | None = None) -> Verdict:
    """Compare an accuracy's interval with chance; it is above only if above the majority too.

    `majority` is the accuracy of always giving the most frequent answer, if that is known.
    """
    low, high = bounds
    if chance is None or low is None or high is None or missing(low + high + chance):
        return "unknown"
    if low <= chance:
        return "below" if high < chance else "not distinguishable"
    is_above = majority is None or missing(majority) or low > majority
    return "above" if is_above else "not above the majority"


def chance_levels(results: Results) -> dict[str, float]:
    """Return each probe's chance level, counting real choices alone, as any run recorded it."""
    rows = results_frame(results)
    rows = rows[rows.subset == ""]
    levels: dict[str, float] = {}
    for name in ("chance", "floor"):  # the second counts real choices
        of_name = rows[rows.metric.isin([name, f"{name}_probe"])]
        levels |= of_name.drop_duplicates("probe").set_index("probe").value.to_dict()
    return levels
