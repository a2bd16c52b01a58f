"""Intervals of means over items that come in groups, and over seeds.

One formula is used for any number of groups, and nothing is resampled at random.

- The variance over groups is that of the delete-one-group jackknife (CR3 of Bell & McCaffrey 2002);
  the percentile bootstrap's is too small if there are few groups. It is never below the variance of
  independent items, nor below the variance with the intraclass correlation within groups (the
  design effect of Kish 1965): the jackknife's is too small if most groups have one item and the few
  large ones do not happen to differ. If all answers are alike, it is unknown how groups differ.
  Therefore two answers, one right and one wrong, are added to the variance as if they were whole
  groups (after Bonett & Price 2012; the number of groups is Kish's effective number).
- Quantiles are those of Student's t distribution. The degrees of freedom are Kish's effective
  number
  of groups, (sum n)^2 / sum n^2 for groups of n items, minus one.
- Seeds and items are crossed, and both count as drawn at random (Owen 2007; Sellam et al. 2022).
  The
  variance over seeds includes the interaction of seeds and items, so the interaction is subtracted
  from the variance over groups. The two are combined as squares of half-widths, each with its own
  quantile. Such an interval has at least the stated coverage (Banerjee 1960), and is wide with two
  seeds.
- The result is expressed as a number of independent items that would give the same certainty, and
  the interval is Wilson's for that number (Korn & Graubard 1998; Kott & Carr 1997; compared in
  Franco et al. 2019). It stays within its bounds and has a width even if all answers are right.

`tests/metrics/test_coverage.py` simulates how often the intervals contain the true value.

In all functions `groups` is (N,) the group of each item, or None if each item is its own group,
`runs` is by seed (N,) the score of each item, and `terms` are weights of such runs. A `ValueError`
is raised if there are no items, or the numbers of items and groups differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
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
    """An estimate with the lower and upper end of its 95% interval."""

    value: float
    low: float
    high: float


class Term(NamedTuple):
    """A part of a sum: a weight times the mean over seeds.

    Attributes:
        weight: The weight.
        runs: By seed, (N,) the score of each item. The seed of a single run does not count as drawn
            at random.
    """

    weight: float
    runs: Mapping[int, Floats]


class _Grouping:
    """(N,) index of each item's group, (G,) their sizes, and Kish's effective number of them."""

    def __init__(self, groups: Groups | None, num_items: int) -> None:
        if num_items == 0 or (groups is not None and len(groups) != num_items):
            num_labels = 0 if groups is None else len(groups)
            raise ValueError(f"{num_items} items and {num_labels} groups; give one group per item")
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
        # (N,) what each seed adds to the sum, so that squared means sum to a variance.
        effects: dict[int, Floats] = {}
        several = [(weight, runs) for weight, runs in terms if len(runs) > 1]
        for weight, runs in several:
            mean = np.mean(list(runs.values()), axis=0)
            scale = weight / math.sqrt(len(runs) * (len(runs) - 1))
            for seed, values in runs.items():
                effects[seed] = effects.get(seed, 0.0) + scale * (values - mean)
        self._num_seeds = min((len(runs) for _, runs in several), default=1)
        self._interaction = sum(map(grouping.variance, effects.values()))
        self._over_seeds = sum(float(effect.mean()) ** 2 for effect in effects.values())

    @classmethod
    def of_moments(cls, mean: float, variance: float, num_items: int) -> _Sum:
        """Return the sum over one run of items that are groups of their own."""
        total = cls.__new__(cls)
        total.value, total.num_items, total.num_groups = mean, num_items, num_items
        total._effective, total._freedom = float(num_items), max(1.0, num_items - 1.0)
        total._over_groups = variance / max(1, num_items - 1)
        total._num_seeds = 1
        return total

    def squared_half(self, upper: float) -> float:
        """Return the square of half the width up to a quantile."""
        squared = _t_quantile(self._freedom, upper) ** 2
        half = squared * self._over_groups
        if self._num_seeds == 1:
            return half
        combined = squared * max(self._over_groups - self._interaction, 0.0)
        combined += _t_quantile(self._num_seeds - 1, upper) ** 2 * self._over_seeds
        return max(half, combined)  # never narrower than for these very seeds

    def interval(self, bounds: tuple[float, float], level: float) -> Interval:
        """Return the interval within the bounds."""
        if self.num_groups == 1:
            return Interval(self.value, *bounds)
        upper = 1 - level / 2
        z = NormalDist().inv_cdf(upper)
        added = ADDED / (self.num_items * self._effective)
        squared = _t_quantile(self._freedom, upper) ** 2
        if not squared:  # of a level next to 1
            return Interval(self.value, self.value, self.value)
        low, high = bounds
        width = high - low
        share = min(1.0, max(0.0, (self.value - low) / width))
        spread = share * (1 - share) + ADDED / self.num_items
        num_equivalent = spread * (z * width) ** 2 / (self.squared_half(upper) + squared * added)
        ends = _score(share, num_equivalent, z)
        return Interval(self.value, low + width * ends[0], low + width * ends[1])


class Moments(NamedTuple):
    """What intervals need of items that are groups of their own and were answered once.

    Attributes:
        mean: Mean of a value of the items.
        variance: Its variance.
        num_items: Number of items.
    """

    mean: float
    variance: float
    num_items: int

    def interval(self, bounds: tuple[float, float], level: float = LEVEL) -> Interval:
        """Return the interval of the mean, as `sum_interval` does."""
        return _Sum.of_moments(*self).interval(bounds, level)

    def half_width(self) -> float:
        """Return half the width of the interval without bounds, as `half_width` does."""
        return _half_width(_Sum.of_moments(*self))


def wilson(successes: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's score interval of a proportion; it is (0, 1) if there are no trials.

    Args:
        successes: Number of trials that succeeded, at most `n`; a trial may count in part.
        n: Number of trials.
        level: How often such intervals miss the true value: 0.05 for 95% intervals.

    Raises:
        ValueError: If `successes` is not from 0 to `n`.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
    z = Z if level == LEVEL else NormalDist().inv_cdf(1 - level / 2)
    return _score(successes / n if n else 0.5, n, z)


def num_equivalent_items(value: float, low: float) -> float:
    """Return the number of independent items whose Wilson interval has this lower end.

    Args:
        value: An accuracy.
        low: Lower end of its 95% interval, below it.
    """
    return Z**2 * low * (1 - low) / (value - low) ** 2


def accuracy_interval(item_scores: ArrayLike, groups: Groups | None = None) -> Interval:
    """Return an accuracy and its interval.

    If every item is its own group, the interval is Wilson's. With a single group the spread is
    unknown, and the interval is (0, 1).

    Args:
        item_scores: (N,) score of each item: 1 right, 0 wrong, a part of 1 for a tie.
        groups: (N,) the group of each item.
    """
    values = np.asarray(item_scores, dtype=np.float64)
    if len(values) and (groups is None or num_groups(groups) == len(values) == len(groups)):
        return Interval(float(values.mean()), *wilson(float(values.sum()), len(values)))
    return sum_interval([Term(1.0, {0: values})], groups)


def runs_interval(runs: Mapping[int, Floats], groups: Groups | None = None) -> Interval:
    """Return the mean accuracy over runs of several seeds, and its interval.

    For a single run it is the run's own accuracy and interval.
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

    It may be a mean over seeds, a difference of two means (weights 1 and -1), or a weighted sum of
    the points of a curve. All terms share the same items and seeds: runs with the same seed are
    taken to be trained on the same sample.

    Args:
        terms: Weights, and runs by seed.
        groups: (N,) the group of each item.
        bounds: Lowest and highest possible value of the sum.
        level: How often such intervals miss the true value: 0.05 for 95% intervals.
    """
    return _Sum(terms, groups).interval(bounds, level)


def sum_p_value(terms: Sequence[Term], groups: Groups | None = None) -> float:
    """Return the two-sided p-value of a difference: the level at which its interval ends at 0.

    It is below 0.05 exactly if the 95% interval of `sum_interval` excludes 0.
    """
    difference = _Sum(terms, groups)
    return level_at_zero(lambda level: difference.interval(DIFFERENCES, level))


def level_at_zero(interval_at: Callable[[float], Interval]) -> float:
    """Return the level at which a difference's interval ends at 0: its two-sided p-value.

    It is below `LEVEL` exactly if the interval of that level excludes 0.
    """

    def excludes_zero(level: float) -> bool:
        _, low, high = interval_at(level)
        return low > 0 or high < 0

    below, above = (0.0, LEVEL) if excludes_zero(LEVEL) else (LEVEL, 1.0)
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (below, middle) if excludes_zero(middle) else (middle, above)
    return above


def half_width(terms: Sequence[Term], groups: Groups | None = None) -> float:
    """Return half the width of a sum's 95% interval without bounds; inf for a single group."""
    return _half_width(_Sum(terms, groups))


