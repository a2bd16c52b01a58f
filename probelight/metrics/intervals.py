"""Intervals of means over items that come in groups, and over seeds.

One formula whatever the number of groups; nothing is drawn.

- The variance over groups is that of the delete-one-group jackknife (CR3 of Bell & McCaffrey 2002:
  the percentile bootstrap's is too small where groups are few). It is never below that of
  independent items, nor below the one with the intraclass correlation within groups (the design
  effect of Kish 1965): the jackknife's is too small where most groups have one item and none of the
  few large ones happens to differ. Where all answers are alike, nothing is known of how groups
  differ: two answers, one right and one wrong, are added to the variance as if they stood for whole
  groups (after Bonett & Price 2012; as many groups as Kish's effective number).
- Quantiles are Student's, with Kish's effective number of groups, (sum n)^2 / sum n^2 for groups of
  n items, less one as degrees of freedom.
- Seeds and items are crossed, and both are drawn (Owen 2007; Sellam et al. 2022). The variance over
  seeds holds the interaction of seeds and items too, so that is taken out of the other. The two are
  put together as squares of half-widths, each with its own quantile: that covers at least as often
  as said (Banerjee 1960), and is wide with two seeds.
- The result is written as a number of independent items that would be as sure, and the interval is
  Wilson's for that number (Korn & Graubard 1998; Kott & Carr 1997; compared in Franco et al. 2019):
  it stays within its bounds and is no point where all answers are right.

`tests/metrics/test_coverage.py` simulates how often it holds the truth. Everywhere `groups` are
(N,) the group of each item, None if each is its own; `ValueError` is raised if there are no items,
or items and groups differ in number.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Groups = Sequence[Hashable] | NDArray[np.int64]

LEAST_GROUPS = 40  # of changes and of means without bounds: with fewer, intervals fail too often
FEW = 20  # fewer groups than this are mentioned next to an interval
SHARES = (0.0, 1.0)  # bounds of an accuracy
DIFFERENCES = (-1.0, 1.0)  # bounds of a difference of two
LEVEL = 0.05  # of a 95% interval
Z = NormalDist().inv_cdf(1 - LEVEL / 2)
_HALVINGS = 40  # of a p-value, which is then exact to 1e-12
ADDED = 2.0  # answers added to the variance as whole groups


class Interval(NamedTuple):
    """An estimate and its 95% interval."""

    value: float
    low: float
    high: float


class Term(NamedTuple):
    """A part of a sum: a weight times the mean over seeds."""

    weight: float
    runs: Mapping[int, Floats]  # by seed, (N,) scores of items; a single run's seed is not drawn


class _Grouping:
    """(N,) index of each item's group, (G,) their sizes, and Kish's effective number of them."""

    def __init__(self, groups: Groups | None, num_items: int) -> None:
        if num_items == 0 or (groups is not None and len(groups) != num_items):
            raise ValueError(f"{num_items} items and {0 if groups is None else len(groups)} groups")
        self.member = np.arange(num_items) if groups is None else group_indices(groups)
        self.sizes = np.bincount(self.member).astype(np.float64)
        self.effective = num_items**2 / float((self.sizes**2).sum())

    def variance(self, values: Floats) -> float:
        """Return the jackknife variance of the mean of (N,) values."""
        totals = np.bincount(self.member, values, len(self.sizes))
        residuals = totals - self.sizes * values.mean()
        left_out = residuals / (len(values) - self.sizes)
        return float((left_out**2).sum() * (1 - 1 / len(self.sizes)))

    def variance_if_alike(self, values: Floats) -> float:
        """Return the variance of the mean with the intraclass correlation within groups.

        It is 0 where every group has one item.
        """
        num_items, within_groups = len(values), len(values) - len(self.sizes)
        total = float(values.var())
        if not within_groups or not total:
            return 0.0
        totals = np.bincount(self.member, values, len(self.sizes))
        within = float((values**2).sum() - (totals**2 / self.sizes).sum()) / within_groups
        correlation = min(1.0, max(0.0, 1 - within / total))
        return total / num_items * (1 + (num_items / self.effective - 1) * correlation)


class _Sum:
    """A sum of means, and the parts of its variance."""

    def __init__(self, terms: Sequence[Term], groups: Groups | None) -> None:
        means = [weight * np.mean(list(runs.values()), axis=0) for weight, runs in terms]
        composite: Floats = np.sum(means, 0)
        grouping = _Grouping(groups, composite.size)
        self.value = float(composite.mean())
        self.num_items, self.num_groups = len(composite), len(grouping.sizes)
        if self.num_groups == 1:
            return
        self._effective = grouping.effective
        self._freedom = max(1.0, grouping.effective - 1)  # that of two groups of one size
        self._over_groups = max(
            grouping.variance(composite),
            float(composite.var()) / self.num_items,
            grouping.variance_if_alike(composite),
        )
        effects = _seed_effects(terms)
        self._num_seeds = min((len(runs) for _, runs in terms if len(runs) > 1), default=1)
        self._interaction = sum(map(grouping.variance, effects))
        self._over_seeds = sum(float(effect.mean()) ** 2 for effect in effects)

    def squared_half(self, upper: float) -> float:
        """Return the square of half the width up to a quantile."""
        squared = _t_quantile(self._freedom, upper) ** 2
        half = squared * self._over_groups
        if self._num_seeds == 1:
            return half
        both = squared * max(self._over_groups - self._interaction, 0.0)
        both += _t_quantile(self._num_seeds - 1, upper) ** 2 * self._over_seeds
        return max(half, both)  # never narrower than for these very seeds

    def interval(self, bounds: tuple[float, float], level: float) -> Interval:
        """The interval within the bounds."""
        if self.num_groups == 1:
            return Interval(self.value, *bounds)
        upper = 1 - level / 2
        z = NormalDist().inv_cdf(upper)
        added = ADDED / (self.num_items * self._effective)
        squared = _t_quantile(self._freedom, upper) ** 2
        low, high = bounds
        width = high - low
        share = min(1.0, max(0.0, (self.value - low) / width))
        spread = share * (1 - share) + ADDED / self.num_items
        as_sure_as = spread * (z * width) ** 2 / (self.squared_half(upper) + squared * added)
        ends = _score(share, as_sure_as, z)
        return Interval(self.value, low + width * ends[0], low + width * ends[1])


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95% score interval of a proportion; (0, 1) without any trial.

    Args:
        successes: Trials that succeeded, at most `n`; a trial may count in part.
        n: Trials.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
    return _score(successes / n if n else 0.5, n)


def accuracy_interval(item_scores: ArrayLike, groups: Groups | None = None) -> Interval:
    """Return an accuracy and its interval: Wilson's where every item is a group of its own.

    With a single group nothing is known about the spread: (0, 1).

    Args:
        item_scores: (N,) score of each item: 1 right, 0 wrong, a part of 1 for a tie.
        groups: (N,) the group of each item.
    """
    values = np.asarray(item_scores, dtype=np.float64)
    if len(values) and (groups is None or num_groups(groups) == len(values) == len(groups)):
        return Interval(float(values.mean()), *wilson(float(values.sum()), len(values)))
    return sum_interval([Term(1.0, {0: values})], groups)


def runs_interval(runs: Mapping[int, Floats], groups: Groups | None = None) -> Interval:
    """Return the mean accuracy of the runs of several seeds, and its interval; of one run its own.

    Args:
        runs: By seed, (N,) the score of each item.
        groups: (N,) the group of each item.
    """
    if len(runs) == 1:
        return accuracy_interval(next(iter(runs.values())), groups)
    return sum_interval([Term(1.0, runs)], groups)


def sum_interval(
    terms: Sequence[Term],
    groups: Groups | None = None,
    bounds: tuple[float, float] = SHARES,
    level: float = LEVEL,
) -> Interval:
    """Return a weighted sum of means over seeds, measured on the same items, and its interval.

    It may be a mean over seeds, a difference of two (weights 1 and -1), or a weighted sum of the
    points of a curve. The same items, and the same seeds, are drawn for all terms: runs of one seed
    are taken as trained on the same sample.

    Args:
        terms: Weights, and runs by seed.
        groups: (N,) the group of each item.
        bounds: Lowest and highest value that the sum can have.
        level: How often such intervals fail to hold the truth, 0.05 of 95% intervals.
    """
    return _Sum(terms, groups).interval(bounds, level)


def sum_p_value(terms: Sequence[Term], groups: Groups | None = None) -> float:
    """Return the two-sided p-value of a difference of two: the level whose interval ends at 0.

    It is below 0.05 exactly where the 95% interval of `sum_interval` leaves out 0.
    """
    difference = _Sum(terms, groups)
    below, above = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        _, low, high = difference.interval(DIFFERENCES, middle)
        below, above = (below, middle) if low > 0 or high < 0 else (middle, above)
    return above


def half_width(terms: Sequence[Term], groups: Groups | None = None) -> float:
    """Return half of a sum's 95% interval before it is put within bounds; inf of a single group."""
    total = _Sum(terms, groups)
    return math.inf if total.num_groups == 1 else math.sqrt(total.squared_half(1 - LEVEL / 2))


