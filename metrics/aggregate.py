"""The score an inoculated model is chosen by, and whether its cost can be read (SPEC E2, E7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

Row = TypeVar("Row", bound=Mapping[str, Any])

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


def select_best(rows: Sequence[Row]) -> Row:
    """M*_k: the checkpoint with the best aggregate over settings and epochs (SPEC E7).

    Ties go to the lower cost, then to the smaller learning rate, then to the earlier epoch.

    Args:
        rows: One mapping a candidate, with numbers under `probe_accuracy`, `original_accuracy`,
            `cost`, `learning_rate` and `epoch`; other keys are let be.

    Returns:
        The chosen row itself.

    Raises:
        ValueError: If there are no rows, or one has a score that is not a number.
    """
    if not rows:
        raise ValueError("there are no checkpoints to choose from")
    return min(rows, key=_rank)


def interpretable(low: float, chance: float) -> bool:
    """Whether a model was above chance before inoculation, so that it had something to lose.

    Args:
        low: Lower end of the 95% interval of original-task accuracy before inoculation.
        chance: 1 / number of real choices, averaged over the items.
    """
    return low > chance


def _rank(row: Mapping[str, Any]) -> tuple[float, float, float, float]:
    scores = [float(row[key]) for key in ("probe_accuracy", "original_accuracy", "cost")]
    if not all(map(math.isfinite, scores)):
        raise ValueError(f"a checkpoint has a score that is not a number: {dict(row)}")
    probe, original, cost = scores
    return (
        -round(aggregate(probe, original), _DIGITS),
        round(cost, _DIGITS),
        float(row["learning_rate"]),
        float(row["epoch"]),
    )
