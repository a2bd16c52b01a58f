"""What an accuracy must be read beside when answers are not equally frequent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence


def majority_accuracy(gold: Sequence[str]) -> float:
    """Accuracy of always giving the most frequent gold answer of these very items.

    Raises:
        ValueError: If there are no items.
    """
    _ask_for_items(gold)
    return max(Counter(gold).values()) / len(gold)


def macro_accuracy(credit: Sequence[float], gold: Sequence[str]) -> float:
    """Mean over the gold classes of the mean credit of their items.

    Args:
        credit: (N,) 1 where an item is right, 1/n where it is a tie of n, else 0.
        gold: (N,) the gold answer text or the name of its position.

    Raises:
        ValueError: If the two have different lengths or are empty.
    """
    _ask_for_items(gold)
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
    _ask_for_items(predicted)
    shares: dict[str, list[float]] = {}
    for names in predicted:
        for name in names:
            shares.setdefault(name, []).append(1 / len(names))
    return {name: math.fsum(shares[name]) / len(predicted) for name in sorted(shares)}


def _ask_for_items(items: Sequence[object]) -> None:
    if not items:
        raise ValueError("there are no items")
