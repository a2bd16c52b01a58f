"""Which items a model lost and gained between two measurements (Harmon et al. 2026).

Let b and a be the scores of an item before and after. Forgetting is the mean of b (1 - a), and
backward transfer the mean of (1 - b) a; their difference is the loss of accuracy.

A model that guesses shows both, even if its knowledge does not change. Suppose that an item is
either known or guessed evenly among its K real choices, and that both which items are guessed and
what is guessed are independent before and after. Then guessing alone loses, and gains, this share
of the items:

    E = sum over K of n_K / N (1 - b_K)(1 - a_K) / (K - 1)

with b_K and a_K the accuracies on the n_K items with K choices. The adjusted numbers subtract E.
They are never cut off at 0, which would bias them upwards.

A model that repeats its guesses flips fewer items than E, so its adjusted numbers may be below 0. A
model that guesses the same items both times, but guesses again, flips more: up to the sum over K of
n_K / N min(1 - b_K, 1 - a_K) / K. Forgetting beyond that is real, whatever the guesses were.

The adjusted numbers are not means over items. Their intervals are those of the mean of the items'
influences, which recompute E, to first order, for each group that is left out. The loss of accuracy
is a difference of two accuracies, with the interval that it has everywhere (`paired_difference`).
`tests/metrics/test_forgetting.py` simulates how often they contain the true value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import ArrayLike

from probelight.metrics.comparisons import Runs, counted_difference, paired_difference
from probelight.metrics.intervals import (
    ADDED,
    DIFFERENCES,
    LEAST_GROUPS,
    LEVEL,
    SHARES,
    Floats,
    Groups,
    Interval,
    Moments,
    Term,
    Z,
    accuracy_interval,
    half_width,
    num_effective,
    num_groups,
    sum_interval,
    sum_p_value,
    wilson,
)
from probelight.metrics.power import POWER_Z
from probelight.metrics.verdicts import ChangeEvidence


@dataclass(frozen=True)
class Changes:
    """What changed between two measurements of the same items.

    Attributes:
        lost: Number of items that were right before and are wrong after. Ties count in part; with
            several seeds it is the mean.
        gained: Number of items that were wrong before and are right after, counted likewise.
        forgetting: Share of items that were lost.
        transfer: Share of items that were gained (backward transfer).
        guessing: The value to expect for each of these two shares if only guesses changed (E).
        adjusted_forgetting: `forgetting` minus `guessing`.
        adjusted_transfer: `transfer` minus `guessing`.
        least_forgetting: `forgetting` minus the most that guessing the same items both times could
            lose.
        net_loss: Accuracy before minus accuracy after. Even if nothing is forgotten it can be above
            0 by chance, whatever the guesses were.
        above_chance: Accuracy before minus that of guessing evenly among each item's real choices.
            A model that was not above chance had nothing to forget.
        loss_bound: Upper end of the one-sided 95% interval of the net loss.
        p_value: p-value of the net loss, below 0.05 exactly if its interval excludes 0.
        mcnemar_p: p-value of McNemar's exact test of lost against gained, over groups if there are
            any.
        smallest: Adjusted forgetting that would have been found with a probability of 80%; inf if
            there is none.
        smallest_loss: Net loss that would have been found so, likewise.
        num_items: Number of items.
        num_groups: Number of groups of items, which intervals do not divide.
    """

    lost: float
    gained: float
    forgetting: Interval
    transfer: Interval
    guessing: float
    adjusted_forgetting: Interval
    adjusted_transfer: Interval
    least_forgetting: Interval
    net_loss: Interval
    loss_bound: float
    above_chance: Interval
    p_value: float
    mcnemar_p: float
    smallest: float
    smallest_loss: float
    num_items: int
    num_groups: int

    @property
    def has_intervals(self) -> bool:
        """Whether there are enough groups for intervals (`LEAST_GROUPS`)."""
        return self.num_groups >= LEAST_GROUPS

    @property
    def evidence(self) -> ChangeEvidence:
        """What a verdict on the changes rests on."""
        return ChangeEvidence(
            self.net_loss,
            self.loss_bound,
            self.p_value,
            self.above_chance.low,
            self.least_forgetting.low,
            self.num_items,
            self.num_groups,
        )


def changes(
    runs_before: Runs, runs_after: Runs, num_choices: Sequence[int], groups: Groups | None = None
) -> Changes:
    """Return what was lost and gained between two measurements, over all seeds.

    Args:
        runs_before: By seed, (N,) the score of each item before. A single run is compared with all
            runs after; if there are several, each is compared with the run after of the same seed.
        runs_after: By seed, (N,) the score of each item after.
        num_choices: (N,) number of real choices of each item, at least 2.
        groups: (N,) the group of each item.

    Raises:
        ValueError: If the items or seeds differ before and after, or an item has fewer than two
            choices.
    """
    if len(runs_before) > 1 and runs_before.keys() != runs_after.keys():
        raise ValueError(f"seeds {sorted(runs_before)} before, but {sorted(runs_after)} after")
    first = next(iter(runs_before.values()))
    pairs = {seed: (runs_before.get(seed, first), new) for seed, new in runs_after.items()}
    values = {seed: item_changes(old, new, num_choices) for seed, (old, new) in pairs.items()}

    def interval(name: str, bounds: tuple[float, float]) -> Interval:
        runs = {seed: by_name[name] for seed, by_name in values.items()}
        if len(runs) == 1 and bounds == SHARES:
            return accuracy_interval(next(iter(runs.values())), groups)
        return sum_interval([Term(1.0, runs)], groups, bounds)

    means = {name: float(np.mean([by_name[name] for by_name in values.values()])) for name in MEANS}
    adjusted = {seed: by_name["adjusted_forgetting"] for seed, by_name in values.items()}
    old, new = (np.mean(runs, axis=0) for runs in zip(*pairs.values(), strict=True))
    paired = paired_difference(old, new, groups)
    net_loss, p_value = Interval(means["net_loss"], -paired.high, -paired.low), paired.p_value
    losses = {seed: by_name["net_loss"] for seed, by_name in values.items()}
    if len(pairs) > 1:
        net_loss = interval("net_loss", DIFFERENCES)
        p_value = sum_p_value([Term(1.0, losses)], groups)
    return Changes(
        lost=fmean(float(by_name["forgetting"].sum()) for by_name in values.values()),
        gained=fmean(float(by_name["transfer"].sum()) for by_name in values.values()),
        forgetting=interval("forgetting", SHARES),
        transfer=interval("transfer", SHARES),
        guessing=means["forgetting"] - means["adjusted_forgetting"],
        adjusted_forgetting=interval("adjusted_forgetting", DIFFERENCES),
        adjusted_transfer=interval("adjusted_transfer", DIFFERENCES),
        least_forgetting=interval("least_forgetting", DIFFERENCES),
        net_loss=net_loss,
        # An end of a 90% interval is that of a one-sided one of 95%.
        loss_bound=sum_interval([Term(1.0, losses)], groups, DIFFERENCES, 2 * LEVEL).high,
        above_chance=interval("above_chance", DIFFERENCES),
        p_value=p_value,
        mcnemar_p=paired.mcnemar_p,
        smallest=_smallest_effect(adjusted, means["forgetting"] > 0, groups, float(old.mean())),
        smallest_loss=_smallest_effect(losses, bool(np.any(old != new)), groups, float(old.mean())),
        num_items=len(first),
        num_groups=len(first) if groups is None else num_groups(groups),
    )


MEANS = (
    "forgetting",
    "transfer",
    "adjusted_forgetting",
    "adjusted_transfer",
    "least_forgetting",
    "net_loss",
    "above_chance",
)


def item_changes(
    scores_before: ArrayLike,
    scores_after: ArrayLike,
    num_choices: Sequence[int],
    counts: Floats | None = None,
) -> dict[str, Floats]:
    """Return (N,) values for each name in `MEANS`; their mean is the number of that name.

    Args:
        scores_before: (N,) score of each item before.
        scores_after: (N,) score of each item after.
        num_choices: (N,) number of real choices of each item, at least 2.
        counts: (N,) how often there is each item, if not once.

    Raises:
        ValueError: If the lengths differ, there are no items, or an item has fewer than two
            choices.
    """
    old, new = (np.asarray(scores, dtype=np.float64) for scores in (scores_before, scores_after))
    choices = np.asarray(num_choices)
    if not old.shape == new.shape == choices.shape or old.size == 0:
        raise ValueError(f"not the same items: {old.size}, {new.size} and {choices.size}")
    if (choices < 2).any():
        raise ValueError("an item has fewer than two choices, so it cannot be guessed")
    guessing, most = np.empty_like(old), np.empty_like(old)
    for number in np.unique(choices):
        has_number = choices == number
        wrong_before, wrong_after = 1 - old[has_number], 1 - new[has_number]
        weights = None if counts is None else counts[has_number]
        means = [np.average(wrong, weights=weights) for wrong in (wrong_before, wrong_after)]
        influence = wrong_before * means[1] + wrong_after * means[0] - means[0] * means[1]
        guessing[has_number] = influence / (number - 1)
        most[has_number] = (wrong_before if means[0] < means[1] else wrong_after) / number
    lost, gained = old * (1 - new), (1 - old) * new
    adjusted = (lost - guessing, gained - guessing, lost - most)
    values = (lost, gained, *adjusted, old - new, old - 1 / choices)
    return dict(zip(MEANS, values, strict=True))


def changes_of_counts(both: int, lost: int, gained: int, neither: int, num_choices: int) -> Changes:
    """Return what `changes` does, of items for which only counts are known.

    Args:
        both: Number of items that are right before and after.
        lost: Number of items that are right only before.
        gained: Number of items that are right only after.
        neither: Number of items that are never right.
        num_choices: Number of real choices of each item, at least 2.
    """
    counts = np.array([both, lost, gained, neither], dtype=np.float64)
    num_items = both + lost + gained + neither
    values = item_changes([1, 1, 0, 0], [1, 0, 1, 0], [num_choices] * 4, counts)
    moments = {}
    for name, by_kind in values.items():
        mean = float(np.average(by_kind, weights=counts))
        variance = float(np.average((by_kind - mean) ** 2, weights=counts))
        moments[name] = Moments(mean, variance, num_items)
    paired = counted_difference(both, lost, gained, neither)
    net_loss, right = moments["net_loss"], (both + lost) / num_items

    def smallest(values: Moments, has_lost: bool) -> float:
        half = values.half_width()
        return _smallest_share(values.variance, half, num_items, num_items, has_lost, right)

    return Changes(
        lost=float(lost),
        gained=float(gained),
        forgetting=Interval(lost / num_items, *wilson(lost, num_items)),
        transfer=Interval(gained / num_items, *wilson(gained, num_items)),
        guessing=lost / num_items - moments["adjusted_forgetting"].mean,
        adjusted_forgetting=moments["adjusted_forgetting"].interval(DIFFERENCES),
        adjusted_transfer=moments["adjusted_transfer"].interval(DIFFERENCES),
        least_forgetting=moments["least_forgetting"].interval(DIFFERENCES),
        net_loss=Interval(net_loss.mean, -paired.high, -paired.low),
        loss_bound=net_loss.interval(DIFFERENCES, 2 * LEVEL).high,
        above_chance=moments["above_chance"].interval(DIFFERENCES),
        p_value=paired.p_value,
        mcnemar_p=paired.mcnemar_p,
        smallest=smallest(moments["adjusted_forgetting"], lost > 0),
        smallest_loss=smallest(net_loss, lost + gained > 0),
        num_items=num_items,
        num_groups=num_items,
    )


def _smallest_effect(changed: Runs, lost: bool, groups: Groups | None, right: float) -> float:
    """Return the smallest effect of items that were answered once or, by seed, several times."""
    values = list(changed.values())
    variance = float(np.mean([value.var() for value in values]))
    half = half_width([Term(1.0, changed)], groups)
    effective = len(values[0]) if groups is None else num_effective(groups)
    return _smallest_share(variance, half, len(values[0]), effective, lost, right)


def _smallest_share(
    variance: float, half: float, num_items: int, effective: float, lost: bool, right: float
) -> float:
    """Return the share that, if lost in truth, has an interval above 0 with probability 80%.

    It is infinite if it is more than all that was right before.

    A true loss of f adds f (1 - f) to the variance v of an item's value. It is found so often where
    f is (z + z') times the root of (v + f (1 - f)) / n and of what intervals add to the variance.
    Half an interval of h is that of n = z^2 v / h^2 independent items; where no item was lost,
    nothing is known of how groups differ, and n is their effective number (Kish).
    """
    if math.isinf(half):
        return math.inf
    number = effective
    if lost and variance > 1e-12 and half > 1e-9:
        number = variance * (Z / half) ** 2
    c = (Z + POWER_Z) ** 2
    variance_term = c * (variance / number + ADDED / (num_items * effective))
    share = c / number
    smallest = (share + math.sqrt(share**2 + 4 * (1 + share) * variance_term)) / (2 * (1 + share))
    return smallest if smallest < right else math.inf
