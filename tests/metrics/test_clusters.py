"""Strict cluster accuracy on a set small enough to count."""

from __future__ import annotations

import pytest

from probelight.metrics.knowledge import strict_by_size, strict_if_independent, strict_scores

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
