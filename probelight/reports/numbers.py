"""Measured numbers: their intervals, where they lie against chance, and how people read them.

None and NaN, which were not measured, are read as `ABSENT`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from probelight.metrics.intervals import FEW
from probelight.results.details import WatchDetails
from probelight.results.load import Run, RunSet

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
NOT_INTERPRETABLE = "not interpretable"
ABSENT = "–"
INTERVAL = "Each accuracy has its 95% interval"
BY_GROUPS = "over groups of items if items come in groups, else Wilson's"
TOO_FEW = "too few"  # in place of an interval of under `LEAST` groups or seeds
LEAST = 3
BEFORE = "before training"
# Nobody knows what the models were trained on whose answers another program scored.
ELSEWHERE = {"imported": "in the imported scores", "recorded": "in the recorded outputs"}
MEASURES = {
    "negation_sensitivity": "first word changed by “not”",
    "unchanged_by_not": "first word unchanged by “not”",
    "repeated_subject": "errors that repeat the subject",
    "article_obedience": "first word that “a” or “an” asks for",
}


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
    """Return a number and both ends of its interval by name.

    `names` are separated by blanks; those of the ends default to NAME_ci_low and NAME_ci_high.
    """
    numbers = (estimate.value, *estimate.bounds) if estimate else (None, None, None)
    return dict(zip(with_ends(names), numbers, strict=True))


def with_ends(names: str) -> list[str]:
    """Return the names of a number and both ends of its interval, which have a default."""
    name, *ends = names.split()
    return [name, *(ends or (f"{name}_ci_low", f"{name}_ci_high"))]


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


def chance_levels(results: RunSet) -> dict[str, float]:
    """Return each probe's chance level, counting real choices alone, as any run recorded it."""
    levels: dict[str, float] = {}
    for name in ("chance", "floor"):  # the second counts real choices
        of_name = [row for row in results.rows if row.metric in (name, f"{name}_probe")]
        levels |= {row.probe: row.value for row in reversed(of_name) if row.subset is None}
    return levels


def missing(value: Any) -> bool:
    """Whether a number was not measured."""
    return value is None or bool(value != value)


def _percents(fraction: float) -> float:
    """Return a fraction times 100, where 8.75 is 8.75 whatever it is the difference of."""
    return round(100 * fraction, 9)


def percent(value: float | None) -> str:
    """Return a fraction in per cent with one decimal."""
    if value is None or missing(value):
        return ABSENT
    return f"{_percents(value):.1f}".replace("-", "−")


def points(value: float | None) -> str:
    """Return a difference of fractions in percentage points, signed."""
    if value is None or missing(value):
        return ABSENT
    text = f"{_percents(value):+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def between(low: float | None, high: float | None) -> str:
    """Return an interval of fractions in per cent; empty if there is none."""
    if low is None or missing(low) or missing(high):
        return ""
    return f"{percent(low)}{' to ' if low < 0 else '–'}{percent(high)}"


def points_between(low: float | None, high: float | None) -> str:
    """Return an interval of differences in percentage points; empty if there is none."""
    return "" if missing(low) or missing(high) else f"{points(low)} to {points(high)}"


def count(number: int | None) -> str:
    """Return a whole number with thousands separators."""
    return ABSENT if number is None or missing(number) else f"{int(number):,}"


def short_count(number: int) -> str:
    """Return a whole number in short: 1,000 as 1k, 2,000,000 as 2M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size and number % (size // 10) == 0:
            return f"{number / size:g}{letter}"
    return f"{number:,}"


def sample(num_items: int | None, num_groups: int | None) -> str:
    """Return the number of items and groups as text, with a warning if groups are few."""
    if num_items is None or missing(num_items) or not num_items:
        return ""
    text = f"n = {count(num_items)}"
    if num_groups is None or missing(num_groups) or num_groups == num_items:
        return text
    few = "only " if num_groups < FEW else ""
    return f"{text} in {few}{count(num_groups)} {'group' if num_groups == 1 else 'groups'}"


def rate(value: float | None) -> str:
    """Return a learning rate, 1e-05 written as 1e-5."""
    return ABSENT if value is None or missing(value) else f"{value:g}".replace("e-0", "e-")


def probability(value: float | None) -> str:
    """Return a p-value as "= 0.123", or "< 0.001" where it would print as zero."""
    if value is None or missing(value):
        return "not recorded"
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def when_of(run: Run, size: int = 0) -> str:
    """Return when a model answered that a run had trained on `size` examples of the probe."""
    if details := run.detail(WatchDetails):
        return f"at step {count(details.step)}"
    return f"after {count(size)} examples" if size else ELSEWHERE.get(run.kind, BEFORE)


def scored_by(mode: str) -> str:
    """Return how choices were scored; empty for the usual way, at the mask of a masked LM."""
    return mode.removeprefix("zero_shot").removeprefix(", ").replace("_", " ")


def replayed(extra: str) -> str:
    """Return how many original-task examples were mixed in: "no replay", or "replay x1"."""
    return "no replay" if extra == "none" else f"replay {extra}"


def measure(metric: str) -> str:
    """Return a metric of the diagnostics as tables and figures call it."""
    return MEASURES.get(metric, metric.replace("_", " "))


def in_words(name: str) -> str:
    """Return a probe's name as a person says it: "taxonomy (small)" for `taxonomy_small`."""
    return re.sub(" small$", " (small)", name.replace("_", " "))


def listed(phrases: list[str]) -> str:
    """Join the parts of a sentence by commas, and the last one by "and"."""
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def dotted(*phrases: str) -> str:
    """Join the parts that are not empty by dots."""
    return " · ".join(filter(None, phrases))
