"""What methods against forgetting cost at equal gain, read off their curves of cost against gain.

A method's settings form a curve. It begins at the model before training, where nothing is gained or
lost, and continues along neighbouring settings. Methods are compared at a gain that all of them
reach, with linear interpolation between two neighbouring settings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from probelight.metrics.intervals import (
    DIFFERENCES,
    Floats,
    Groups,
    Term,
    num_effective,
    num_groups,
    sum_interval,
)

Runs = Mapping[int, Floats]  # by seed, (N,) a number of each item


class TradeOff(NamedTuple):
    """A setting of a method; gain and costs are means over items and seeds.

    Attributes:
        coordinates: Coordinates of the setting; a higher coordinate holds the model back less.
        gain: Gain on the new task.
        cost: Cost on the old task.
        selected_cost: Cost on the items that are used to choose settings.
    """

    coordinates: tuple[float, ...]
    gain: float
    cost: float
    selected_cost: float


class Cut(NamedTuple):
    """The place between two neighbouring points where a curve has a certain gain.

    Attributes:
        first: Index of the first point; None for the model before training.
        second: Index of the second point.
        weight: Weight of the second point in the interpolation.
        slope: Slope of cost against gain.
        cost: Cost at this gain.
    """

    first: int | None
    second: int
    weight: float
    slope: float
    cost: float

    @property
    def ends(self) -> list[int]:
        """Indices of the points that it lies between, without the model before training."""
        return [self.second] if self.first is None else [self.first, self.second]


def edges(points: Sequence[tuple[float, ...]]) -> list[tuple[int | None, int]]:
    """Return which points are neighbours, as pairs of indices; None is the model before training.

    Neighbours differ in one coordinate, and no point is between them. The neighbours of the model
    before training are the points that hold it back most along a coordinate that varies, or the
    only point.

    Args:
        points: Coordinates of each point.
    """
    neighbours: dict[tuple[int | None, int], None] = {}
    for axis in range(len(points[0])):
        lines: dict[tuple[float, ...], list[int]] = {}
        for index in sorted(range(len(points)), key=lambda index: points[index][axis]):
            point = points[index]
            lines.setdefault((*point[:axis], *point[axis + 1 :]), []).append(index)
        if len({point[axis] for point in points}) > 1 or len(points) == 1:
            for line in lines.values():
                neighbours |= dict.fromkeys([(None, line[0]), *pairwise(line)])
    return [*neighbours]


def cut_at(points: Sequence[TradeOff], gain: float) -> Cut:
    """Return where a method's curve has a certain gain.

    If there are several such places, it is the one with the least cost on the items that are used
    to choose settings, so that the reported items do not influence the choice; of equals, the
    first. A point that has exactly this gain needs no neighbour. Its slope is measured from the
    model before training, because a neighbour with about the same gain would tell nothing about the
    slope.

    Args:
        points: The settings of the method.
        gain: The gain, above 0 and at most that of the best point.

    Raises:
        ValueError: If the curve does not have this gain.
    """
    untrained = TradeOff((), 0.0, 0.0, 0.0)
    cuts = [
        (round(point.selected_cost, 9), Cut(None, index, 1.0, point.cost / gain, point.cost))
        for index, point in enumerate(points)
        if math.isclose(point.gain, gain, rel_tol=0, abs_tol=1e-12)
    ]
    for first, second in edges([point.coordinates for point in points]):
        a, b = untrained if first is None else points[first], points[second]
        if a.gain != b.gain and min(a.gain, b.gain) <= gain <= max(a.gain, b.gain):
            weight = (gain - a.gain) / (b.gain - a.gain)
            slope = (b.cost - a.cost) / (b.gain - a.gain)
            selected, cost = (
                (1 - weight) * start + weight * end
                for start, end in ((a.selected_cost, b.selected_cost), (a.cost, b.cost))
            )
            cuts.append((round(selected, 9), Cut(first, second, weight, slope, cost)))
    if not cuts:
        raise ValueError(f"a gain of {gain} is not between any two neighbours")
    return min(cuts, key=lambda pair: pair[0])[1]


def influences(cut: Cut, lost: Sequence[Runs], gained: Sequence[Runs]) -> tuple[Runs, Runs]:
    """Return how much each item of both tasks influences the cost at a gain, by the delta method.

    Args:
        cut: Where the curve has this gain.
        lost: For each of its ends, by seed, (N,) what each item of the old task lost.
        gained: For each of its ends, by seed, (M,) what each item of the new task gained.

    Returns:
        By seed, (N,) influences of the old task's items and (M,) of the new task's.
    """
    weights = (1 - cut.weight, cut.weight)[-len(lost) :]

    def mixed(ends: Sequence[Runs], times: float) -> Runs:
        totals = {
            seed: np.sum([times * w * end[seed] for w, end in zip(weights, ends, strict=True)], 0)
            for seed in ends[-1]
        }
        mean = float(np.mean(list(totals.values())))
        return {seed: values - mean for seed, values in totals.items()}

    return mixed(lost, 1.0), mixed(gained, -cut.slope)


def cost_bounds(
    value: float,
    weighted_influences: Sequence[tuple[float, tuple[Runs, Runs]]],
    groups: Sequence[Groups],
) -> tuple[float, float]:
    """Return the 95% interval of a cost at a fixed gain, or of the difference of two such costs.

    It covers the variation over groups of items of both tasks and over seeds.

    Args:
        value: The estimate.
        weighted_influences: Weight (1 and -1 for a difference) and `influences` of each cost.
        groups: (N,) the group of each item of the old task, and (M,) of the new task.
    """
    if min(map(num_groups, groups)) < 2:
        return -1.0, 1.0  # nothing is known of how groups of one task differ
    num_items = sum(map(len, groups))
    # One list of items, whose mean is the sum of the means over the items of either task. Numbers
    # of each are about their mean, which is made up for where groups are few.
    effective = [num_effective(task_groups) for task_groups in groups]
    scales = [
        num_items / len(task_groups) * math.sqrt(kish / (kish - 1))
        for task_groups, kish in zip(groups, effective, strict=True)
    ]
    terms = [
        Term(
            weight,
            {
                seed: np.concatenate([scales[0] * lost[seed], scales[1] * gained[seed]])
                for seed in lost
            },
        )
        for weight, (lost, gained) in weighted_influences
    ]
    all_groups = [(task, group) for task, task_groups in enumerate(groups) for group in task_groups]
    _, low, high = sum_interval(terms, all_groups, DIFFERENCES)
    return value + low, value + high
