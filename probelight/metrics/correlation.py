"""Rank correlation of a few pairs of numbers, with its interval and a permutation test."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

_MOST_EXACT = 8  # 8! = 40,320 orders are enumerated, more are sampled
_NUM_SAMPLES = 100_000
_SLACK = 1e-9  # correlations that differ by rounding alone are equal


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rank correlation.

    Attributes:
        rho: The correlation; NaN if one side is constant.
        low: Lower end of the 95% interval, from Fisher's z with the standard error of Bonett and
            Wright 2000. The interval is (-1, 1) for fewer than four pairs.
        high: Upper end of the 95% interval.
        p_value: Two-sided p-value of a permutation test: the share of orders with a correlation at
            least this strong.
        num_pairs: Number of pairs.
    """

    rho: float
    low: float
    high: float
    p_value: float
    num_pairs: int


def spearman(x: Sequence[float], y: Sequence[float]) -> RankCorrelation:
    """Return Spearman's rank correlation; numbers that tie get the mean of their ranks.

    The permutation test enumerates all orders of up to eight pairs. For more pairs it samples
    100,000 orders.

    Args:
        x: First number of each pair.
        y: Second number of each pair.

    Raises:
        ValueError: If the two have different lengths, or there are fewer than two pairs.
    """
    if len(x) != len(y) or len(x) < 2:
        raise ValueError(f"{len(x)} and {len(y)} numbers; at least two pairs are needed")
    n = len(x)
    first, second = (np.asarray(rankdata(side), dtype=np.float64) for side in (x, y))
    first, second = first - first.mean(), second - second.mean()
    scale = math.sqrt(float(first @ first) * float(second @ second))
    if scale == 0.0:
        return RankCorrelation(math.nan, -1.0, 1.0, 1.0, n)
    rho = float(first @ second) / scale
    if n <= _MOST_EXACT:
        orders = np.array(list(itertools.permutations(second)))
        extra = 0
    else:
        rng = np.random.default_rng(0)
        orders = rng.permuted(np.tile(second, (_NUM_SAMPLES, 1)), axis=1)
        extra = 1  # the order that was found is one of the possible ones
    as_far = np.abs(orders @ first / scale) >= abs(rho) - _SLACK
    p_value = (int(as_far.sum()) + extra) / (len(orders) + extra)
    return RankCorrelation(rho, *_interval(rho, n), p_value, n)


def _interval(rho: float, n: int) -> tuple[float, float]:
    if n < 4:
        return -1.0, 1.0
    if abs(rho) >= 1 - _SLACK:
        return (rho, 1.0) if rho > 0 else (-1.0, rho)
    half = 1.959963984540054 * math.sqrt((1 + rho * rho / 2) / (n - 3))
    centre = math.atanh(rho)
    return math.tanh(centre - half), math.tanh(centre + half)
