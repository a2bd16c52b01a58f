"""Comparisons of models: the difference with its interval, and a test of whether it is real.

`groups` and the `ValueError` are as in `probelight.metrics.intervals`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, product
from string import ascii_lowercase

import numpy as np
from numpy.typing import ArrayLike, NDArray

from probelight.metrics.intervals import (
    DIFFERENCES,
    LEVEL,
    Floats,
    Groups,
    Interval,
    Term,
    Z,
    group_indices,
    half_width,
    level_at_zero,
    num_effective,
    num_groups,
    sum_interval,
    sum_p_value,
    wilson,
)
from probelight.metrics.power import paired

_PARTS = 2520  # a tie of up to ten choices is a whole number of these parts of an item
_EXACT = 2 * 10**8  # additions of an exact test; beyond, it is drawn
_DRAWS = 9_999
_BLOCK = 2**22  # drawn signs held at a time
Runs = Mapping[int, Floats]  # by seed, (N,) scores of items


@dataclass(frozen=True)
class PairedDifference:
    """The difference of two accuracies on the same items.

    Attributes:
        difference: Accuracy after minus accuracy before; the inoculation cost is its negative.
        low: Lower end of the 95% interval of the difference.
        high: Upper end of the 95% interval of the difference.
        lost: Number of items that were right before and are wrong after; ties count in part.
        gained: Number of items that were wrong before and are right after; ties count in part.
        p_value: Two-sided p-value of the difference, below 0.05 exactly if its interval excludes 0.
        mcnemar_p: Two-sided p-value of McNemar's exact test of lost against gained, over groups if
            there are any.
    """

    difference: float
    low: float
    high: float
    lost: float
    gained: float
    p_value: float
    mcnemar_p: float


def paired_difference(
    scores_before: ArrayLike, scores_after: ArrayLike, groups: Groups | None = None
) -> PairedDifference:
    """Compare two models, or one model before and after training, on the same items.

    If every item is its own group, the interval is Newcombe's for paired proportions, which squares
    and adds Wilson intervals (1998, method 10). Otherwise it is that of
    `probelight.metrics.intervals`.

    Args:
        scores_before: (N,) score of each item before: 1 right, 0 wrong, a part of 1 for a tie.
        scores_after: (N,) score of each item after.
        groups: (N,) the group of each item.

    Raises:
        ValueError: If before and after have different lengths, or there are no items.
    """
    old, new = (np.asarray(scores, dtype=np.float64) for scores in (scores_before, scores_after))
    if old.shape != new.shape or old.size == 0:
        raise ValueError(
            f"before and after must have the same items, not {old.size} and {new.size}"
        )
    change = new - old
    is_ungrouped = groups is None or num_groups(groups) == len(groups) == len(old)
    if is_ungrouped:
        totals: Floats = change
        interval = _newcombe(new, old)
        p_value = level_at_zero(lambda level: _newcombe(new, old, level))
    else:
        assert groups is not None
        terms = [Term(1.0, {0: change})]
        interval = sum_interval(terms, groups, DIFFERENCES)
        p_value = sum_p_value(terms, groups)
        totals = np.bincount(group_indices(groups), change).astype(np.float64)
    return PairedDifference(
        difference=interval.value,
        low=interval.low,
        high=interval.high,
        lost=float(np.maximum(-change, 0.0).sum()),
        gained=float(np.maximum(change, 0.0).sum()),
        p_value=p_value,
        mcnemar_p=sign_flip_test(totals),
    )


def counted_difference(both: int, lost: int, gained: int, neither: int) -> PairedDifference:
    """Return the `paired_difference` of items for which only counts are known.

    Args:
        both: Number of items that are right before and after.
        lost: Number of items that are right only before.
        gained: Number of items that are right only after.
        neither: Number of items that are never right.
    """
    from scipy.stats import binomtest  # a second, which --help can do without

    sums = both + gained, both + lost, both, gained - lost, both + lost + gained + neither
    interval = _newcombe_of_sums(*sums)
    return PairedDifference(
        *interval,
        lost=lost,
        gained=gained,
        p_value=level_at_zero(lambda level: _newcombe_of_sums(*sums, level)),
        mcnemar_p=float(binomtest(lost, lost + gained).pvalue) if lost + gained else 1.0,
    )


def sign_flip_test(totals: Sequence[float] | Floats) -> float:
    """Return the exact two-sided p-value of a sum if each of its parts could have either sign.

    If the parts are -1 or 1, it is McNemar's exact test, a fair coin for every item that flipped.
    If they are the sums of whole groups, there is one coin per group, which is the test for items
    that are not independent. All combinations of signs are counted. If they are too many, m of them
    are drawn, of which b are at least as extreme, and p is (b + 1) / (m + 1).

    Args:
        totals: (G,) the change of each item or group.
    """
    changed = np.abs(np.asarray(totals, dtype=np.float64))
    observed = abs(float(np.sum(totals)))
    changed = changed[changed > 1e-9]
    if not len(changed) or observed < 1e-9:
        return 1.0
    summands = _integer_multiples(changed)
    if summands is None or len(summands) * int(summands.sum()) > _EXACT:
        rng = np.random.default_rng(0)
        rows, reached = max(1, _BLOCK // len(changed)), 0
        for start in range(0, _DRAWS, rows):
            signs = rng.integers(2, size=(min(rows, _DRAWS - start), len(changed))) * 2.0 - 1.0
            reached += int((np.abs(signs @ changed) >= observed - 1e-9).sum())
        return (reached + 1) / (_DRAWS + 1)
    reach = int(summands.sum())
    # Of how many sign patterns, as a share, do the positive parts sum to 0, 1, ... reach?
    share = np.zeros(reach + 1)
    share[0], top = 1.0, 0
    for summand in np.sort(summands):
        halved = share[: top + 1] / 2
        share[: top + 1] = halved
        share[summand : top + 1 + summand] += halved
        top += int(summand)
    sums = np.abs(2 * np.arange(reach + 1) - reach)
    observed_sum = round(observed * reach / float(changed.sum()))
    return min(1.0, float(share[sums >= observed_sum].sum()))


def _integer_multiples(changed: Floats) -> NDArray[np.int64] | None:
    """Return the parts in whole units; None where no unit fits all."""
    near = [Fraction(float(change)).limit_denominator(_PARTS) for change in set(changed.tolist())]
    unit = math.lcm(*(fraction.denominator for fraction in near))
    multiples = np.rint(changed * unit)
    if unit > _PARTS or np.abs(multiples - changed * unit).max() > 1e-6:
        return None
    integers = multiples.astype(np.int64)
    return integers // int(np.gcd.reduce(integers))


def _newcombe(first: Floats, second: Floats, level: float = LEVEL) -> Interval:
    """Return the interval of the first mean minus the second."""
    difference = float((first - second).sum())
    sums = float(first.sum()), float(second.sum()), float(first @ second)
    return _newcombe_of_sums(*sums, difference, len(first), level)


def _newcombe_of_sums(
    right1: float, right2: float, both: float, difference: float, n: int, level: float = LEVEL
) -> Interval:
    """Return the interval by the sums of both scores, of their products and of the differences."""
    p1, p2 = right1 / n, right2 / n
    (low1, high1), (low2, high2) = wilson(right1, n, level), wilson(right2, n, level)
    margins = right1 * (n - right1) * right2 * (n - right2)
    cross = n * both - right1 * right2
    if cross > 0:
        cross = max(cross - n / 2, 0.0)  # the paper's continuity correction of phi
    phi = cross / math.sqrt(margins) if margins else 0.0

    def spread(down: float, up: float) -> float:
        return math.sqrt(max(0.0, down * down - 2 * phi * down * up + up * up))

    difference /= n
    return Interval(
        difference,
        difference - spread(p1 - low1, high2 - p2),
        difference + spread(high1 - p1, p2 - low2),
    )


@dataclass(frozen=True)
class Compared:
    """The difference of two systems.

    Attributes:
        interval: Accuracy of the first minus accuracy of the second, with its interval.
        interval_p: p-value of this interval, below 0.05 exactly if it excludes 0.
        mcnemar_p: p-value of McNemar's exact test, over groups. With several seeds it is computed
            from each item's mean over seeds.
        p_value: The same; with several seeds it is not below the p-value of the interval.
        smallest: The difference that would have been found with a probability of 80%; inf if there
            is none.
    """

    interval: Interval
    interval_p: float
    mcnemar_p: float
    p_value: float
    smallest: float


def compare_runs(
    first: Runs, second: Runs, groups: Groups | None = None, *, same_samples: bool = False
) -> Compared:
    """Compare two systems that answered the same items (after Sellam et al. 2022).

    If a system has several runs, the interval counts both items and seeds as drawn at random.
    McNemar's test ignores seeds, so the p-value is then not below that of the interval.

    Args:
        first: By seed, (N,) the score of each item for the first system.
        second: By seed, (N,) the score of each item for the second system.
        groups: (N,) the group of each item.
        same_samples: Whether two runs with the same seed were trained on the same sample, so that
            they are a pair.
    """
    second_runs = second if same_samples else {~seed: scores for seed, scores in second.items()}
    mean, other_mean = (np.mean(list(runs.values()), axis=0) for runs in (first, second))
    between_means = paired_difference(other_mean, mean, groups=groups)
    interval = Interval(between_means.difference, between_means.low, between_means.high)
    interval_p = between_means.p_value
    terms = [Term(1.0, first), Term(-1.0, second_runs)]
    p_value = between_means.mcnemar_p
    if max(len(first), len(second)) > 1:
        interval = sum_interval(terms, groups, DIFFERENCES)
        interval_p = sum_p_value(terms, groups)
        p_value = max(p_value, interval_p)
    smallest = _smallest_effect(first, second_runs, terms, groups)
    return Compared(interval, interval_p, between_means.mcnemar_p, p_value, smallest)


def _smallest_effect(first: Runs, second: Runs, terms: list[Term], groups: Groups | None) -> float:
    """Return the difference that McNemar's test finds with probability 80% (`power.paired`).

    With discordant share d and difference g the change of an item has the variance d - g^2, so half
    an interval of h is that of n = z^2 (d - g^2) / h^2 independent items that were answered once.
    """
    items = len(next(iter(first.values())))
    member = np.arange(items) if groups is None else group_indices(groups)
    if 2 * 0.5 ** num_groups(member) > LEVEL:
        return math.inf  # not even if all groups changed one way
    pairs = [(seed, seed) for seed in first.keys() & second.keys()] or product(first, second)
    changes = [first[seed] - second[other_seed] for seed, other_seed in pairs]
    discordant = float(np.mean([np.mean(change**2) for change in changes]))
    difference = sum(weight * float(np.mean(list(runs.values()))) for weight, runs in terms)
    variance, half = discordant - difference**2, half_width(terms, groups)
    alike = variance < 1e-12 or half < 1e-9  # every item changed as the others did
    effective = num_effective(member) if alike else variance * (Z / half) ** 2
    share = 1 / (2 * items)
    return paired(effective, min(max(discordant, share), 1 - share))


def independent_difference(first: Interval, second: Interval) -> Interval:
    """Return the difference of two independent estimates, first minus second, with its interval.

    The squared distances to the ends of the intervals are added (Newcombe 1998, method 10, for
    Wilson's intervals; Zou & Donner 2008 for others).
    """
    difference = first.value - second.value
    down = math.hypot(first.value - first.low, second.high - second.value)
    up = math.hypot(first.high - first.value, second.value - second.low)
    return Interval(difference, difference - down, difference + up)


def compact_letters(number: int, apart: Iterable[tuple[int, int]]) -> list[str]:
    """Return letters for each model; two models share a letter if they do not clearly differ.

    This is the insert-and-absorb algorithm (Piepho 2004). It starts with one letter for all models
    and splits a letter at each pair that differs. A letter whose models all share another letter is
    dropped.

    Args:
        number: How many models there are. The first one, the best, gets an "a".
        apart: Pairs of indices of models that clearly differ.
    """
    sets = [frozenset(range(number))]
    for first, second in sorted(apart):
        split = [s for s in sets if not {first, second} <= s]
        split += [s - {gone} for s in sets if {first, second} <= s for gone in (first, second)]
        distinct = set(split)
        sets = [s for s in distinct if not any(s < larger for larger in distinct)]
    # After "z" comes "a1".
    names = (f"{letter}{turn or ''}" for turn in count() for letter in ascii_lowercase)
    named = list(zip(names, sorted(sets, key=sorted), strict=False))
    return ["".join(name for name, members in named if model in members) for model in range(number)]
