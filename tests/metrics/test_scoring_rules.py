"""The rules, worked out by hand on probabilities whose logarithms are taken."""

from __future__ import annotations

import math
from math import log

import pytest

from probelight.metrics.scoring_rules import calibrated, divided, pmi, same_order

INF, NAN = math.inf, math.nan


def test_scores_are_divided_by_their_lengths() -> None:
    assert divided([-6.0, -4.0], [3, 1]) == [-2.0, -4.0]
    assert divided([-INF, -4.0], [2, 4]) == [-INF, -1.0]


def test_pmi_takes_off_what_the_choice_has_anywhere() -> None:
    # 0.2 where 0.4 is usual is less than 0.1 where 0.05 is.
    scores = pmi([log(0.2), log(0.1)], [log(0.4), log(0.05)])
    assert scores == pytest.approx([log(0.5), log(2)])
    assert math.isnan(pmi([-INF], [-INF])[0])


def test_calibrated_probabilities() -> None:
    # Of the item 3/4 and 1/4. Without content 3/4, 1/4 and 9/10, 1/10: their means are 33/40, 7/40,
    # and the quotients 30/33, 10/7; they add up to 180/77.
    probabilities = calibrated([log(0.3), log(0.1)], [[log(0.6), log(0.2)], [log(0.09), log(0.01)]])
    assert probabilities == pytest.approx([30 / 33 * 77 / 180, 10 / 7 * 77 / 180])
    assert sum(probabilities) == pytest.approx(1)


def test_even_content_free_stems_leave_probabilities_as_they_are() -> None:
    # (3/4 + 1/4) / 2 = 1/2 each: it does not count how likely the choices of a stem are.
    far = [[log(0.6), log(0.2)], [-2000 + log(0.25), -2000 + log(0.75)]]
    for stems in ([[-5.0, -5.0]] * 3, far):
        assert calibrated([log(0.3), log(0.1)], stems) == pytest.approx([0.75, 0.25])


def test_log_likelihoods_too_small_for_a_probability_are_calibrated() -> None:
    # e^-900 is no number, yet the first choice is e^100 times as likely as without content.
    probabilities = calibrated([-900.0, 0.0], [[-1000.0, 0.0]])
    assert probabilities == pytest.approx([1.0, math.exp(-100)])


def test_what_is_no_number_gives_no_scores() -> None:
    for first in ([NAN, 0.0], [0.0, NAN], [-INF, -INF]):
        assert all(map(math.isnan, calibrated(first, [[0.0, 0.0]])))
    assert all(map(math.isnan, calibrated([-INF, 0.0], [[-INF, 0.0]])))
    assert calibrated([-INF, 0.0], [[0.0, 0.0]]) == [0.0, 1.0]
    assert calibrated([5.0], [[1.0]]) == [1.0]


@pytest.mark.parametrize(
    ("sizes", "other_sizes", "same"),
    [
        ([], [], True),
        ([[2, 2, 2], [5, 5]], [[1, 1, 1], [1, 1]], True),
        ([[1, 1, 1], [1, 2]], [[1, 1, 1], [1, 1]], False),
        ([[1, 2], [3, 6]], [[2, 4], [1, 2]], True),
        ([[1, 2], [3, 6]], [[2, 4], [1, 3]], False),
    ],
)
def test_rules_are_one_where_sizes_are_in_proportion(
    sizes: list[list[int]], other_sizes: list[list[int]], same: bool
) -> None:
    assert same_order(sizes, other_sizes) is same
