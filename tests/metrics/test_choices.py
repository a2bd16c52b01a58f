"""Which choices are best, worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from probelight.metrics.choices import (
    best_choices,
    best_of_each,
    is_near_tie,
    item_score,
    macro_accuracy,
    majority_accuracy,
    predicted_shares,
)

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([1.0, 2.0, 0.0], (1,)),
        ([2.0, 1.0, 2.0], (0, 2)),
        ([0.0, 0.0, 0.0, 0.0], (0, 1, 2, 3)),
        ([0.0, -0.0], (0, 1)),
        ([-INF, -3.0], (1,)),  # the lowest score there is
        ([-INF, -INF], (0, 1)),
        ([INF, INF, 0.0], (0, 1)),
        ([1.0, NAN], ()),  # no score: nothing is best
        ([NAN, NAN], ()),
        ([1.0, 1.0 + 2**-23], (1,)),  # the next number in single precision is no tie
        ([], ()),
    ],
)
def test_best_of_one_item(scores: list[float], best: tuple[int, ...]) -> None:
    assert best_of_each([scores]) == [best]
    # Beside wider items, so that it is padded.
    assert best_of_each([[5.0, 5.0, 5.0, 5.0, 5.0], scores]) == [(0, 1, 2, 3, 4), best]
    row = torch.tensor([[*scores, 0.0]], dtype=torch.float64)  # as batches are judged
    mask = torch.tensor([[*[True] * len(scores), False]])
    assert tuple(best_choices(row, mask)[0].nonzero()[:, 0].tolist()) == best


@pytest.mark.parametrize(
    ("scores", "is_near"),
    [
        ([0.0, 9e-5, -7.0], True),
        ([0.0, 1.1e-4], False),
        ([2.0, 2.0, 2.0 - 5e-5], False),  # a tie of two; who is third decides nothing
        ([-3.0, -3.0 - 2**-20], True),
        ([-INF, -INF], False),
        ([INF, INF], False),
        ([0.0, -INF], False),
        ([0.0, 5e-5, NAN], False),
        ([NAN, 0.0, 5e-5], False),
        ([1.0], False),
        ([], False),
    ],
)
def test_scores_within_rounding_are_near_ties(scores: list[float], is_near: bool) -> None:
    assert is_near_tie(scores) is is_near


def test_what_stands_where_no_choice_is_does_not_matter() -> None:
    scores = torch.tensor([[-INF, -INF, INF], [1.0, 0.0, NAN], [0.0, 0.0, 0.0]])
    mask = torch.tensor([[True, True, False], [True, True, False], [False, False, False]])
    assert best_choices(scores, mask).tolist() == [
        [True, True, False],
        [True, False, False],
        [False, False, False],
    ]


def test_a_tie_scores_the_share_of_the_right_choice() -> None:
    choices = [((1,), 1), ((1,), 0), ((0, 2, 3), 2), ((0, 2, 3), 1), ((), 0)]
    assert [item_score(best, answer) for best, answer in choices] == [1.0, 0.0, 1 / 3, 0.0, 0.0]


GOLD = ["never", "never", "never", "always", "often"]
RIGHT = [1.0, 1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("item_scores", "expected"),
    [
        (RIGHT, (2 / 3 + 1 + 0) / 3),
        ([1.0, 1.0, 1.0, 0.0, 0.0], 1 / 3),
        # never: 1/2, 1/3 and 0; always: 1; often: 1/4.
        ([1 / 2, 1 / 3, 0.0, 1.0, 1 / 4], (5 / 18 + 1 + 1 / 4) / 3),
    ],
)
def test_macro_gives_each_class_the_same_weight(item_scores: list[float], expected: float) -> None:
    assert macro_accuracy(item_scores, GOLD) == pytest.approx(expected)


def test_majority_and_shares_with_ties() -> None:
    assert majority_accuracy(GOLD) == 3 / 5
    answers = [["never"], ["never"], ["always"], ["always"], ["never"]]
    assert list(predicted_shares(answers).items()) == [("always", 2 / 5), ("never", 3 / 5)]
    tied = [["a", "b"], ["b"], [], ["a", "b", "c"]]  # nothing is predicted for the third
    assert predicted_shares(tied) == pytest.approx({"a": 5 / 24, "b": 11 / 24, "c": 1 / 12})


def test_no_items_and_uneven_lists_are_refused() -> None:
    with pytest.raises(ValueError, match="argument"):
        macro_accuracy(RIGHT[:4], GOLD)
    for call in (majority_accuracy, predicted_shares, lambda x: macro_accuracy(x, x)):
        with pytest.raises(ValueError, match="no items"):
            call([])
