"""What methods cost at equal gain: each one's curve of cost against gain, cut at one gain.

A method's settings give it a curve that begins at the model before, where nothing is gained and
nothing is lost, and goes on along neighbouring settings. Methods are compared where their curves
have the gain that all of them reach, by linear interpolation between two neighbours.
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
    """A setting of a method; gain and costs are means over items and seeds."""

    place: tuple[float, ...]  # its coordinates, each higher where it holds back less
    gain: float  # of the new task
    cost: float  # of the old one
    selected_cost: float  # the same on the items that settings are chosen with


class Cut(NamedTuple):
    """Where a curve has a gain: between two neighbours."""

    first: int | None  # index of a point; None for the model before
    second: int
    weight: float  # of the second point
    slope: float  # of cost against gain
    cost: float

    @property
    def ends(self) -> list[int]:
        """The points that it is between, without the model before."""
        return [self.second] if self.first is None else [self.first, self.second]


def edges(places: Sequence[tuple[float, ...]]) -> list[tuple[int | None, int]]:
    """Return which points are neighbours, as pairs of indices; None is the model before.

    Neighbours differ in one coordinate, with no point between them. The model before is next to
    what holds back most along a coordinate that varies, or to the only point.
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
    """Return where a method's curve has a gain above 0, at most that of its best point.

    Of several such places it is the one with the least cost on the items that settings are chosen
    with, so that the reported items have no say; of equals the first. A point that has the gain
    itself needs no neighbour: a near one of about the same gain would say nothing of the slope, so
    it is that from the model before.
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
        raise ValueError(f"no two neighbours have a gain of {gain} between them")
    return min(found, key=lambda pair: pair[0])[1]


def influences(cut: Cut, lost: Sequence[Runs], gained: Sequence[Runs]) -> tuple[Runs, Runs]:
    """Return what each item of both tasks adds to the cost at a gain, by the delta method.

    Args:
        cut: Where the curve is cut.
        lost: Of each of its ends, by seed, (N,) what each item of the old task lost.
        gained: Of each of them, by seed, (M,) what each item of the new task gained.
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
    """Return the 95% interval of a cost at a gain, or of a difference of two, that is fixed.

    It is over groups of items of both tasks and over seeds.

    Args:
        value: The estimate.
        parts: Weights, such as 1 and -1 of a difference, and the `influences` of what they are of.
        groups: The group of each item of the old task, and of the new one.
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