def mean_interval(runs: Mapping[int, Floats], groups: Groups | None = None) -> Interval:
    """Return the mean over items and seeds of values without bounds, and its interval.

    Its ends are infinite if there are fewer groups than `LEAST_GROUPS`.

    Args:
        runs: By seed, (N,) the value of each item.
        groups: (N,) the group of each item.
    """
    value = float(np.mean(list(runs.values())))
    number = len(next(iter(runs.values()))) if groups is None else num_groups(groups)
    half = math.inf if number < LEAST_GROUPS else half_width([Term(1.0, runs)], groups)
    return Interval(value, value - half, value + half)


def num_groups(groups: Groups) -> int:
    """Return how many different groups there are."""
    return len(np.unique(groups)) if isinstance(groups, np.ndarray) else len(set(groups))


def num_effective(groups: Groups) -> float:
    """Return Kish's effective number of groups: of independent items that tell as much."""
    return _Grouping(groups, len(groups)).effective


def group_indices(groups: Groups) -> NDArray[np.int64]:
    """Return (N,) the index of each item's group, from 0 without gaps."""
    if isinstance(groups, np.ndarray):
        return np.unique(groups, return_inverse=True)[1]
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(g, len(places)) for g in groups], dtype=np.int64)


def _seed_effects(terms: Sequence[Term]) -> list[Floats]:
    """Return (N,) what each seed adds to the sum, so that squared means sum to a variance."""
    effects: dict[int, Floats] = {}
    for weight, runs in terms:
        if len(runs) < 2:
            continue
        mean = np.mean(list(runs.values()), axis=0)
        scale = weight / math.sqrt(len(runs) * (len(runs) - 1))
        for seed, values in runs.items():
            effects[seed] = effects.get(seed, 0.0) + scale * (values - mean)
    return list(effects.values())


def _score(share: float, n: float, z: float = Z) -> tuple[float, float]:
    """Return Wilson's interval of a share of `n` trials, which need not be a whole number."""
    if n == 0:
        return 0.0, 1.0
    centre = (share * n + z * z / 2) / (n + z * z)
    half = z * math.sqrt(share * (1 - share) * n + z * z / 4) / (n + z * z)
    # The ends are exact where rounding would put them a hair beyond.
    low = 0.0 if share == 0 else max(0.0, centre - half)
    high = 1.0 if share == 1 else min(1.0, centre + half)
    return low, high


def _t_quantile(freedom: float, upper: float) -> float:
    """Return the quantile of Student's t distribution."""
    from scipy.special import stdtrit  # half a second, which --help can do without

    return float(stdtrit(freedom, upper))
