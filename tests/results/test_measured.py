"""Results rows of accuracies."""

from __future__ import annotations

import math

import pytest

from probelight.probes.record import Record
from probelight.results import measured
from probelight.results.measured import Predictions
from probelight.results.row import Row
from tests.fixtures import subsets

ITEMS = [Record(str(i), "What?", ("a", "b", "c"), 0) for i in range(4)]
X, Y = subsets.template("x"), subsets.template("y")


def test_ties_count_a_share_and_a_nan_nothing() -> None:
    scores = [[1.0, 1.0, 1.0], [0.0, 2.0, 2.0], [0.0, -1.0, -math.inf], [5.0, math.nan, 0.0]]
    predictions = Predictions("p", ITEMS, scores)
    assert predictions.best == [(0, 1, 2), (1, 2), (0,), ()]
    assert predictions.chosen == [0, 1, 0, None]
    assert predictions.item_scores == [1 / 3, 0.0, 1.0, 0.0]
    assert predictions.accuracy == pytest.approx(1 / 3)
    row = measured.accuracy_row(predictions, range(4), Row(model="m"))
    assert (row.model, row.metric) == ("m", "accuracy")
    assert (row.value, row.num_items) == (pytest.approx(1 / 3), 4)
    assert measured.tied_row(predictions, Row()) == Row(metric="tied_share", value=0.5, num_items=4)
    ties, lost = measured.score_notices(predictions)
    assert ties.startswith("2 of 4 items of p are ties")
    assert lost == "1 of 4 items of p have a score that is not a number (NaN) and count as wrong"
    together = measured.score_notices(predictions, predictions)
    assert together[0].startswith("4 of 8 answers in 2 sets are ties")
    subset_rows = measured.subset_rows(predictions, range(4), [X, X, Y, None], Row(metric="m"))
    triples = [(row.metric, row.subset, row.value) for row in subset_rows]
    assert triples == [("m", X, 1 / 6), ("m", Y, 1.0)]


def test_the_items_of_parts_are_found_by_the_text_of_the_part() -> None:
    assert list(measured.members([Y, X, None, Y]).items()) == [(X, [1]), (Y, [0, 3])]
    some = measured.untouched_of([True, False, True])
    assert measured.members(some) == {subsets.UNTOUCHED: [0, 2]}
    for all_or_none in ([True, True], [False]):
        assert measured.members(measured.untouched_of(all_or_none)) == {}


def test_near_ties_are_counted_next_to_the_ties() -> None:
    near = Predictions("p", ITEMS, [[1.0, 1.0, 0.0], [0.0, 5e-5, -1.0], [0.0, 1.0, 2.0], [0.0] * 3])
    row = measured.near_tied_row(near, Row())
    assert row == Row(metric="near_tied_share", value=0.25, num_items=4)
    [notice] = measured.near_tie_notices(near)
    assert notice.startswith("1 of 4 items of p are near-ties: the best score is less than 0.0001")
    clear = Predictions("p", ITEMS[:1], [[1.0, 0.0, 0.5]])
    assert measured.score_notices(clear) == measured.near_tie_notices(clear) == []
    shares = measured.tied_row(clear, Row()), measured.near_tied_row(clear, Row())
    assert [row.value for row in shares] == [0.0, 0.0]


def test_groups_that_are_right_or_wrong_as_a_whole_count_once() -> None:
    # Ten groups of ten questions, each wholly right or wholly wrong: ten throws of a coin, not a
    # hundred. The jackknife's variance of the mean is 0.25 / 9, two answers of ten added to it are
    # 2 / (100 * 10); Student's t with 9 degrees of freedom is 2.2622. Wilson's interval of
    # (0.25 + 2 / 100) (1.96 / 2.2622)^2 / (0.25 / 9 + 0.002) = 6.806 throws:
    groups = [group for group in range(10) for _ in range(10)]
    row = measured.grouped_row([group % 2 for group in groups], groups, Row(metric="accuracy"))
    assert (row.metric, row.value, row.num_items, row.num_groups) == ("accuracy", 0.5, 100, 10)
    assert (row.ci_low, row.ci_high) == pytest.approx((0.1997, 0.8003), abs=1e-4)
