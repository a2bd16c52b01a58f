from __future__ import annotations

import math

import pytest

from probelight.reports import words
from probelight.results.details import WatchDetails
from probelight.results.load import Run
from probelight.results.row import Row


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
    assert words.when_of(run, size) == when


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (words.percent(0.6127), "61.3"),
        (words.percent(0.0), "0.0"),
        (words.percent(1.0), "100.0"),
        (words.percent(None), "–"),
        (words.percent(math.nan), "–"),
        (words.points(0.021), "+2.1"),
        (words.points(-0.021), "−2.1"),
        (words.points(0.0001), "0.0"),
        (words.points(-0.0001), "0.0"),
        (words.points(math.nan), "–"),
        (words.between(0.573, 0.651), "57.3–65.1"),
        (words.between(-0.05, 0.01), "−5.0 to 1.0"),
        (words.between(None, 0.651), ""),
        (words.between(0.5, math.nan), ""),
        (words.points_between(-0.005, 0.037), "−0.5 to +3.7"),
        (words.points_between(None, None), ""),
        (words.count(1234567), "1,234,567"),
        (words.count(None), "–"),
        (words.short_count(62), "62"),
        (words.short_count(1000), "1k"),
        (words.short_count(1500), "1.5k"),
        (words.short_count(1234), "1,234"),
        (words.short_count(2_000_000), "2M"),
        (words.sample(1234, None), "n = 1,234"),
        (words.sample(60, 60), "n = 60"),
        (words.sample(60, 6), "n = 60 in only 6 groups"),
        (words.sample(60, 1), "n = 60 in only 1 group"),
        (words.sample(600, 130), "n = 600 in 130 groups"),
        (words.sample(None, None), ""),
        (words.rate(1e-05), "1e-5"),
        (words.rate(0.001), "0.001"),
        (words.rate(None), "–"),
        (words.probability(0.0004), "< 0.001"),
        (words.probability(0.0312), "= 0.031"),
        (words.probability(None), "not recorded"),
        (words.way("zero_shot"), ""),
        (words.way("pseudo_log_likelihood"), "pseudo log likelihood"),
        (words.in_words("age_comparison"), "age comparison"),
        (words.in_words("taxonomy_small"), "taxonomy (small)"),
        (words.listed(["a"]), "a"),
        (words.listed(["a", "b", "c"]), "a, b and c"),
    ],
)
def test_numbers_and_names_for_the_eye(written: str, expected: str) -> None:
    assert written == expected


def test_nothing_and_not_a_number_are_missing() -> None:
    assert all(map(words.missing, (None, math.nan)))
    assert not any(map(words.missing, (0, 0.0, "")))
