"""The best choices of items, the score of an item, and how balanced the answers are.

Choices tie if the highest scores are exactly equal in single precision: an item scores 1/n if its
gold choice is one of n best choices. Scores that are equal in theory can differ in their last bits,
because of another batch, padding or order of summation; such items are counted as near-ties. -inf
is the lowest score. An item with a NaN has no best choice.

If some answers are more frequent than others, compare an accuracy with that of the majority answer,
with the mean over classes, and with how often each class is predicted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


NEAR = 1e-4  # far above what batches, padding and devices do to a score, far below what one means


def best_choices(scores: Tensor, choice_mask: Tensor) -> Tensor:
    """Return which choices share their item's highest score; none if one of its scores is NaN.

    Args:
        scores: (B, K) scores; those of missing choices may have any value.
        choice_mask: (B, K) whether an item has a choice.

    Returns:
        (B, K) whether a choice is one of the best.
    """
    existing = scores.masked_fill(~choice_mask, float("-inf"))
    # `amax` of a row with a NaN is NaN, which equals nothing.
    return (existing == existing.amax(dim=1, keepdim=True)) & choice_mask


def best_of_each(scores: Sequence[Sequence[float]]) -> list[tuple[int, ...]]:
    """Return the indices of each item's best choices, in order; none if a score is NaN.

    This is `best_choices` without torch, which takes seconds to import.

    Args:
        scores: (N, K) scores of the choices that each item has; items may differ in K.
    """
    best_by_item: list[tuple[int, ...]] = []
    for row in scores:
        highest = max(row, default=0.0)
        best = [index for index, score in enumerate(row) if score == highest]
        best_by_item.append(() if any(map(math.isnan, row)) else tuple(best))
    return best_by_item


def is_near_tie(scores: Sequence[float]) -> bool:
    """Return whether an item's best score is above the second best, but by less than `NEAR`.

    It is False if a score is NaN.

    Args:
        scores: (K,) scores of the choices that the item has.
    """
    if len(scores) < 2 or any(map(math.isnan, scores)):
        return False
    *_, second, best = sorted(scores)
    return 0 < best - second < NEAR


def item_score(best: Sequence[int], answer: int) -> float:
    """Return an item's score: 1 if the gold alone is best, 1/n if it is one of n best, else 0.

    Args:
        best: Indices of the best choices.
        answer: Index of the gold choice.
    """
    return 1.0 / len(best) if answer in best else 0.0


def majority_accuracy(gold: Sequence[str]) -> float:
    """Return the accuracy of always giving the gold answer that is most frequent in these items.

    Args:
        gold: (N,) text of each gold answer, or the name of its position.

    Raises:
        ValueError: If there are no items.
    """
    if not gold:
        raise ValueError("there are no items")
    return max(Counter(gold).values()) / len(gold)


def macro_accuracy(item_scores: Sequence[float], gold: Sequence[str]) -> float:
    """Return the mean of the accuracies on each gold class.

    Args:
        item_scores: (N,) score of each item.
        gold: (N,) text of each gold answer, or the name of its position.

    Raises:
        ValueError: If the two have different lengths or are empty.
    """
    if not gold:
        raise ValueError("there are no items")
    by_class: dict[str, list[float]] = {}
    for score, name in zip(item_scores, gold, strict=True):
        by_class.setdefault(name, []).append(score)
    return math.fsum(math.fsum(scores) / len(scores) for scores in by_class.values()) / len(
        by_class
    )


def predicted_shares(predicted: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return for which share of the items each answer or position is predicted, sorted by name.

    Args:
        predicted: (N,) texts of each item's predicted answers, or names of their positions. If n
            answers tie, each counts 1/n of the item. There is none if nothing is predicted.

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
