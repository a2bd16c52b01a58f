"""A learning curve: its points, each the runs of all seeds, and standard minus control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean, median, stdev

import numpy as np
from numpy.typing import NDArray

from probelight.metrics.intervals import (
    DIFFERENCES,
    SHARES,
    Floats,
    Term,
    group_indices,
    num_groups,
    sum_interval,
    wilson,
)
from probelight.probes.controls import STANDARD
from probelight.reports.kit.measured import Bounds, Estimate
from probelight.results.hits import Hits, Place, runs_by_place
from probelight.results.row import Role, Row

FULL = "full"  # the mode of MC-QA
MODES = ("mlp", "linear", FULL)
Part = tuple[float, "Curve", str, int]  # a weight and a point: curve, control, N


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
    def mode(self) -> str:
        """What was trained; of N = 0 how the choices got their scores, where no head gave them."""
        return next(iter(self.by_seed.values())).mode

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
        """Runs whose training accuracy is not above chance; None where none says."""
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


@dataclass(frozen=True)
class Curve:
    """The curves of one model, probe and mode: the standard one and its controls.

    Attributes:
        role: What the model is there for.
        control_of: The model whose architecture with random weights it is; empty for any other.
        points: Points by control, each list by number of examples.
        hits: Which items each run got right, where it was recorded.
        majority: Accuracy of always giving the most frequent answer.
        train: How the train rows were got, as the runs say it.
        whole: Whether no row of the measured file was left out.
        released: Whether that is the file which was released with the probe's paper.
        first_stage: Whether the model was trained on other questions first.
        paper_model: The paper's name of the checkpoint that the runs recorded; None for another.
        scored_chance: Chance among all choices scored, empty ones too; `chance` is that of the real
            ones.
        told_apart: What tells it from another curve of the same name; empty where there is none.
    """

    model: str
    probe: str
    mode: str
    split: str
    learning_rate: float | None
    chance: float | None
    points: Mapping[str, Sequence[Point]]
    hits: Hits | None = None
    majority: float | None = None
    train: str = ""
    whole: bool = True
    released: bool = True
    first_stage: bool = False
    paper_model: str | None = None
    scored_chance: float | None = None
    told_apart: str = ""
    role: Role = "model"
    control_of: str = ""

    @property
    def source(self) -> tuple[str, str, str, bool]:
        """What curves share that may be held against each other: rows and stages of training."""
        return self.probe, self.split, self.train, self.first_stage

    @property
    def where(self) -> str:
        """The split measured, with what tells the curve from another one of the same name."""
        return ": ".join(filter(None, (self.split, self.told_apart)))

    @property
    def modes(self) -> set[str]:
        """Its mode, and that of its point without training."""
        return {self.mode, *(point.mode for line in self.points.values() for point in line)}

    @property
    def num_groups(self) -> int | None:
        """Groups that items are drawn in; None without hits."""
        return None if self.groups is None else num_groups(self.groups)

    @cached_property
    def groups(self) -> NDArray[np.int64] | None:
        """(N,) index of each item's group; None without hits."""
        return None if self.hits is None else group_indices(self.hits.groups)

    @property
    def controls(self) -> list[str]:
        """The controls there are, without the standard curve."""
        return [control for control in self.points if control != STANDARD]

    @property
    def sizes(self) -> list[int]:
        """Every number of training examples of any of the curves."""
        return sorted({point.num_train for line in self.points.values() for point in line})

    def at(self, control: str, num_train: int) -> Point | None:
        """One point, None where it was not run."""
        line = self.points.get(control, ())
        return next((point for point in line if point.num_train == num_train), None)

    def means(self, control: str = STANDARD) -> dict[int, float]:
        """Accuracy averaged over seeds, by number of examples."""
        return {point.num_train: point.mean for point in self.points.get(control, ())}

    @cached_property
    def runs(self) -> Mapping[Place, Mapping[int, Floats]]:
        """Of each control and N, by seed, what each item counts; only points with hits."""
        return {} if self.hits is None else runs_by_place(self.hits)

    def interval(self, control: str, num_train: int) -> Bounds:
        """95% interval of a point, over items and seeds; from the items alone without hits."""
        found = interval_of([(1.0, self, control, num_train)])
        point = self.at(control, num_train)
        return found if point is None or found[0] is not None else point.interval

    def estimate(self, control: str, num_train: int) -> Estimate | None:
        """A point's mean over seeds with its interval, None where it was not run."""
        point = self.at(control, num_train)
        return None if point is None else Estimate(point.mean, *self.interval(control, num_train))

    def difference(self, control: str, num_train: int) -> Difference | None:
        """Standard minus control, seed by seed; None where no seed has both."""
        standard, other = self.at(STANDARD, num_train), self.at(control, num_train)
        if standard is None or other is None:
            return None
        seeds = [seed for seed in standard.by_seed if seed in other.by_seed]
        gaps = [standard.by_seed[seed].value - other.by_seed[seed].value for seed in seeds]
        if not gaps:
            return None
        spread = stdev(gaps) if len(gaps) > 1 else None
        interval: Bounds = (None, None)
        if len(seeds) == len(standard.by_seed):
            interval = interval_of(
                [(1.0, self, STANDARD, num_train), (-1.0, self, control, num_train)]
            )
        return Difference(fmean(gaps), min(gaps), max(gaps), spread, len(gaps), interval)


def interval_of(parts: Sequence[Part]) -> Bounds:
    """95% interval of a weighted sum of points, over groups of items and seeds.

    None where a point has no recorded hits, or points were measured on other items.
    """
    if not parts or len({curve.hits and curve.hits.groups for _, curve, _, _ in parts}) > 1:
        return None, None
    found = [curve.runs.get((control, size)) for _, curve, control, size in parts]
    terms = [Term(part[0], runs) for part, runs in zip(parts, found, strict=True) if runs]
    groups = parts[0][1].groups
    if len(terms) < len(parts) or groups is None:
        return None, None
    bounds = DIFFERENCES if any(term.weight < 0 for term in terms) else SHARES
    return sum_interval(terms, groups, bounds)[1:]
