"""Accuracy by cluster: how much of each concept a model knows.

Strict cluster accuracy counts a concept as known when every question about it is right. The soft
one counts the share of its questions that are right; the mean over concepts weighs each the same,
however many questions it has, where plain accuracy weighs a concept by their number.

An item that is a tie counts 1/n, the chance that a pick among its n best choices is right; a
strict cluster counts the product of its items' credits, the chance that all picks are.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ClusterCount:
    """Clusters of one size.

    Attributes:
        num_clusters: How many there are.
        num_strict: How many have every question right; with ties, the sum of their credits.
    """

    num_clusters: int
    num_strict: float

    @property
    def accuracy(self) -> float:
        """Share of the clusters with every question right."""
        return self.num_strict / self.num_clusters


def strict_count(credit: Sequence[float], clusters: Sequence[Hashable]) -> ClusterCount:
    """Clusters with every question right (Richardson & Sabharwal 2020, table 8).

    Args:
        credit: (N,) 1 where an item is right, 1/n where it is a tie of n, else 0.
        clusters: (N,) the cluster of each item.

    Raises:
        ValueError: If the two have different lengths or are empty.
    """
    found = credits_by_cluster(credit, clusters)
    return ClusterCount(len(found), math.fsum(found))


def strict_by_size(
    credit: Sequence[float], clusters: Sequence[Hashable]
) -> dict[int, ClusterCount]:
    """The same by number of questions in a cluster, smallest first.

    Raises:
        ValueError: If the two have different lengths or are empty.
    """
    by_size: dict[int, list[float]] = {}
    for credits in _by_cluster(credit, clusters):
        by_size.setdefault(len(credits), []).append(math.prod(credits))
    return {size: ClusterCount(len(own), math.fsum(own)) for size, own in sorted(by_size.items())}


def credits_by_cluster(credit: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    """What each cluster counts strictly, in order of appearance.

    Raises:
        ValueError: If the two have different lengths or are empty.
    """
    return [math.prod(credits) for credits in _by_cluster(credit, clusters)]


def strict_if_independent(credit: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Strict accuracy to expect if right answers fell on questions whatever their concept.

    The mean of accuracy ** size over clusters. Strict accuracy falls with the size of clusters by
    itself (Richardson & Sabharwal 2020, section 5.4); what is above this is knowledge of concepts.

    Raises:
        ValueError: If the two have different lengths or are empty.
    """
    own = _by_cluster(credit, clusters)
    accuracy = math.fsum(credit) / len(credit)
    return math.fsum(accuracy ** len(credits) for credits in own) / len(own)


def _by_cluster(credit: Sequence[float], clusters: Sequence[Hashable]) -> list[list[float]]:
    """The credits of each cluster's questions."""
    if len(credit) != len(clusters) or not len(credit):
        raise ValueError(f"{len(credit)} items and {len(clusters)} cluster names")
    found: dict[Hashable, list[float]] = {}
    for own, cluster in zip(credit, clusters, strict=True):
        found.setdefault(cluster, []).append(float(own))
    return list(found.values())
