"""Strict cluster accuracy on a set small enough to count."""

from __future__ import annotations

import pytest

from probelight.metrics.clusters import (
    strict_by_size,
    strict_count,
    strict_if_independent,
)

CLUSTERS = ["a", "b", "a", "c", "b", "d"]
CORRECT = [True, True, True, False, False, True]


def test_two_of_four_clusters_are_known() -> None:
    assert strict_count(CORRECT, CLUSTERS).accuracy == 0.5  # a and d


def test_by_size() -> None:
    found = strict_by_size(CORRECT, CLUSTERS)
    assert list(found) == [1, 2]
    assert (found[1].num_clusters, found[1].num_strict, found[1].accuracy) == (2, 1, 0.5)
    assert (found[2].num_clusters, found[2].num_strict, found[2].accuracy) == (2, 1, 0.5)


def test_single_questions_make_it_plain_accuracy() -> None:
    assert strict_count(CORRECT, list(range(6))).accuracy == 4 / 6


def test_a_cluster_with_ties_counts_the_product_of_its_items() -> None:
    # a: 1/2 x 1/3; b: 1 x 0; c: 1/2.
    credit = [1 / 2, 1.0, 1 / 3, 1 / 2, 0.0]
    clusters = ["a", "b", "a", "c", "b"]
    assert strict_count(credit, clusters).num_strict == pytest.approx(1 / 6 + 1 / 2)
    assert strict_by_size(credit, clusters)[2].num_strict == pytest.approx(1 / 6)
    assert strict_by_size(credit, clusters)[1].accuracy == 1 / 2


@pytest.mark.parametrize(("correct", "clusters"), [([], []), ([True], ["a", "b"])])
def test_refuses_what_does_not_match(correct: list[bool], clusters: list[str]) -> None:
    with pytest.raises(ValueError, match="cluster names"):
        strict_count(correct, clusters)


def test_the_strict_share_of_answers_that_know_no_clusters() -> None:
    # Accuracy 2/3: two clusters of 2 and two of 1.
    expected = (2 * (2 / 3) ** 2 + 2 * (2 / 3)) / 4
    assert strict_if_independent(CORRECT, CLUSTERS) == pytest.approx(expected)
    assert strict_if_independent([1.0, 1.0], ["a", "a"]) == 1.0
