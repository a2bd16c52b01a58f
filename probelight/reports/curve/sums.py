"""Weighted sums of points of learning curves, of which each score of a curve is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from probelight.metrics.learning_curve import best_size, weights_over
from probelight.probes.controls import STANDARD
from probelight.reports.curve.curve import Curve, Part, interval_of
from probelight.reports.kit.measured import Estimate

Line = tuple[Curve, str]  # a curve under a control
Place = tuple[Curve, str, int]


def estimate(parts: Sequence[Part]) -> Estimate | None:
    """A weighted sum of points and its interval; None where there are no points."""
    if not parts:
        return None
    value = sum(weight * curve.means(control)[size] for weight, curve, control, size in parts)
    return Estimate(value, *interval_of(parts))


def untrained(curve: Curve) -> list[Part]:
    """The point without training."""
    return [(1.0, curve, STANDARD, 0)] if 0 in curve.means() else []


def weighted(curve: Curve) -> list[Part]:
    """The points of WS."""
    weights = weights_over(curve.means())
    return [(weight, curve, STANDARD, size) for size, weight in weights.items()]


def best(curve: Curve, among: Iterable[int] | None = None) -> list[Part]:
    """The best trained point, among all or those of some sizes."""
    means = curve.means()
    trained = {n: means[n] for n in (means if among is None else among) if n > 0}
    return [(1.0, curve, STANDARD, best_size(trained))] if trained else []


def weighted_gap(one: Line, other: Line) -> list[Part]:
    """One line minus another over the points both have."""
    places = {size: (ours, theirs) for size, ours, theirs in shared(one, other)}
    ours: list[Part] = []
    theirs: list[Part] = []
    for size, weight in weights_over(places).items():
        first, second = places[size]
        ours.append((weight, *first))
        theirs.append((weight, *second))
    return [*ours, *less(theirs)]


def less(parts: Sequence[Part]) -> list[Part]:
    """The same parts taken away."""
    return [(-weight, curve, control, size) for weight, curve, control, size in parts]


def shared(one: Line, other: Line) -> list[tuple[int, Place, Place]]:
    """The points that both lines have."""
    theirs = other[0].means(other[1])
    return [(n, (*one, n), (*other, n)) for n in one[0].means(one[1]) if n in theirs]
