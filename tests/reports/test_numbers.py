from __future__ import annotations

import math

import pytest

from probelight.reports.numbers import (
    Estimate,
    between,
    chance_levels,
    count,
    in_words,
    listed,
    percent,
    points,
    points_between,
    probability,
    rate,
    sample,
    scored_by,
    short_count,
    verdict_of,
    when_of,
)
from probelight.results.details import WatchDetails
from probelight.results.load import Run, RunSet
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


def test_an_estimate_of_a_row_of_a_frame_has_no_ends_that_are_not_numbers() -> None:
    assert Estimate.of(Row(value=0.5, ci_low=math.nan, ci_high=0.6)) == Estimate(0.5, None, 0.6)


def test_chance_is_that_of_the_real_choices() -> None:
    rows = (
        Row(probe="p", metric="chance", value=0.25),
        Row(probe="p", metric="floor", value=0.5),
        Row(probe="q", metric="chance_probe", value=0.2),
    )
    results = RunSet("made", (Run(protocol="zero_shot", rows=rows, key="a", path="runs/a"),))
    assert chance_levels(results) == {"p": 0.5, "q": 0.2}


@pytest.mark.parametrize(
    ("row", "details", "size", "when"),
    [
        (Row(kind="transformer"), (), 0, "before training"),
        (Row(kind="transformer"), (), 1000, "after 1,000 examples"),
        (Row(kind="imported"), (), 0, "in the imported scores"),
        (Row(kind="recorded"), (), 0, "in the recorded outputs"),
        (Row(protocol="watch"), (WatchDetails(step=1200),), 0, "at step 1,200"),
    ],
)
def test_a_run_tells_when_its_model_answered(
    row: Row, details: tuple[WatchDetails, ...], size: int, when: str
) -> None:
    run = Run(protocol=row.protocol, rows=(row,), details=details)
    assert when_of(run, size) == when


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (percent(0.6127), "61.3"),
        (percent(0.0), "0.0"),
        (percent(1.0), "100.0"),
        (percent(None), "–"),
        (percent(math.nan), "–"),
        (points(0.021), "+2.1"),
        (points(-0.021), "−2.1"),
        (points(0.0001), "0.0"),
        (points(-0.0001), "0.0"),
        (points(0.29 - 0.2025), "+8.8"),  # 0.0875, in floats a little less
        (points(0.2025 - 0.29), "−8.8"),
        (points(math.nan), "–"),
        (between(0.573, 0.651), "57.3–65.1"),
        (between(-0.05, 0.01), "−5.0 to 1.0"),
        (between(None, 0.651), ""),
        (between(0.5, math.nan), ""),
        (points_between(-0.005, 0.037), "−0.5 to +3.7"),
        (points_between(None, None), ""),
        (count(1234567), "1,234,567"),
        (count(None), "–"),
        (short_count(62), "62"),
        (short_count(1000), "1k"),
        (short_count(1500), "1.5k"),
        (short_count(1234), "1,234"),
        (short_count(2_000_000), "2M"),
        (sample(1234, None), "n = 1,234"),
        (sample(60, 60), "n = 60"),
        (sample(60, 6), "n = 60 in only 6 groups"),
        (sample(60, 1), "n = 60 in only 1 group"),
        (sample(600, 130), "n = 600 in 130 groups"),
        (sample(None, None), ""),
        (rate(1e-05), "1e-5"),
        (rate(0.001), "0.001"),
        (rate(None), "–"),
        (probability(0.0004), "< 0.001"),
        (probability(0.0312), "= 0.031"),
        (probability(None), "not recorded"),
        (scored_by("zero_shot"), ""),
        (scored_by("pseudo_log_likelihood"), "pseudo log likelihood"),
        (in_words("age_comparison"), "age comparison"),
        (in_words("taxonomy_small"), "taxonomy (small)"),
        (listed(["a"]), "a"),
        (listed(["a", "b", "c"]), "a, b and c"),
    ],
)
def test_numbers_and_names_for_the_eye(text: str, expected: str) -> None:
    assert text == expected
