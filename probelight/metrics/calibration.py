"""What scores say beyond the best choice: calibration (Guo et al. 2017; Brier 1950), separation.

Calibration is whether a model is right as often as it is confident. A softmax over the scores of an
item's choices gives their probabilities. An item's confidence is the highest of them. Its
correctness is 1, 1/n if the gold is one of n best choices, or 0. Items of equal confidence share
their mean correctness, so the order of the items does not matter.

Separation is how well scores tell the right answers apart, whatever the threshold between them. A
model that prefers one answer can be near chance and still know which items have it: its scores of
that answer are higher where it is right. The area under the ROC curve (AUC) is the probability that
this is so for a random item of each class; a tie counts half. It needs choices that all items
share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike

from probelight.metrics.choices import best_of_each, item_score
from probelight.metrics.intervals import Floats, Groups, Interval, Term, sum_interval
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
        confidences, corrects = (
            np.array_split(values, NUM_BINS) for values in (self.confidence, self.correct)
        )
        return [
            Bin(fmean(confidence), fmean(correct), len(correct))
            for confidence, correct in zip(confidences, corrects, strict=True)
            if len(correct)
        ]

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


def separation(
    scores: ArrayLike, answers: Sequence[int], groups: Groups | None = None
) -> Interval | None:
    """Return the AUC of each choice against the others, averaged over choices, and its interval.

    An item is ranked for a choice by the log-odds of its softmax over the scores; with two choices
    that is their difference. The variance is DeLong's (1988), over groups as Obuchowski (1997) has
    it, with the intervals of `probelight.metrics.intervals`.

    Args:
        scores: (N, K) score of each choice; the choices are in one order in all items.
        answers: (N,) index of each item's right choice.
        groups: (N,) the group of each item.

    Returns:
        None if fewer than two choices are ever right, or a score is not finite.
    """
    table, gold = np.asarray(scores, dtype=np.float64), np.asarray(answers)
    choices = np.unique(gold)
    if len(choices) < 2 or not np.isfinite(table).all():
        return None
    shares = []
    for choice in choices:
        log_sum_of_others = np.logaddexp.reduce(np.delete(table, choice, axis=1), axis=1)
        shares.append(_item_shares(table[:, choice] - log_sum_of_others, gold == choice))
    return sum_interval([Term(1.0, {0: np.mean(shares, axis=0)})], groups)


def _item_shares(ranked_by: Floats, is_right: np.ndarray) -> Floats:
    """Return (N,) values whose mean is the AUC, and whose spread is that of its estimate.

    An item is worth the share of the other class that it is on the right side of. Its distance from
    the AUC weighs the more, the rarer its class.
    """
    order = np.argsort(ranked_by)  # a search for values in order is several times as fast
    right, wrong = order[is_right[order]], order[~is_right[order]]

    def share_below(ordered: Floats, values: Floats) -> Floats:
        sides = [np.searchsorted(ordered, values, side) for side in ("left", "right")]
        share: Floats = np.mean(sides, axis=0) / len(ordered)
        return share

    beaten = np.empty_like(ranked_by)
    beaten[right] = share_below(ranked_by[wrong], ranked_by[right])
    beaten[wrong] = 1 - share_below(ranked_by[right], ranked_by[wrong])
    auc = float(beaten[is_right].mean())
    class_sizes = np.where(is_right, len(right), len(wrong))
    item_shares: Floats = auc + (beaten - auc) * len(beaten) / class_sizes
    return item_shares
