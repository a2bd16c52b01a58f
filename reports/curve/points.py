"""The points of a learning curve: the runs of all seeds, and standard minus control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, stdev

from metrics.intervals import wilson
from reports.kit.measured import Bounds
from results.row import Row


@dataclass(frozen=True)
class Point:
    """The runs of all seeds at one number of training examples.

    Attributes:
        by_seed: Row of each seed.
        trained: Row of the accuracy on its own training examples of each seed that recorded it.
    """

    num_train: int
    by_seed: Mapping[int | None, Row]
    trained: Mapping[int | None, Row] = field(default_factory=dict)

    @property
    def values(self) -> list[float]:
        """Accuracy of each seed."""
        return [row.value for row in self.by_seed.values()]

    @property
    def mean(self) -> float:
        """Accuracy averaged over seeds."""
        return fmean(self.values)

    @property
    def median(self) -> float:
        """Accuracy of the seed in the middle."""
        return median(self.values)

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for a single seed."""
        return stdev(self.values) if len(self.by_seed) > 1 else None

    def stuck(self, chance: float | None) -> int | None:
        """Runs whose training accuracy is not above chance (SPEC E6); None where none says."""
        if chance is None or not self.trained:
            return None
        return sum(_lower_bound(row, self.num_train) <= chance for row in self.trained.values())

    @property
    def interval(self) -> Bounds:
        """The seeds' intervals averaged: the uncertainty from the items, which all seeds share."""
        return mean_bounds(list(self.by_seed.values()))

    @property
    def num_items(self) -> int | None:
        """Items evaluated by every seed; None where seeds differ or do not say."""
        numbers = {row.num_items for row in self.by_seed.values()}
        return numbers.pop() if len(numbers) == 1 else None


@dataclass(frozen=True)
class Difference:
    """Standard minus control over the seeds that both have.

    Attributes:
        low: Of the seed with the smallest difference.
        high: Of the seed with the largest.
        spread: Standard deviation over seeds; None for a single seed.
        interval: 95% interval over items and seeds, where hits were recorded.
    """

    mean: float
    low: float
    high: float
    spread: float | None
    num_seeds: int
    interval: Bounds = (None, None)


def mean_bounds(rows: Sequence[Row]) -> Bounds:
    """Intervals averaged; None where not every row has one."""
    lows = [row.ci_low for row in rows if row.ci_low is not None]
    highs = [row.ci_high for row in rows if row.ci_high is not None]
    if not rows or len(lows) != len(rows) or len(highs) != len(rows):
        return None, None
    return fmean(lows), fmean(highs)


def _lower_bound(row: Row, num_train: int) -> float:
    """Lower end of the interval of a training accuracy."""
    if row.ci_low is not None:
        return row.ci_low
    number = row.num_items or num_train
    return wilson(round(row.value * number, 6), number)[0]
