from __future__ import annotations

import pytest

from probelight.metrics.comparisons.independent import independent_difference
from probelight.metrics.intervals import Interval, wilson


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [  # Newcombe 1998, table II, method 10
        ((56, 70), (48, 80), (0.2000, 0.0524, 0.3339)),
        ((9, 10), (3, 10), (0.6000, 0.1705, 0.8090)),
        ((10, 10), (0, 20), (1.0000, 0.6791, 1.0000)),
        ((5, 56), (0, 29), (0.0893, -0.0381, 0.1926)),
    ],
)
def test_differences_as_newcombe_printed_them(
    one: tuple[int, int], other: tuple[int, int], expected: tuple[float, float, float]
) -> None:
    both = [Interval(right / n, *wilson(right, n)) for right, n in (one, other)]
    assert independent_difference(*both) == pytest.approx(expected, abs=5e-5)


def test_the_other_way_round_is_the_negative() -> None:
    one, other = Interval(0.5, 0.4, 0.7), Interval(0.2, 0.1, 0.25)
    there, back = independent_difference(one, other), independent_difference(other, one)
    assert back == pytest.approx((-there.value, -there.high, -there.low))
