"""What a change of accuracy says: was something forgotten, gained or kept, or can nobody tell?

The changes that are judged together are a family, and a verdict that something changed is a claim.
Its p-values are therefore adjusted by Holm's method (1979): with a probability of 95% no claim of
the family is false. "Kept" is not adjusted. It says that the loss is below a margin, by a one-sided
test at 5% for each probe (Schuirmann 1987). `tests/metrics/test_verdicts.py` simulates both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from probelight.metrics.intervals import LEAST_GROUPS, LEVEL, Interval
from probelight.metrics.power import POWER_Z

MARGIN = 0.05  # the loss of accuracy that does not matter, where none is given
_ONE_SIDED_Z = NormalDist().inv_cdf(1 - LEVEL)
Word = Literal["forgot", "gained", "kept", "not known before", "cannot tell"]


@dataclass(frozen=True)
class ChangeEvidence:
    """What decides the verdict on one set of items.

    Attributes:
        net_loss: Accuracy before minus accuracy after, with its 95% interval.
        loss_bound: Upper end of the one-sided 95% interval of the net loss.
        p_value: p-value of the net loss, that of its interval.
        least_above_chance: Lower end of the interval of the accuracy before minus chance.
        least_forgetting: Lower end of the interval of what was lost beyond guessing, by item.
        num_items: Number of items.
        num_groups: Number of groups of items, which intervals do not divide.
    """

    net_loss: Interval
    loss_bound: float
    p_value: float
    least_above_chance: float
    least_forgetting: float
    num_items: int
    num_groups: int


@dataclass(frozen=True)
class ChangeVerdict:
    """The verdict on one set of items, and what it rests on.

    Attributes:
        word: The verdict.
        adjusted_p: p-value of the net loss, adjusted for the family.
        margin: The loss of accuracy that does not matter.
        below_margin: Whether a loss that is clear is also clearly below the margin.
        hidden_loss: Whether more items were lost than guessing explains, although the accuracy has
            not clearly changed.
        items_needed: About how many items would show that the loss is within the margin, if nothing
            is lost; None where half of the margin seems to be lost, or so many items are there.
    """

    word: Word
    adjusted_p: float
    margin: float = MARGIN
    below_margin: bool = False
    hidden_loss: bool = False
    items_needed: int | None = None


def verdicts(family: Sequence[ChangeEvidence], margin: float = MARGIN) -> list[ChangeVerdict]:
    """Return the verdict on each change of a family.

    Args:
        family: All changes that are judged together.
        margin: The loss of accuracy that does not matter, above 0.

    Raises:
        ValueError: If the margin is not above 0.
    """
    if not margin > 0:
        raise ValueError(f"margin={margin} must be above 0")
    has_interval = [change.num_groups >= LEAST_GROUPS for change in family]
    p_values = [
        change.p_value if is_judged else 1.0
        for change, is_judged in zip(family, has_interval, strict=True)
    ]
    adjusted = holm(p_values)
    return [
        _verdict(change, adjusted_p, margin)
        if is_judged
        else ChangeVerdict("cannot tell", 1.0, margin)
        for change, adjusted_p, is_judged in zip(family, adjusted, has_interval, strict=True)
    ]


def _verdict(change: ChangeEvidence, adjusted_p: float, margin: float) -> ChangeVerdict:
    is_clear = adjusted_p < LEVEL
    if is_clear and change.net_loss.value < 0:
        return ChangeVerdict("gained", adjusted_p, margin)
    if not change.least_above_chance > 0:
        return ChangeVerdict("not known before", adjusted_p, margin)
    if is_clear:
        return ChangeVerdict(
            "forgot", adjusted_p, margin, below_margin=change.net_loss.high < margin
        )
    has_hidden_loss = change.least_forgetting > 0
    if change.loss_bound < margin:
        return ChangeVerdict("kept", adjusted_p, margin, hidden_loss=has_hidden_loss)
    reach = change.loss_bound - change.net_loss.value
    scale = (_ONE_SIDED_Z + POWER_Z) / _ONE_SIDED_Z * reach / margin
    needed = math.ceil(change.num_items * scale**2)
    is_matter_of_items = needed > change.num_items and change.net_loss.value < margin / 2
    return ChangeVerdict(
        "cannot tell",
        adjusted_p,
        margin,
        hidden_loss=has_hidden_loss,
        items_needed=needed if is_matter_of_items else None,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted so that one below 5% is false in at most 5% of families (1979)."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def mean_change(changes: Sequence[Interval]) -> Interval:
    """Return the mean of independent changes, each of other items, with its interval.

    The squared distances to the ends of the intervals are added (Zou & Donner 2008).
    """
    value = sum(change.value for change in changes) / len(changes)
    down = math.hypot(*(change.value - change.low for change in changes)) / len(changes)
    up = math.hypot(*(change.high - change.value for change in changes)) / len(changes)
    return Interval(value, value - down, value + up)
