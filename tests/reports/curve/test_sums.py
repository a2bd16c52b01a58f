from __future__ import annotations

import pytest

from probelight.metrics.learning_curve import WEIGHTS
from probelight.reports.curve.curve import Curve, Point
from probelight.reports.curve.sums import (
    best,
    estimate,
    less,
    shared,
    untrained,
    weighted,
    weighted_gap,
)
from probelight.reports.kit.measured import Estimate
from probelight.results.row import Row


def curve(**lines: dict[int, float]) -> Curve:
    """One seed, without hits, so that nothing has an interval."""
    points = {
        control: [
            Point(size, {1: Row(value=value, metric="accuracy")}) for size, value in line.items()
        ]
        for control, line in lines.items()
    }
    return Curve("m", "p", "mlp", "dev", 1e-3, 0.5, points)


CURVE = curve(standard={0: 0.5, 62: 0.6, 125: 0.9, 10: 0.95}, control={62: 0.5, 250: 0.7})


def test_a_sum_of_nothing_is_none() -> None:
    assert estimate([]) is None
    assert estimate(untrained(curve(standard={62: 0.6}))) is None


def test_the_untrained_point_and_the_best_one() -> None:
    assert estimate(untrained(CURVE)) == Estimate(0.5)
    assert estimate(best(CURVE)) == Estimate(0.95)
    assert estimate(best(CURVE, {62, 125})) == Estimate(0.9)
    assert best(curve(standard={0: 0.5})) == []


def test_weights_are_those_of_the_points_that_are_there() -> None:
    first, second = WEIGHTS[62], WEIGHTS[125]
    found = estimate(weighted(CURVE))
    assert found is not None
    assert found.value == pytest.approx((0.6 * first + 0.9 * second) / (first + second))


def test_a_gap_is_over_the_points_that_both_have() -> None:
    standard, control = (CURVE, "standard"), (CURVE, "control")
    assert [size for size, _, _ in shared(standard, control)] == [62]
    found = estimate(weighted_gap(standard, control))
    assert found is not None
    assert found.value == pytest.approx(0.1)
    assert [part[0] for part in less(weighted(CURVE))] == [-part[0] for part in weighted(CURVE)]
