"""Accuracy by cluster: how much of each concept a model knows.

A concept is known strictly when every question about it is right (Richardson & Sabharwal 2020,
table 8). A question that is a tie counts 1/n, the chance that a pick among its n best choices is
right; a cluster counts the product of its questions' scores, the chance that all picks are.

All functions take (N,) the score of each item and (N,) its cluster, and raise `ValueError` if these
have different lengths or are empty.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence


def strict_scores(scores: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    """Return the strict score of each cluster, in order of appearance."""
    return [math.prod(cluster) for cluster in _by_cluster(scores, clusters)]


def strict_by_size(scores: Sequence[float], clusters: Sequence[Hashable]) -> dict[int, list[float]]:
    """Return the strict scores of the clusters by their number of questions, smallest first."""
    by_size: dict[int, list[float]] = {}
    for cluster in _by_cluster(scores, clusters):
        by_size.setdefault(len(cluster), []).append(math.prod(cluster))
    return dict(sorted(by_size.items()))


def strict_if_independent(scores: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Return the strict accuracy to expect if right answers fell on questions at random.

    The mean of accuracy ** size over clusters. Strict accuracy falls with the size of clusters by
    itself (Richardson & Sabharwal 2020, section 5.4); what is above this is knowledge of concepts.
    """
    sizes = [len(cluster) for cluster in _by_cluster(scores, clusters)]
    accuracy = math.fsum(scores) / len(scores)
    return math.fsum(accuracy**size for size in sizes) / len(sizes)


def _by_cluster(scores: Sequence[float], clusters: Sequence[Hashable]) -> list[list[float]]:
    if len(scores) != len(clusters) or not len(scores):
        raise ValueError(f"{len(scores)} items and {len(clusters)} cluster names")
    found: dict[Hashable, list[float]] = {}
    for score, cluster in zip(scores, clusters, strict=True):
        found.setdefault(cluster, []).append(float(score))
    return list(found.values())
