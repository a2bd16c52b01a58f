"""Whether a model's scores say how likely it is right (Guo et al. 2017; Brier 1950).

The scores of an item's choices become probabilities by a softmax over them. An item's confidence is
its highest probability, and its correctness 1, 1/n for one of n best, or 0. Items of equal
confidence share the mean of their correctness, so that nothing depends on their order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from probelight.metrics.choices import best_of_each, item_score
from probelight.metrics.scoring_rules import log_normalised

NUM_BINS = 15


@dataclass(frozen=True)
class Bin:
    """Items of about the same confidence."""

    confidence: float  # mean
    accuracy: float
    num_items: int


@dataclass(frozen=True)
class Calibration:
    """How a model's confidence goes with its correctness, over the items of a set.

    Attributes:
        confidence: (N,) of each item, the surest first.
        correct: (N,) their correctness, the mean of those of equal confidence.
        brier: Mean over items of the sum over choices of (p - 1 if it is the gold one, else p)².
        brier_of_even: The same where every choice of an item is equally probable.
    """

    confidence: tuple[float, ...]
    correct: tuple[float, ...]
    brier: float
    brier_of_even: float

    @classmethod
    def of(cls, scores: Sequence[Sequence[float]], answers: Sequence[int]) -> Calibration | None:
        """Return the calibration of items, log-probabilities (N, K) and gold choices (N,).

        Items with a score that is no number, or without a finite one, have no probabilities and are
        left out; None where no item has them.
        """
        items = [
            ([math.exp(log) for log in log_normalised(row)], item_score(best, answer), answer)
            for row, answer, best in zip(scores, answers, best_of_each(scores), strict=True)
            if best and math.isfinite(max(row))
        ]
        if not items:
            return None
        by_confidence: dict[float, list[float]] = {}
        for shares, correct, _ in items:
            by_confidence.setdefault(max(shares), []).append(correct)
        surest = sorted((max(shares) for shares, _, _ in items), reverse=True)
        means = {confidence: fmean(found) for confidence, found in by_confidence.items()}
        brier = fmean(
            math.fsum((share - (place == answer)) ** 2 for place, share in enumerate(shares))
            for shares, _, answer in items
        )
        even = fmean(1 - 1 / len(shares) for shares, _, _ in items)
        shared = tuple(means[confidence] for confidence in surest)
        return cls(tuple(surest), shared, brier, even)

    @property
    def bins(self) -> list[Bin]:
        """`NUM_BINS` bins of equally many items, one more in the first ones; fewer of few items."""
        size, more = divmod(len(self.confidence), NUM_BINS)
        found, first = [], 0
        for place in range(NUM_BINS):
            last = first + size + (place < more)
            if last > first:
                part = slice(first, last)
                mean, accuracy = fmean(self.confidence[part]), fmean(self.correct[part])
                found.append(Bin(mean, accuracy, last - first))
            first = last
        return found

    @property
    def ece(self) -> float:
        """Expected calibration error: the bins' distance of accuracy from confidence, by items."""
        gaps = (abs(each.accuracy - each.confidence) * each.num_items for each in self.bins)
        return math.fsum(gaps) / len(self.confidence)

    def selective_accuracy(self, coverage: float) -> float:
        """Return the accuracy on the share `coverage` of the items that the model is surest of."""
        return fmean(self.correct[: max(1, round(coverage * len(self.correct)))])
