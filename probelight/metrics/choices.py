"""Which choices items' scores speak for, the credit that this earns, and how balanced they are.

A tie is exact equality of the highest scores, in the single precision that a model gives them in:
the order of the choices decides nothing, and an item whose best score is shared by n choices counts
1/n if the gold is one of them. Scores that are equal in theory but were computed in another way
(another batch, padding or summation) can differ in their last bits; such scores are no tie here,
but items that so little decides are counted as near-ties.
-inf is a score, the lowest one. A NaN is none: an item with one has no best choice.

Where answers are not equally frequent, an accuracy is read with the majority's, the mean over
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
    """The choices that share an item's highest score; whatever is right or wrong is read off here.

    Args:
        scores: (B, K) scores; what is where there is no choice does not matter.
        choice_mask: (B, K) which choices an item has.

    Returns:
        (B, K) whether a choice is one of the best; none is where one of the item's scores is NaN.
    """
    own = scores.masked_fill(~choice_mask, float("-inf"))
    # `amax` of a row with a NaN is NaN, which equals nothing.
    return (own == own.amax(dim=1, keepdim=True)) & choice_mask


def best_of_each(scores: Sequence[Sequence[float]]) -> list[tuple[int, ...]]:
    """The indices of each item's best choices, in order; empty where one of its scores is NaN.

    Args:
        scores: For each item the scores of the choices that it has.
    """
    return [_best(row) for row in scores]  # as `best_choices` of a batch; torch takes seconds


def _best(scores: Sequence[float]) -> tuple[int, ...]:
    if any(score != score for score in scores):
        return ()
    highest = max(scores, default=0.0)
    return tuple(place for place, score in enumerate(scores) if score == highest)


def is_near_tie(scores: Sequence[float]) -> bool:
    """Whether the best of an item's scores is less than `NEAR` above the second, but above it.

    A tie is none, nor is an item with a score that is NaN.

    Args:
        scores: Those of the choices that the item has.
    """
    if len(scores) < 2 or any(score != score for score in scores):
        return False
    best, second = nlargest(2, scores)
    return 0 < best - second < NEAR


def credit_of(best: Sequence[int], answer: int) -> float:
    """1 where the gold alone is best, 1/n where it is one of n, else 0."""
    return 1.0 / len(best) if answer in best else 0.0


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
