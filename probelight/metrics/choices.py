"""The best choices of items, an item's score, and how balanced answers are.

A tie is exact equality of the highest scores in single precision: an item counts 1/n if the gold
is one of n best choices. Scores that are equal in theory can differ in their last bits (another
batch, padding or summation); these are counted as near-ties. -inf is the lowest score; an item with
a NaN has no best choice.

Where answers are not equally frequent, compare an accuracy with the majority's, the mean over
classes, and the share that each class is predicted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from heapq import nlargest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


NEAR = 1e-4  # far above what batches, padding and devices do to a score, far below what one means


def best_choices(scores: Tensor, choice_mask: Tensor) -> Tensor:
    """Return which choices share an item's highest score; none where one of its scores is NaN.

    Args:
        scores: (B, K) scores, of any value where there is no choice.
        choice_mask: (B, K) which choices an item has.

    Returns:
        (B, K) whether a choice is one of the best.
    """
    existing = scores.masked_fill(~choice_mask, float("-inf"))
    # `amax` of a row with a NaN is NaN, which equals nothing.
    return (existing == existing.amax(dim=1, keepdim=True)) & choice_mask


def best_of_each(scores: Sequence[Sequence[float]]) -> list[tuple[int, ...]]:
    """Return the indices of each item's best choices, in order; none where a score is NaN.

    As `best_choices`, without torch, which takes seconds to import. `scores` holds only the choices
    that an item has.
    """
    found: list[tuple[int, ...]] = []
    for row in scores:
        highest = max(row, default=0.0)
        has_nan = any(score != score for score in row)
        best = (place for place, score in enumerate(row) if score == highest)
        found.append(() if has_nan else tuple(best))
    return found


def is_near_tie(scores: Sequence[float]) -> bool:
    """Return whether an item's best score is less than `NEAR`, but not 0, above the second.

    It is False with a NaN. `scores` holds only the choices that the item has.
    """
    if len(scores) < 2 or any(score != score for score in scores):
        return False
    best, second = nlargest(2, scores)
    return 0 < best - second < NEAR


def item_score(best: Sequence[int], answer: int) -> float:
    """Return 1 where the gold alone is best, 1/n where it is one of n, else 0."""
    return 1.0 / len(best) if answer in best else 0.0


def majority_accuracy(gold: Sequence[str]) -> float:
    """Return the accuracy of always giving the most frequent gold answer of these very items."""
    if not gold:
        raise ValueError("there are no items")
    return max(Counter(gold).values()) / len(gold)


def macro_accuracy(item_scores: Sequence[float], gold: Sequence[str]) -> float:
    """Return the mean accuracy of the gold classes.

    Args:
        item_scores: (N,) score of each item.
        gold: (N,) the gold answer text or the name of its position.

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
    """Return the share of the items that each answer or position is predicted for, sorted by name.

    Args:
        predicted: (N,) predicted answer texts or names of their positions: of n on a tie each is
            predicted for 1/n of the item; none where nothing is predicted.

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
