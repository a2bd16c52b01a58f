"""Answers by letter in several orders of the choices: what the model knows, and what order decides.

A model that prefers a letter or a position gives another answer if the same choices are listed in
another order (Zheng et al. 2024; Pezeshkpour and Hruschka 2024). `scores` are those of choices: for
each order of an item, the log-probability of the label that each choice had.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean

from probelight.metrics.choices import best_of_each, item_score
from probelight.metrics.scoring_rules import log_normalised

Scores = Sequence[Sequence[float]]  # (O, K): of the choices, in each order of an item


def debiased(scores: Scores) -> list[float]:
    """Return (K,) the mean over orders of each choice's log-probability among the labels.

    Over all cyclic orders every choice has each label once, so a preference for a label cancels
    out.
    """
    normalised = [log_normalised(order) for order in scores]
    return [fmean(choice) for choice in zip(*normalised, strict=True)]


def mean_score(scores: Scores, answer: int) -> float:
    """Return the mean over orders of an item's score: 1 if right, 1/n if one of n best, else 0."""
    return fmean(item_score(best, answer) for best in best_of_each(scores))


def all_right(scores: Scores, answer: int) -> float:
    """Return 1 if the gold choice alone is the answer in every order, else 0."""
    return float(all(best == (answer,) for best in best_of_each(scores)))


def is_unstable(scores: Scores) -> float:
    """Return 1 if two orders of an item have different answers, else 0."""
    return float(len({*best_of_each(scores)}) > 1)


def label_shares(labels: Sequence[Scores]) -> list[float]:
    """Return the share of each label among the answers to all items in all orders.

    Args:
        labels: For each item (O, K) scores of the labels, not of the choices. If n labels tie for
            the best score, each counts 1/n; an answer with a NaN counts for no label.
    """
    shares = [0.0] * max(len(order) for item in labels for order in item)
    answers = [best for item in labels for best in best_of_each(item) if best]
    for best in answers:
        for label in best:
            shares[label] += 1 / len(best) / len(answers)
    return shares


def majority_of_labels(gold_labels: Sequence[Sequence[int]]) -> float:
    """Return the accuracy of always giving the one label that is right most often.

    Args:
        gold_labels: (N, O) the label of each item's gold choice in each of its orders.
    """
    rights = defaultdict[int, float](float)
    for labels in gold_labels:
        for label in labels:
            rights[label] += 1 / len(labels)
    return max(rights.values()) / len(gold_labels)


def label_bias(labels: Sequence[Scores]) -> float:
    """Return the total variation distance between the labels' shares and those without preference.

    Without preference, each item gives the same share to each of its own labels.

    Args:
        labels: For each item (O, K) scores of the labels, not of the choices.
    """
    even = [0.0] * max(len(order) for item in labels for order in item)
    orders = [order for item in labels for order in item]
    for order in orders:
        for label in range(len(order)):
            even[label] += 1 / len(order) / len(orders)
    return math.fsum(abs(a - b) for a, b in zip(label_shares(labels), even, strict=True)) / 2
