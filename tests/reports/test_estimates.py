from __future__ import annotations

import math

import pytest

from probelight.reports.estimates import Estimate, chance_levels, verdict_of
from probelight.results.load import Results, Run
from probelight.results.row import Row

Bounds = tuple[float | None, float | None]


@pytest.mark.parametrize(
    ("bounds", "majority", "verdict"),
    [
        ((0.51, 0.6), None, "above"),
        ((0.5, 0.6), None, "not distinguishable"),
        ((0.4, 0.5), None, "not distinguishable"),
        ((0.3, 0.49), None, "below"),
        ((None, 0.49), None, "unknown"),
        ((math.nan, math.nan), None, "unknown"),
        ((0.51, 0.6), 0.5, "above"),
        ((0.51, 0.6), math.nan, "above"),
        ((0.51, 0.6), 0.51, "not above the majority"),
        ((0.51, 0.6), 0.7, "not above the majority"),
        ((0.45, 0.6), 0.7, "not distinguishable"),
        ((0.4, 0.49), 0.7, "below"),
    ],
)
def test_the_verdict_is_where_the_interval_lies(
    bounds: Bounds, majority: float | None, verdict: str
) -> None:
    assert verdict_of(bounds, 0.5, majority) == verdict
    assert verdict_of(bounds, None, majority) == verdict_of(bounds, math.nan) == "unknown"


def test_a_cost_seen_as_a_gain_has_its_ends_exchanged() -> None:
    assert Estimate(0.02, -0.01, 0.05).negative == Estimate(-0.02, -0.05, 0.01)
    assert Estimate(0.02).negative == Estimate(-0.02)
    assert Estimate(0.02, -0.01, 0.05).bounds == (-0.01, 0.05)


def test_an_estimate_of_a_row_of_a_frame_has_no_ends_that_are_not_numbers() -> None:
    assert Estimate.of(Row(value=0.5, ci_low=math.nan, ci_high=0.6)) == Estimate(0.5, None, 0.6)


def test_chance_is_that_of_the_real_choices() -> None:
    rows = (
        Row(probe="p", metric="chance", value=0.25),
        Row(probe="p", metric="floor", value=0.5),
        Row(probe="q", metric="chance_probe", value=0.2),
    )
    results = Results("made", (Run(protocol="zero_shot", rows=rows, key="a", path="runs/a"),))
    assert chance_levels(results) == {"p": 0.5, "q": 0.2}
