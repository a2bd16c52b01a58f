from __future__ import annotations

import math

import pytest

from probelight.metrics.knowledge import (
    consistency,
    guessed_shares,
    knowledge_class,
    strict_by_size,
    strict_if_independent,
    strict_scores,
)

A, B, C = [2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 1.0, 2.0]  # choice 0, 1 or 2 is best
SURE = [5.0, 0.0, 0.0]  # only choice 0 is above a third
NAN = [math.nan, 0.0, 0.0]


@pytest.mark.parametrize(
    ("scores", "answer", "expected"),
    [
        ([A, A], 0, "HighlyKnown"),
        ([A, B], 0, "MaybeKnown"),
        ([B, [1.8, 2.0, 0.0]], 0, "WeaklyKnown"),  # p of 0 is e^1.8 / (e^1.8 + e^2 + 1) = 0.42
        ([SURE, SURE], 1, "Unknown"),
        ([[1.0, 1.0, 0.0]], 0, "WeaklyKnown"),  # a tie is not right
        ([[0.0, 0.0, 0.0]], 0, "Unknown"),  # an even guess is not above one
        ([NAN, A], 0, "MaybeKnown"),
        ([NAN], 0, "Unknown"),
        ([[0.0, 1.0]], 0, "Unknown"),  # of two choices the wrong one is below a half
    ],
)
def test_phrasings_decide_the_class(scores: list[list[float]], answer: int, expected: str) -> None:
    assert knowledge_class(scores, answer) == expected


def test_a_guesser_has_any_choice_for_the_right_one() -> None:
    # 0 is right in both; 1 and 2 are right in none, and far below a third.
    shares = guessed_shares([SURE, SURE])
    assert shares == pytest.approx(
        {"HighlyKnown": 1 / 3, "MaybeKnown": 0, "WeaklyKnown": 0, "Unknown": 2 / 3}
    )
    assert guessed_shares([A, C])["MaybeKnown"] == pytest.approx(2 / 3)


def test_consistency_is_over_pairs() -> None:
    assert consistency([A, A, B]) == pytest.approx(1 / 3)
    assert consistency([A, [1.0, 1.0, 0.0]]) == pytest.approx(0.5)  # of the tie half
    assert consistency([A, NAN]) == 0


CLUSTERS = ["a", "b", "a", "c", "b", "d"]
CORRECT = [True, True, True, False, False, True]


def test_two_of_four_clusters_are_known() -> None:
    assert strict_scores(CORRECT, CLUSTERS) == [1, 0, 0, 1]  # a and d
    assert strict_by_size(CORRECT, CLUSTERS) == {1: [0, 1], 2: [1, 0]}
    assert list(strict_by_size(CORRECT, CLUSTERS)) == [1, 2]
    assert strict_scores(CORRECT, list(range(6))) == CORRECT  # single questions: plain accuracy


def test_a_cluster_with_ties_counts_the_product_of_its_items() -> None:
    # a: 1/2 x 1/3; b: 1 x 0; c: 1/2.
    item_scores = [1 / 2, 1.0, 1 / 3, 1 / 2, 0.0]
    clusters = ["a", "b", "a", "c", "b"]
    assert strict_scores(item_scores, clusters) == pytest.approx([1 / 6, 0, 1 / 2])
    assert strict_by_size(item_scores, clusters) == {1: [1 / 2], 2: pytest.approx([1 / 6, 0])}


@pytest.mark.parametrize(("correct", "clusters"), [([], []), ([True], ["a", "b"])])
def test_refuses_what_does_not_match(correct: list[bool], clusters: list[str]) -> None:
    with pytest.raises(ValueError, match="clusters; give one per item"):
        strict_scores(correct, clusters)


def test_the_strict_share_of_answers_that_know_no_clusters() -> None:
    # Accuracy 2/3: two clusters of 2 and two of 1.
    expected = (2 * (2 / 3) ** 2 + 2 * (2 / 3)) / 4
    assert strict_if_independent(CORRECT, CLUSTERS) == pytest.approx(expected)
    assert strict_if_independent([1.0, 1.0], ["a", "a"]) == 1.0
