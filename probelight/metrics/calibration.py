"""Calibration: whether a model is right as often as it is confident (Guo et al. 2017; Brier 1950).

A softmax over the scores of an item's choices gives their probabilities. An item's confidence is
the highest of them. Its correctness is 1, 1/n if the gold is one of n best choices, or 0. Items of
equal confidence share their mean correctness, so the order of the items does not matter.
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
    """Items of about the same confidence.

    Attributes:
        confidence: Mean confidence of the items.
        accuracy: Mean correctness of the items.
        num_items: Number of items.
    """

    confidence: float
    accuracy: float
    num_items: int


@dataclass(frozen=True)
class Calibration:
    """How well a model's confidence matches its correctness, over the items of a set.

    Attributes:
        confidence: (N,) confidence of each item, the highest first.
        correct: (N,) correctness of the same items; items of equal confidence have their mean.
        brier: Brier score: mean over items of the sum over choices of (p - t)², where t is 1 for
            the gold choice and 0 for the others.
        brier_of_even: The Brier score if all choices of an item were equally probable.
    """

    confidence: tuple[float, ...]
    correct: tuple[float, ...]
    brier: float
    brier_of_even: float

    @classmethod
    def of(cls, scores: Sequence[Sequence[float]], answers: Sequence[int]) -> Calibration | None:
        """Return the calibration over some items, or None if no item has probabilities.

        Items with a NaN, or without a finite score, have no probabilities and are left out.

        Args:
            scores: (N, K) log-probabilities of the choices; items may differ in K.
            answers: (N,) index of each item's gold choice.
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
        means = {c: fmean(correctness) for c, correctness in by_confidence.items()}
        brier = fmean(
            math.fsum((share - (choice == answer)) ** 2 for choice, share in enumerate(shares))
            for shares, _, answer in items
        )
        even = fmean(1 - 1 / len(shares) for shares, _, _ in items)
        shared = tuple(means[confidence] for confidence in surest)
        return cls(tuple(surest), shared, brier, even)

    @property
    def bins(self) -> list[Bin]:
        """`NUM_BINS` bins of equal size, the most confident items first.

        The first bins may have one item more. There are fewer bins if there are fewer items.
        """
        size, num_larger = divmod(len(self.confidence), NUM_BINS)
        bins, first = [], 0
        for number in range(NUM_BINS):
            last = first + size + (number < num_larger)
            if last > first:
                members = slice(first, last)
                mean, accuracy = fmean(self.confidence[members]), fmean(self.correct[members])
                bins.append(Bin(mean, accuracy, last - first))
            first = last
        return bins

    @property
    def ece(self) -> float:
        """Expected calibration error: mean distance between the accuracy and confidence of bins.

        Bins are weighted by their number of items.
        """
        gaps = (abs(b.accuracy - b.confidence) * b.num_items for b in self.bins)
        return math.fsum(gaps) / len(self.confidence)

    def selective_accuracy(self, coverage: float) -> float:
        """Return the accuracy on the items that the model is most confident about.

        Args:
            coverage: The share of items to include, from 0 to 1.
        """
        return fmean(self.correct[: max(1, round(coverage * len(self.correct)))])
