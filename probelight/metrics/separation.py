"""How well scores tell the right answers apart, whatever the threshold between them.

A model that prefers one answer can be near chance and still know which items have it: its scores
of that answer are higher where it is right. The area under the ROC curve (AUC) is the probability
that this is so for a random item of each class; a tie counts half. It needs choices that all items
share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from probelight.metrics.intervals import Floats, Groups, Interval, Term, sum_interval


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
    right, wrong = np.sort(ranked_by[is_right]), np.sort(ranked_by[~is_right])

    def share_below(ordered: Floats, values: Floats) -> Floats:
        sides = [np.searchsorted(ordered, values, side) for side in ("left", "right")]
        share: Floats = np.mean(sides, axis=0) / len(ordered)
        return share

    beaten = np.where(is_right, share_below(wrong, ranked_by), 1 - share_below(right, ranked_by))
    auc = float(beaten[is_right].mean())
    class_sizes = np.where(is_right, len(right), len(wrong))
    item_shares: Floats = auc + (beaten - auc) * len(beaten) / class_sizes
    return item_shares
