"""Two models on the same items: their difference, and a test of the answers that changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probelight.metrics.intervals import (
    DIFFERENCES,
    Floats,
    Groups,
    Interval,
    Term,
    group_indices,
    num_groups,
    sum_interval,
    wilson,
)

_PARTS = 2520  # a tie of up to ten choices is a whole number of these parts of an item
_EXACT = 2 * 10**8  # additions of an exact test; beyond, it is drawn
_DRAWS = 9_999
_BLOCK = 2**22  # drawn signs held at a time


@dataclass(frozen=True)
class PairedDifference:
    """Two accuracies on the same items.

    Attributes:
        difference: Accuracy after minus accuracy before; the inoculation cost is its negative.
        low: Lower end of the interval of the difference.
        high: Upper end.
        lost: Credit of the items that was there before and is not after: the number of items right
            before and wrong after, where no item is a tie.
        gained: Credit that was not there before and is after.
        p_value: Exact two-sided McNemar test of lost against gained, by groups where there are any.
    """

    difference: float
    low: float
    high: float
    lost: float
    gained: float
    p_value: float


def paired_difference(
    before: ArrayLike, after: ArrayLike, groups: Groups | None = None
) -> PairedDifference:
    """Compares two models on the same items.

    The interval is Newcombe's square-and-add of Wilson intervals for paired proportions (1998,
    method 10) where every item is a group of its own, else that of `probelight.metrics.intervals`.

    Args:
        before: (N,) what each item counts before: 1 right, 0 wrong, a part of 1 for a tie.
        after: (N,) the same after.
        groups: (N,) the group of each item, where items are not independent.

    Raises:
        ValueError: If the two have different lengths or are empty.
    """
    was, now = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if was.shape != now.shape or was.size == 0:
        raise ValueError(f"before and after must be the same items: {was.size} and {now.size}")
    change = now - was
    alone = groups is None or num_groups(groups) == len(groups) == len(was)
    if alone:
        totals: Floats = change
        interval = _newcombe(now, was)
    else:
        assert groups is not None
        terms = [Term(1.0, {0: change})]
        interval = sum_interval(terms, groups, DIFFERENCES)
        totals = np.bincount(group_indices(groups), change).astype(np.float64)
    return PairedDifference(
        difference=interval.value,
        low=interval.low,
        high=interval.high,
        lost=float(np.maximum(-change, 0.0).sum()),
        gained=float(np.maximum(change, 0.0).sum()),
        p_value=sign_flip_test(totals),
    )


def sign_flip_test(totals: Sequence[float] | Floats) -> float:
    """Exact two-sided p-value of a sum whose parts could as well have had the other sign.

    With parts of -1 and 1 it is McNemar's exact test, a fair coin for every item that flipped. With
    the sums of whole groups it is its form for items that are not independent: a coin a group.
    All signs are counted; where that is too much they are drawn, and p is (b + 1) / (m + 1).

    Args:
        totals: (G,) change of each group.
    """
    changed = np.abs(np.asarray(totals, dtype=np.float64))
    observed = abs(float(np.sum(totals)))
    changed = changed[changed > 1e-9]
    if not len(changed) or observed < 1e-9:
        return 1.0
    parts = _whole(changed)
    if parts is None or len(parts) * int(parts.sum()) > _EXACT:
        return _drawn(changed, observed)
    reach = int(parts.sum())
    # Of how many sign patterns, as a share, do the positive parts sum to 0, 1, ... reach?
    share = np.zeros(reach + 1)
    share[0], top = 1.0, 0
    for part in np.sort(parts):
        below = share[: top + 1] / 2
        share[: top + 1] = below
        share[part : top + 1 + part] += below
        top += int(part)
    sums = np.abs(2 * np.arange(reach + 1) - reach)
    seen = round(observed * reach / float(changed.sum()))
    return min(1.0, float(share[sums >= seen].sum()))


def _whole(changed: Floats) -> NDArray[np.int64] | None:
    """The parts in units of which all are whole; None where there is no such unit."""
    near = [Fraction(float(part)).limit_denominator(_PARTS) for part in set(changed.tolist())]
    unit = math.lcm(*(fraction.denominator for fraction in near))
    parts = np.rint(changed * unit)
    if unit > _PARTS or np.abs(parts - changed * unit).max() > 1e-6:
        return None
    whole = parts.astype(np.int64)
    return whole // int(np.gcd.reduce(whole))


def _drawn(changed: Floats, observed: float) -> float:
    rng = np.random.default_rng(0)
    rows, reached = max(1, _BLOCK // len(changed)), 0
    for start in range(0, _DRAWS, rows):
        signs = rng.integers(2, size=(min(rows, _DRAWS - start), len(changed))) * 2.0 - 1.0
        reached += int((np.abs(signs @ changed) >= observed - 1e-9).sum())
    return (reached + 1) / (_DRAWS + 1)


def _newcombe(first: Floats, second: Floats) -> Interval:
    """Interval of the first mean minus the second."""
    n = len(first)
    right1, right2 = float(first.sum()), float(second.sum())
    p1, p2 = right1 / n, right2 / n
    (low1, high1), (low2, high2) = wilson(right1, n), wilson(right2, n)
    margins = right1 * (n - right1) * right2 * (n - right2)
    cross = n * float(first @ second) - right1 * right2
    if cross > 0:
        cross = max(cross - n / 2, 0.0)  # the paper's continuity correction of phi
    phi = cross / math.sqrt(margins) if margins else 0.0

    def spread(down: float, up: float) -> float:
        return math.sqrt(max(0.0, down * down - 2 * phi * down * up + up * up))

    difference = float((first - second).sum()) / n
    return Interval(
        difference,
        difference - spread(p1 - low1, high2 - p2),
        difference + spread(high1 - p1, p2 - low2),
    )
