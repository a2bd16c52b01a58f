from __future__ import annotations

import pytest

from probelight.reports.kit.text import (
    between,
    count,
    listed,
    percent,
    points,
    points_between,
    probability,
    rate,
    unsigned,
    with_facts,
)


@pytest.mark.parametrize(
    ("formatted", "expected"),
    [
        (percent(0.6127), "61.3"),
        (percent(0.0), "0.0"),
        (percent(1.0), "100.0"),
        (percent(None), "–"),
        (points(0.021), "+2.1"),
        (points(-0.021), "−2.1"),
        (points(0.0001), "0.0"),
        (points(-0.0001), "0.0"),
        (unsigned(0.038), "3.8"),
        (unsigned(-0.038), "−3.8"),
        (between(0.573, 0.651), "57.3–65.1"),
        (between(None, 0.651), ""),
        (points_between(-0.005, 0.037), "−0.5 to +3.7"),
        (points_between(None, None), ""),
        (count(1234567), "1,234,567"),
        (count(None), "–"),
        (rate(1e-05), "1e-5"),
        (rate(0.001), "0.001"),
        (rate(None), "–"),
        (probability(0.0004), "< 0.001"),
        (probability(0.0312), "= 0.031"),
        (probability(None), "not recorded"),
        (with_facts(0.612, "55.0–67.1", "", "n = 100"), "61.2% (55.0–67.1, n = 100)"),
        (with_facts(0.612, ""), "61.2%"),
        (listed(["a"]), "a"),
        (listed(["a", "b", "c"]), "a, b and c"),
    ],
)
def test_numbers_for_the_eye(formatted: str, expected: str) -> None:
    assert formatted == expected
