"""Intervals of means over items that come in groups, and over seeds.

One method for all of them, whatever the number of groups. Nothing is drawn: an interval is a
formula, the same on every machine, and takes a fraction of a millisecond.

- The variance over groups is that of the delete-one-group jackknife (CR3 of Bell & McCaffrey 2002:
  the percentile bootstrap's is too small where groups are few), and is never below that of
  independent items, nor below the one of items that are alike in all groups as they are within them
  (the design effect of Kish 1965 with the intraclass correlation): the jackknife's is too small
  where most groups have one item and none of the few large ones happens to differ. Groups of one
  size change nothing of it. Answers that are all alike tell nothing of how groups differ: two
  answers, the one right and the other wrong, are added to the variance as if they stood for whole
  groups (after Bonett & Price 2012; as many groups as Kish's effective number), which no longer
  shows where groups are many.
- Quantiles are Student's, with Kish's effective number of groups, (sum n)^2 / sum n^2 for groups of
  n items, less one as degrees of freedom: the number of groups where all have one size.
- Seeds and items are crossed, and both are drawn (Owen 2007; Sellam et al. 2022). The variance over
  seeds holds the interaction of seeds and items too, so that is taken out of the other. The two are
  put together as squares of half-widths, each with its own quantile: that covers at least as often
  as said (Banerjee 1960), and with two seeds it is wide, since two say little about a third.
- What comes of it is written as a number of independent items that would be as sure, and the
  interval is Wilson's for so many (Korn & Graubard 1998; Kott & Carr 1997; compared in Franco et
  al. 2019): it stays within its bounds and is no point where all answers are right.

`tests/metrics/test_coverage.py` simulates how often it holds the truth.
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

FEW = 20  # fewer groups than this are said in words beside an interval
SHARES = (0.0, 1.0)  # bounds of an accuracy
DIFFERENCES = (-1.0, 1.0)  # bounds of a difference of two
LEVEL = 0.05  # of a 95% interval
_Z = NormalDist().inv_cdf(1 - LEVEL / 2)
_HALVINGS = 40  # of a p-value, which is then exact to 1e-12
_ADDED = 2.0  # answers added to the variance as whole groups


class Interval(NamedTuple):
    """An estimate and its 95% interval."""

    value: float
    low: float
    high: float


class Term(NamedTuple):
    """A part of a sum: a weight times the mean over seeds.

    Attributes:
        weight: What the mean is multiplied by.
        runs: By seed, (N,) the credit of each item. A single run is taken as it is: its seed is not
            drawn.
    """

    weight: float
    runs: Mapping[int, Floats]


class _Grouping(NamedTuple):
    """(N,) index of each item's group, (G,) their sizes, and Kish's effective number of them."""

    member: NDArray[np.int64]
    sizes: Floats
    effective: float

    def variance(self, values: Floats) -> float:
        """Jackknife variance of the mean of (N,) values."""
        totals = np.bincount(self.member, values, len(self.sizes))
        residuals = totals - self.sizes * values.mean()
        left_out = residuals / (len(values) - self.sizes)
        return float((left_out**2).sum() * (1 - 1 / len(self.sizes)))

    def variance_if_alike(self, values: Floats) -> float:
        """Variance of the mean of (N,) values whose intraclass correlation is that of all groups.

        It is estimated within groups, where that of few large groups is seen even if these do not
        differ; 0 where every group has one item, of which nothing is known within.
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
    """A sum of means, and what its variance is made of."""

    def __init__(self, terms: Sequence[Term], groups: Groups | None) -> None:
        means = [weight * np.mean(list(runs.values()), axis=0) for weight, runs in terms]
        composite: Floats = np.sum(means, 0)
        grouping = _grouping(groups, composite.size)
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
        """Square of half a width whose upper end is a quantile."""
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
        added = _ADDED / (self.num_items * self._effective)
        squared = _t_quantile(self._freedom, upper) ** 2
        low, high = bounds
        width = high - low
        share = min(1.0, max(0.0, (self.value - low) / width))
        spread = share * (1 - share) + _ADDED / self.num_items
        as_sure_as = spread * (z * width) ** 2 / (self.squared_half(upper) + squared * added)
        ends = _score(share, as_sure_as, z)
        return Interval(self.value, low + width * ends[0], low + width * ends[1])


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Wilson's 95% score interval of a proportion, without continuity correction.

    Nothing is known without any trial: (0, 1).

    Args:
        successes: Trials that succeeded; a trial may count in part.
        n: Trials.

    Raises:
        ValueError: If there are more successes than trials.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
    return _score(successes / n if n else 0.5, n)


