"""Accuracy by cluster: how much of each concept a model knows.

A model knows a concept strictly if it answers every question about it correctly (Richardson &
Sabharwal 2020, table 8). A question whose right answer is one of n best scores 1/n, the probability
that a random pick among these is right. A cluster scores the product of its questions' scores, the
probability that all picks are right.

All functions take `scores`, (N,) the score of each item, and `clusters`, (N,) its cluster. They
raise a `ValueError` if the two have different lengths or are empty.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence


def strict_scores(scores: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    """Return the strict score of each cluster, in order of appearance."""
    return [math.prod(cluster) for cluster in _by_cluster(scores, clusters)]


def strict_by_size(scores: Sequence[float], clusters: Sequence[Hashable]) -> dict[int, list[float]]:
    """Return the strict scores of the clusters by their number of questions, the smallest first."""
    by_size: dict[int, list[float]] = {}
    for cluster in _by_cluster(scores, clusters):
        by_size.setdefault(len(cluster), []).append(math.prod(cluster))
    return dict(sorted(by_size.items()))


def strict_if_independent(scores: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Return the strict accuracy to expect if right answers were spread over questions at random.

    It is the mean of accuracy ** size over clusters. Strict accuracy is lower for larger clusters
    in any case (Richardson & Sabharwal 2020, section 5.4); only what exceeds this value is
    knowledge of concepts.
    """
    sizes = [len(cluster) for cluster in _by_cluster(scores, clusters)]
    accuracy = math.fsum(scores) / len(scores)
    return math.fsum(accuracy**size for size in sizes) / len(sizes)


def _by_cluster(scores: Sequence[float], clusters: Sequence[Hashable]) -> list[list[float]]:
    if len(scores) != len(clusters) or not len(scores):
        raise ValueError(f"{len(scores)} items and {len(clusters)} clusters; give one per item")
    scores_by_cluster: dict[Hashable, list[float]] = {}
    for score, cluster in zip(scores, clusters, strict=True):
        scores_by_cluster.setdefault(cluster, []).append(float(score))
    return list(scores_by_cluster.values())
