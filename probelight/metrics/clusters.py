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


def strict_credits(credit: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    """Return the strict score of each cluster, in order of appearance."""
    return [math.prod(credits) for credits in _by_cluster(credit, clusters)]


def strict_by_size(credit: Sequence[float], clusters: Sequence[Hashable]) -> dict[int, list[float]]:
    """Return the strict scores of the clusters by their number of questions, smallest first."""
    by_size: dict[int, list[float]] = {}
    for credits in _by_cluster(credit, clusters):
        by_size.setdefault(len(credits), []).append(math.prod(credits))
    return dict(sorted(by_size.items()))


def strict_if_independent(credit: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Return the strict accuracy to expect if right answers fell on questions at random.

    The mean of accuracy ** size over clusters. Strict accuracy falls with the size of clusters by
    itself (Richardson & Sabharwal 2020, section 5.4); what is above this is knowledge of concepts.
    """
    sizes = [len(credits) for credits in _by_cluster(credit, clusters)]
    accuracy = math.fsum(credit) / len(credit)
    return math.fsum(accuracy**size for size in sizes) / len(sizes)


def _by_cluster(credit: Sequence[float], clusters: Sequence[Hashable]) -> list[list[float]]:
    if len(credit) != len(clusters) or not len(credit):
        raise ValueError(f"{len(credit)} items and {len(clusters)} cluster names")
    found: dict[Hashable, list[float]] = {}
    for own, cluster in zip(credit, clusters, strict=True):
        found.setdefault(cluster, []).append(float(own))
    return list(found.values())
