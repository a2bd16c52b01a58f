"""Word prediction and sensitivity (Ettinger 2020, section 5), of what any model said."""

from __future__ import annotations

from collections.abc import Collection, Sequence

MARGIN = 0.01  # in points of probability


def in_top(predictions: Sequence[str], expected: Collection[str], k: int) -> bool:
    """Whether an expected word is among a model's k best ones; case counts.

    Args:
        predictions: The model's words, the best one first.
        expected: Words that are right.
        k: How many of the model's words count.
    """
    return not set(predictions[:k]).isdisjoint(expected)


def prefers(good: float, bad: Collection[float], margin: float = 0.0) -> bool:
    """Whether a good completion is more probable than every bad one, by more than a margin.

    Args:
        good: Its probability.
        bad: Those of the bad ones.
        margin: What the difference must exceed.
    """
    return all(good - other > margin for other in bad)