def accuracy_interval(credit: ArrayLike, groups: Groups | None = None) -> Interval:
    """Accuracy and its interval: Wilson's where every item is a group of its own.

    With a single group nothing is known about its spread: (0, 1).

    Args:
        credit: (N,) what each item counts: 1 right, 0 wrong, a part of 1 for a tie.
        groups: (N,) the group of each item; every item is a group of its own when left out.

    Raises:
        ValueError: If there are no items, or items and groups differ in number.
    """
    values = np.asarray(credit, dtype=np.float64)
    if len(values) and (groups is None or num_groups(groups) == len(values) == len(groups)):
        return Interval(float(values.mean()), *wilson(float(values.sum()), len(values)))
    return sum_interval([Term(1.0, {0: values})], groups)


def sum_interval(
    terms: Sequence[Term],
    groups: Groups | None = None,
    bounds: tuple[float, float] = SHARES,
    level: float = LEVEL,
) -> Interval:
    """A weighted sum of means over seeds, all measured on the same items, and its interval.

    So is a mean over seeds, a difference of two (weights 1 and -1), and a weighted sum of the
    points of a curve. The same items, and the same seeds, are drawn for all terms: runs of one seed
    are taken as trained on the same sample.

    Args:
        terms: What is summed.
        groups: (N,) the group of each item; every item is a group of its own when left out.
        bounds: The lowest and highest value that the sum can have.
        level: How often such intervals fail to hold the truth, 0.05 of 95% intervals.

    Raises:
        ValueError: If there are no items, or items and groups differ in number.
    """
    return _Sum(terms, groups).interval(bounds, level)


def sum_p_value(terms: Sequence[Term], groups: Groups | None = None) -> float:
    """Two-sided p-value of a difference of nothing: the level whose interval ends at 0.

    It is below 0.05 exactly where the 95% interval of `sum_interval` leaves out 0.

    Args:
        terms: What is summed, a difference of two.
        groups: (N,) the group of each item; every item is a group of its own when left out.

    Raises:
        ValueError: If there are no items, or items and groups differ in number.
    """
    made = _Sum(terms, groups)
    below, above = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        _, low, high = made.interval(DIFFERENCES, middle)
        below, above = (below, middle) if low > 0 or high < 0 else (middle, above)
    return above


def half_width(terms: Sequence[Term], groups: Groups | None = None) -> float:
    """Half of a sum's 95% interval before it is put within bounds: quantiles times deviations.

    Args:
        terms: What is summed.
        groups: (N,) the group of each item; every item is a group of its own when left out.

    Returns:
        Half of the width; infinite with a single group, of which nothing is known.

    Raises:
        ValueError: If there are no items, or items and groups differ in number.
    """
    made = _Sum(terms, groups)
    return math.inf if made.num_groups == 1 else math.sqrt(made.squared_half(1 - LEVEL / 2))


def num_groups(groups: Groups) -> int:
    """How many different groups there are."""
    return len(np.unique(groups)) if isinstance(groups, np.ndarray) else len(set(groups))


def group_indices(groups: Groups) -> NDArray[np.int64]:
    """(N,) index of each item's group, from 0 without gaps."""
    if isinstance(groups, np.ndarray):
        return np.unique(groups, return_inverse=True)[1]
    places: dict[Hashable, int] = {}
    return np.array([places.setdefault(g, len(places)) for g in groups], dtype=np.int64)


def _grouping(groups: Groups | None, num_items: int) -> _Grouping:
    if num_items == 0 or (groups is not None and len(groups) != num_items):
        raise ValueError(f"{num_items} items and {0 if groups is None else len(groups)} groups")
    member = np.arange(num_items) if groups is None else group_indices(groups)
    sizes = np.bincount(member).astype(np.float64)
    return _Grouping(member, sizes, num_items**2 / float((sizes**2).sum()))


def _seed_effects(terms: Sequence[Term]) -> list[Floats]:
    """Of each seed (N,) what it adds to the sum, so that squared means sum to a variance."""
    effects: dict[int, Floats] = {}
    for weight, runs in terms:
        if len(runs) < 2:
            continue
        mean = np.mean(list(runs.values()), axis=0)
        scale = weight / math.sqrt(len(runs) * (len(runs) - 1))
        for seed, values in runs.items():
            effects[seed] = effects.get(seed, 0.0) + scale * (values - mean)
    return list(effects.values())


def _score(share: float, n: float, z: float = _Z) -> tuple[float, float]:
    """Wilson's interval of a share of `n` trials, which need not be a whole number."""
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
