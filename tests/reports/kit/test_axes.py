from __future__ import annotations

import math

import pytest

from probelight.reports.figure import apart, limits, log_positions, short_count


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([10.0, 30.0], [10.0, 30.0]),  # far enough apart: not moved
        ([10.0, 10.0], [8.0, 12.0]),
        ([12.0, 10.0], [13.0, 9.0]),  # the order stays
        ([10.0, 11.0, 12.0], [7.0, 11.0, 15.0]),
        ([0.0, 10.0, 10.0], [0.0, 8.0, 12.0]),
        ([], []),
    ],
)
def test_labels_are_moved_apart(values: list[float], expected: list[float]) -> None:
    assert apart(values, 4.0) == pytest.approx(expected)


def test_zero_examples_stand_left_of_the_log_axis() -> None:
    positions = log_positions([0, 64, 128, 1024])
    assert positions[128] - positions[64] == pytest.approx(1.0)
    assert positions[1024] == pytest.approx(10.0)
    assert positions[0] < math.log2(64)
    assert log_positions([0]) == {0: 0.0}


def test_short_counts() -> None:
    assert [short_count(n) for n in (0, 62, 1000, 1500, 4000)] == ["0", "62", "1k", "1,500", "4k"]


def test_limits_hold_what_is_shown() -> None:
    assert limits([0.5, None, 0.7]) == pytest.approx((46.0, 74.0))
    assert limits([0.0, 1.0]) == pytest.approx((0.0, 102.0))
