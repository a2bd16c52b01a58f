"""Results rows of accuracies."""

import math

import pytest

from probelight.probes.record import Record
from probelight.protocols.engine.predictions import (
    Predictions,
    accuracy_row,
    grouped_row,
    members,
    near_tie_notices,
    near_tied_row,
    proportion_row,
    score_notices,
    subset_rows,
    tied_row,
    untouched_of,
)
from probelight.results.row import Row
from tests.fixtures import subsets

ITEMS = [Record(str(i), "What?", ("a", "b", "c"), 0) for i in range(4)]


def test_ties_count_a_share_and_a_nan_nothing() -> None:
    scores = [[1.0, 1.0, 1.0], [0.0, 2.0, 2.0], [0.0, -1.0, -math.inf], [5.0, math.nan, 0.0]]
    said = Predictions("p", ITEMS, scores)
    assert said.best == [(0, 1, 2), (1, 2), (0,), ()]
    assert said.chosen == [0, 1, 0, None]
    assert said.credit == [1 / 3, 0.0, 1.0, 0.0]
    assert said.accuracy == pytest.approx(1 / 3)
    row = accuracy_row(said, range(4), Row(model="m"))
    assert (row.model, row.metric) == ("m", "accuracy")
    assert (row.value, row.num_items) == (pytest.approx(1 / 3), 4)
    assert tied_row(said, Row()) == Row(metric="tied_share", value=0.5, num_items=4)
    ties, lost = score_notices(said)
    assert ties.startswith("2 of 4 items of p are ties")
    assert lost == "1 of 4 items of p have a score that is not a number (NaN) and count as wrong"
    together = score_notices(said, said)
    assert together[0].startswith("4 of 8 answers in 2 sets are ties")
    x, y = subsets.template("x"), subsets.template("y")
    parts = subset_rows(said, range(4), [x, x, y, None], Row(metric="m"))
    assert [(part.metric, part.subset, part.value) for part in parts] == [
        ("m", x, 1 / 6),
        ("m", y, 1.0),
    ]


def test_the_items_of_parts_are_found_by_the_text_of_the_part() -> None:
    x, y = subsets.template("x"), subsets.template("y")
    assert list(members([y, x, None, y]).items()) == [(x, [1]), (y, [0, 3])]
    assert members(untouched_of([True, False, True])) == {subsets.UNTOUCHED: [0, 2]}
    assert members(untouched_of([True, True])) == members(untouched_of([False])) == {}


def test_without_ties_there_is_nothing_to_say() -> None:
    said = Predictions("p", ITEMS[:1], [[1.0, 0.0, 0.5]])
    assert (score_notices(said), tied_row(said, Row()).value) == ([], 0.0)
    assert (near_tie_notices(said), near_tied_row(said, Row()).value) == ([], 0.0)


def test_near_ties_are_counted_beside_the_ties() -> None:
    said = Predictions("p", ITEMS, [[1.0, 1.0, 0.0], [0.0, 5e-5, -1.0], [0.0, 1.0, 2.0], [0.0] * 3])
    assert near_tied_row(said, Row()) == Row(metric="near_tied_share", value=0.25, num_items=4)
    [notice] = near_tie_notices(said)
    assert notice.startswith("1 of 4 items of p are near-ties: the best score is less than 0.0001")


def test_items_that_stand_alone_have_wilsons_interval() -> None:
    row = grouped_row([True] * 8 + [False] * 2, [str(i) for i in range(10)], Row(metric="accuracy"))
    # Wilson (1927) for 8 of 10.
    assert (row.value, row.num_items, row.metric) == (0.8, 10, "accuracy")
    assert (row.ci_low, row.ci_high) == pytest.approx((0.4902, 0.9433), abs=1e-4)


def test_groups_that_stand_or_fall_together_count_once() -> None:
    # Ten groups of ten questions, each wholly right or wholly wrong: ten throws of a coin, not a
    # hundred. The jackknife's variance of the mean is 0.25 / 9, two answers of ten added to it are
    # 2 / (100 * 10); Student's t with 9 degrees of freedom is 2.2622. Wilson's interval of
    # (0.25 + 2 / 100) (1.96 / 2.2622)^2 / (0.25 / 9 + 0.002) = 6.806 throws:
    correct = [group % 2 == 0 for group in range(10) for _ in range(10)]
    groups = [str(group) for group in range(10) for _ in range(10)]
    row = grouped_row(correct, groups, Row(metric="accuracy"))
    assert row.value == 0.5
    assert (row.ci_low, row.ci_high) == pytest.approx((0.1997, 0.8003), abs=1e-4)
    alone = proportion_row(50, 100, Row())
    assert _width(row) > 2.5 * _width(alone)


def _width(row: Row) -> float:
    assert row.ci_low is not None
    assert row.ci_high is not None
    return row.ci_high - row.ci_low
