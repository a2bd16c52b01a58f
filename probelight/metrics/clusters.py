"""Accuracy by cluster and by class: how much of each concept a model knows, and at what balance.

Strict cluster accuracy counts a concept as known when every question about it is right. The soft
one counts the share of its questions that are right; the mean over concepts weighs each the same,
however many questions it has, where plain accuracy weighs a concept by their number.

An item that is a tie counts 1/n, the chance that a pick among its n best choices is right; a
strict cluster counts the product of its items' credits, the chance that all picks are.

Where answers are not equally frequent, an accuracy is read beside the majority's, the mean over
classes, and the share that each class is predicted.
"""

from __future__ import annotations

import math
from collections import Counter
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


def shares_by_cluster(credit: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    """What each cluster counts softly: the share of its questions right, in order of appearance.

    Raises:
        ValueError: If the two have different lengths or are empty.
    """
    return [math.fsum(credits) / len(credits) for credits in _by_cluster(credit, clusters)]


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


def majority_accuracy(gold: Sequence[str]) -> float:
    """Accuracy of always giving the most frequent gold answer of these very items.

    Raises:
        ValueError: If there are no items.
    """
    if not gold:
        raise ValueError("there are no items")
    return max(Counter(gold).values()) / len(gold)


def macro_accuracy(credit: Sequence[float], gold: Sequence[str]) -> float:
    """Mean over the gold classes of the mean credit of their items.

    Args:
        credit: (N,) 1 where an item is right, 1/n where it is a tie of n, else 0.
        gold: (N,) the gold answer text or the name of its position.

    Raises:
        ValueError: If the two have different lengths or are empty.
    """
    if not gold:
        raise ValueError("there are no items")
    by_class: dict[str, list[float]] = {}
    for own, name in zip(credit, gold, strict=True):
        by_class.setdefault(name, []).append(own)
    return math.fsum(math.fsum(own) / len(own) for own in by_class.values()) / len(by_class)


def predicted_shares(predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    """Share of the items for which each answer or position is predicted, in alphabetical order.

    Args:
        predicted: (N,) the predicted answer texts or names of their positions: one, or n on a tie,
            of which each is predicted for 1/n of the item; none for an item that predicts nothing.

    Raises:
        ValueError: If there are no items.
    """
    if not predicted:
        raise ValueError("there are no items")
    shares: dict[str, list[float]] = {}
    for names in predicted:
        for name in names:
            shares.setdefault(name, []).append(1 / len(names))
    return {name: math.fsum(shares[name]) / len(predicted) for name in sorted(shares)}
