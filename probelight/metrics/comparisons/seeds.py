"""Two systems on the same items, each with one run or with one a seed: difference, test, power."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from statistics import NormalDist

import numpy as np

from probelight.metrics.comparisons.paired import paired_difference
from probelight.metrics.comparisons.power import paired
from probelight.metrics.intervals import (
    DIFFERENCES,
    LEVEL,
    Floats,
    Groups,
    Interval,
    Term,
    group_indices,
    half_width,
    sum_interval,
    sum_p_value,
)

_Z = NormalDist().inv_cdf(1 - LEVEL / 2)
Runs = Mapping[int, Floats]  # by seed, (N,) the credit of each item


@dataclass(frozen=True)
class Compared:
    """What two systems differ by.

    Attributes:
        interval: Accuracy of the first minus that of the second.
        mcnemar_p: Exact McNemar by groups; of several seeds on each item's mean over them.
        p_value: The same, and where seeds are drawn too not below that of the interval.
        smallest: The smallest difference that would have been found with probability 80%; infinite
            where none would.
    """

    interval: Interval
    mcnemar_p: float
    p_value: float
    smallest: float


def compare_runs(
    first: Runs, second: Runs, groups: Groups | None = None, *, same_samples: bool = False
) -> Compared:
    """Compares two systems that answered the same items (after Sellam et al. 2022).

    Items and seeds are both drawn where a system has several runs (Sellam et al. 2022, as a
    formula: `metrics.intervals`). McNemar's test knows nothing of seeds: a difference counts for no
    more than its interval says.

    Args:
        first: Runs of the one.
        second: Runs of the other.
        groups: (N,) the group of each item; every item is a group of its own when left out.
        same_samples: Runs of one seed were trained on the same sample, so that they are pairs;
            else seeds are numbers that say nothing of each other.

    Raises:
        ValueError: If there are no items, or items and groups differ in number.
    """
    other = second if same_samples else {~seed: credit for seed, credit in second.items()}
    mean, other_mean = (np.mean(list(runs.values()), axis=0) for runs in (first, second))
    one_each = paired_difference(other_mean, mean, groups=groups)
    interval = Interval(one_each.difference, one_each.low, one_each.high)
    terms = [Term(1.0, first), Term(-1.0, other)]
    p_value = one_each.p_value
    if max(len(first), len(second)) > 1:
        interval = sum_interval(terms, groups, DIFFERENCES)
        p_value = max(p_value, sum_p_value(terms, groups))
    smallest = _smallest(first, other, terms, groups)
    return Compared(interval, one_each.p_value, p_value, smallest)


def _smallest(first: Runs, second: Runs, terms: list[Term], groups: Groups | None) -> float:
    """The difference that McNemar's test finds with probability 80% (`power.paired`).

    With discordant share d and difference g the change of an item has the variance d - g^2, so that
    half an interval of h is that of n = z^2 (d - g^2) / h^2 independent items that were answered
    once: groups and few seeds make them fewer, several seeds more.
    """
    items = len(next(iter(first.values())))
    member = np.arange(items) if groups is None else group_indices(groups)
    sizes = np.bincount(member)
    if 2 * 0.5 ** len(sizes) > LEVEL:
        return math.inf  # not even if all groups changed one way
    pairs = [(seed, seed) for seed in first.keys() & second.keys()] or product(first, second)
    changes = [first[one] - second[other] for one, other in pairs]
    discordant = float(np.mean([np.mean(change**2) for change in changes]))
    difference = sum(weight * float(np.mean(list(runs.values()))) for weight, runs in terms)
    variance, half = discordant - difference**2, half_width(terms, groups)
    alike = variance < 1e-12 or half < 1e-9  # every item changed as the others did
    effective = items**2 / float(np.sum(sizes**2)) if alike else variance * (_Z / half) ** 2
    share = 1 / (2 * items)
    return paired(effective, min(max(discordant, share), 1 - share))
