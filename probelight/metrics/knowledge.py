"""What a model knows: an item by several phrasings of it, a concept by all questions about it.

The classes of items follow SliCK (Gekhman et al. 2024), which samples answers from a generator;
here an item has choices:

- HighlyKnown: right in all phrasings.
- MaybeKnown: right in some phrasings.
- WeaklyKnown: right in none, but in some the right choice is more probable than an even guess.
- Unknown: the rest.

With two choices no item is WeaklyKnown, and with one phrasing no item is MaybeKnown. Consistency is
the share of pairs of phrasings that get the same answer (Elazar et al. 2021). The `scores` of an
item are (P, K) those of its choices in each of P phrasings.

A model knows a concept strictly if it answers every question about it correctly (Richardson &
Sabharwal 2020, table 8). A question whose right answer is one of n best scores 1/n, the probability
that a random pick among these is right. A cluster of questions scores the product of their scores,
the probability that all picks are right. The functions of clusters take `scores`, (N,) the score of
each item, and `clusters`, (N,) its cluster, and raise a `ValueError` if the two have different
lengths or are empty.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import combinations
from statistics import fmean

from probelight.metrics.choices import best_of_each
from probelight.metrics.scoring_rules import log_normalised

CLASSES = ("HighlyKnown", "MaybeKnown", "WeaklyKnown", "Unknown")
HIGHLY, MAYBE, WEAKLY, UNKNOWN = CLASSES


def knowledge_class(scores: Sequence[Sequence[float]], answer: int) -> str:
    """Return the class of an item.

    In a phrasing with a tie for the best score the item is not right. A phrasing with a NaN counts
    as not known. `answer` is the index of the right choice.
    """
    best_by_phrasing = best_of_each(scores)
    right = [best == (answer,) for best in best_by_phrasing]
    if any(right):
        return HIGHLY if all(right) else MAYBE
    for row, best in zip(scores, best_by_phrasing, strict=True):
        if not best or not math.isfinite(max(row)):
            continue
        if log_normalised(row)[answer] > -math.log(len(row)) + 1e-9:
            return WEAKLY
    return UNKNOWN


def guessed_shares(scores: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return how probable each class is if any of the K choices may be the right one.

    These are the classes of a model that knows nothing, but answers as consistently and as
    confidently.
    """
    num_choices = len(scores[0])
    classes = [knowledge_class(scores, answer) for answer in range(num_choices)]
    return {name: classes.count(name) / num_choices for name in CLASSES}


def consistency(scores: Sequence[Sequence[float]]) -> float:
    """Return the share of pairs of phrasings that get the same answer.

    Ties count with the probability that random picks among the best choices agree.
    """
    best_by_phrasing = [set(best) for best in best_of_each(scores)]
    pairs = combinations(best_by_phrasing, 2)
    return fmean(len(a & b) / (len(a) * len(b)) if a and b else 0.0 for a, b in pairs)


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
