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


class Point(NamedTuple):
    """A setting of a method; gain and costs are means over items and seeds.

    Attributes:
        place: Coordinates of the setting; a higher coordinate holds the model back less.
        gain: Gain on the new task.
        cost: Cost on the old task.
        selected_cost: Cost on the items that are used to choose settings.
    """

    place: tuple[float, ...]
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


def edges(places: Sequence[tuple[float, ...]]) -> list[tuple[int | None, int]]:
    """Return which points are neighbours, as pairs of indices; None is the model before training.

    Neighbours differ in one coordinate, and no point is between them. The neighbours of the model
    before training are the points that hold it back most along a coordinate that varies, or the
    only point.

    Args:
        places: Coordinates of each point.
    """
    found: dict[tuple[int | None, int], None] = {}
    for axis in range(len(places[0])):
        lines: dict[tuple[float, ...], list[int]] = {}
        for index in sorted(range(len(places)), key=lambda index: places[index][axis]):
            place = places[index]
            lines.setdefault((*place[:axis], *place[axis + 1 :]), []).append(index)
        if len({place[axis] for place in places}) > 1 or len(places) == 1:
            for first, *others in lines.values():
                found |= dict.fromkeys([(None, first), *pairwise([first, *others])])
    return [*found]


def cut_at(points: Sequence[Point], gain: float) -> Cut:
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
    before = Point((), 0.0, 0.0, 0.0)
    found = [
        (round(point.selected_cost, 9), Cut(None, index, 1.0, point.cost / gain, point.cost))
        for index, point in enumerate(points)
        if math.isclose(point.gain, gain, rel_tol=0, abs_tol=1e-12)
    ]
    for first, second in edges([point.place for point in points]):
        a, b = before if first is None else points[first], points[second]
        if a.gain != b.gain and min(a.gain, b.gain) <= gain <= max(a.gain, b.gain):
            weight = (gain - a.gain) / (b.gain - a.gain)
            slope = (b.cost - a.cost) / (b.gain - a.gain)
            selected, cost = (
                (1 - weight) * start + weight * end
                for start, end in ((a.selected_cost, b.selected_cost), (a.cost, b.cost))
            )
            found.append((round(selected, 9), Cut(first, second, weight, slope, cost)))
    if not found:
        raise ValueError(f"a gain of {gain} is not between any two neighbours")
    return min(found, key=lambda pair: pair[0])[1]


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
        found = {
            seed: np.sum([times * w * end[seed] for w, end in zip(weights, ends, strict=True)], 0)
            for seed in ends[-1]
        }
        mean = float(np.mean(list(found.values())))
        return {seed: values - mean for seed, values in found.items()}

    return mixed(lost, 1.0), mixed(gained, -cut.slope)


def bounds_of(
    value: float,
    parts: Sequence[tuple[float, tuple[Runs, Runs]]],
    groups: Sequence[Groups],
) -> tuple[float, float]:
    """Return the 95% interval of a cost at a fixed gain, or of the difference of two such costs.

    It covers the variation over groups of items of both tasks and over seeds.

    Args:
        value: The estimate.
        parts: A weight for each cost (1 and -1 for a difference), and its `influences`.
        groups: (N,) the group of each item of the old task, and (M,) of the new task.
    """
    if min(map(num_groups, groups)) < 2:
        return -1.0, 1.0  # nothing is known of how groups of one task differ
    number = sum(map(len, groups))
    # One list of items, whose mean is the sum of the means over the items of either task. Numbers
    # of each are about their mean, which is made up for where groups are few.
    effective = [num_effective(of_task) for of_task in groups]
    scales = [
        number / len(of_task) * math.sqrt(kish / (kish - 1))
        for of_task, kish in zip(groups, effective, strict=True)
    ]
    terms = [
        Term(
            weight,
            {
                seed: np.concatenate([scales[0] * lost[seed], scales[1] * gained[seed]])
                for seed in lost
            },
        )
        for weight, (lost, gained) in parts
    ]
    every = [(task, group) for task, of_task in enumerate(groups) for group in of_task]
    _, low, high = sum_interval(terms, every, DIFFERENCES)
    return value + low, value + high
