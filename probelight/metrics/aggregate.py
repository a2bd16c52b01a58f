"""The score an inoculated model is chosen by, and whether its cost can be read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")

_DIGITS = 9  # equal fractions may differ in the last bits once they are summed


def aggregate(probe: float, original: float) -> float:
    """The mean of probe and original-task accuracy (Richardson & Sabharwal 2020, section 4.1)."""
    return (probe + original) / 2


def chance_corrected(score: float, chance: float) -> float:
    """Rescales an accuracy so that chance is 0 and perfection 1; below chance is negative.

    Raises:
        ValueError: If chance is not in [0, 1).
    """
    if not 0 <= chance < 1:
        raise ValueError(f"chance={chance} is not in [0, 1)")
    return (score - chance) / (1 - chance)


def chance_corrected_aggregate(
    probe: float, original: float, chance_probe: float, chance_original: float
) -> float:
    """The mean of both accuracies above chance: neither task weighs more for having fewer choices.

    Raises:
        ValueError: If a chance is not in [0, 1).
    """
    return aggregate(
        chance_corrected(probe, chance_probe), chance_corrected(original, chance_original)
    )


class Checkpoint(NamedTuple):
    """One candidate of M*_k: what a setting had learned after an epoch.

    Attributes:
        probe: Its accuracy on the selection items of the probe.
        original: Its accuracy on those of the original task. What was there before inoculation is
            the same for all candidates, so the higher one is the one that cost less.
        learning_rate: Of its setting; 0 where the settings are not compared.
        epoch: From 1; 0 is the model before inoculation, which is no candidate.
    """

    probe: float
    original: float
    learning_rate: float
    epoch: float


def best_checkpoint(items: Iterable[Item], checkpoint: Callable[[Item], Checkpoint]) -> Item:
    """M*_k: the item with the best aggregate over settings and epochs.

    Ties go to the lower cost, then to the smaller learning rate, then to the earlier epoch, then
    to the item that comes first.

    Args:
        items: The candidates, in any form.
        checkpoint: What counts of one.

    Raises:
        ValueError: If there are no candidates, or one has a score that is not a number.
    """
    found = [(_rank(seen), item) for item in items if (seen := checkpoint(item)).epoch > 0]
    if not found:
        raise ValueError("there are no checkpoints to choose from")
    return min(found, key=lambda pair: pair[0])[1]


def interpretable(low: float, chance: float) -> bool:
    """Whether a model was above chance before inoculation, so that it had something to lose.

    Args:
        low: Lower end of the 95% interval of original-task accuracy before inoculation.
        chance: 1 / number of real choices, averaged over the items.
    """
    return low > chance


def _rank(one: Checkpoint) -> tuple[float, float, float, float]:
    if not all(map(math.isfinite, (one.probe, one.original))):
        raise ValueError(f"a checkpoint has a score that is not a number: {one}")
    return (
        -round(aggregate(one.probe, one.original), _DIGITS),
        -round(one.original, _DIGITS),
        one.learning_rate,
        one.epoch,
    )