def _half_width(total: _Sum) -> float:
    return math.inf if total.num_groups == 1 else math.sqrt(total.squared_half(1 - LEVEL / 2))


def mean_interval(runs: Mapping[int, Floats], groups: Groups | None = None) -> Interval:
    """Return the mean over items and seeds of values without bounds, and its interval.

    The ends are infinite if there are fewer groups than `LEAST_GROUPS`.
    """
    value = float(np.mean(list(runs.values())))
    number = len(next(iter(runs.values()))) if groups is None else num_groups(groups)
    half = math.inf if number < LEAST_GROUPS else half_width([Term(1.0, runs)], groups)
    return Interval(value, value - half, value + half)


def num_groups(groups: Groups) -> int:
    """Return the number of different groups."""
    return len(np.unique(groups)) if isinstance(groups, np.ndarray) else len(set(groups))


def num_effective(groups: Groups) -> float:
    """Return Kish's effective number of groups: how many groups of equal size tell as much."""
    return _Grouping(groups, len(groups)).effective


def group_indices(groups: Groups) -> NDArray[np.int64]:
    """Return (N,) the index of each item's group; indices begin at 0 and have no gaps."""
    if isinstance(groups, np.ndarray):
        return np.unique(groups, return_inverse=True)[1]
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(g, len(places)) for g in groups], dtype=np.int64)


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
