"""Rank correlation of a few pairs of numbers, with its interval."""

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
    """Spearman's correlation."""

    rho: float  # NaN where one side is constant
    low: float  # end of the 95% interval (Fisher's z, standard error of Bonett and Wright 2000)
    high: float  # the interval is (-1, 1) for fewer than four pairs
    p_value: float  # two-sided permutation test: share of orders with at least this correlation
    num_pairs: int


def spearman(x: Sequence[float], y: Sequence[float]) -> RankCorrelation:
    """Return Spearman's rank correlation of at least two pairs; ties get the mean of their ranks.

    The permutation test enumerates all orders of up to eight pairs and samples 100,000 of more.
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
