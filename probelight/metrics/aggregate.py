"""Choosing an inoculated model: the mean of both accuracies, and their Pareto front."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")

_DIGITS = 9  # equal fractions may differ in the last bits once they are summed


def aggregate(probe: float, original: float) -> float:
    """Return the mean of both accuracies (Richardson & Sabharwal 2020, section 4.1).

    Args:
        probe: Accuracy on the probe.
        original: Accuracy on the original task.
    """
    return (probe + original) / 2


def chance_corrected(score: float, chance: float) -> float:
    """Rescale an accuracy so that chance is 0 and a perfect score is 1.

    An accuracy below chance becomes negative.

    Args:
        score: The accuracy.
        chance: Accuracy of guessing.

    Raises:
        ValueError: If chance is not in [0, 1).
    """
    if not 0 <= chance < 1:
        raise ValueError(f"chance={chance} is not in [0, 1)")
    return (score - chance) / (1 - chance)


class EpochAccuracies(NamedTuple):
    """A candidate for M*_k: the accuracies of one setting after one epoch.

    All candidates start from the same model, so a higher accuracy on the original task means a
    lower inoculation cost.

    Attributes:
        probe: Accuracy on the selection items of the probe.
        original: Accuracy on the selection items of the original task.
        learning_rate: Learning rate; 0 if settings are not compared.
        epoch: Epoch, from 1; 0 is the model before inoculation, which cannot be chosen.
    """

    probe: float
    original: float
    learning_rate: float
    epoch: float


def best_checkpoint(items: Iterable[Item], candidate_of: Callable[[Item], EpochAccuracies]) -> Item:
    """Return M*_k, the candidate with the best aggregate over settings and epochs.

    Ties go to the lower cost, then the smaller learning rate, the earlier epoch and the first item.

    Args:
        items: The candidates, in any form.
        candidate_of: Returns the accuracies, learning rate and epoch of a candidate.

    Raises:
        ValueError: If there are no candidates, or a score is not a number.
    """
    ranked = []
    for item in items:
        candidate = candidate_of(item)
        if candidate.epoch <= 0:
            continue
        if not (math.isfinite(candidate.probe) and math.isfinite(candidate.original)):
            raise ValueError(f"a checkpoint has a score that is not a number: {candidate}")
        score = round(aggregate(candidate.probe, candidate.original), _DIGITS)
        cheaper = round(candidate.original, _DIGITS)
        ranked.append(((-score, -cheaper, candidate.learning_rate, candidate.epoch), item))
    if not ranked:
        raise ValueError("there are no checkpoints to choose from")
    return min(ranked, key=lambda pair: pair[0])[1]


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Return the points that no other point dominates; higher is better in both scores.

    A point dominates another one if it is at least as good in both scores and better in one. Of
    points that tie in both scores, either all or none are on the front.

    Args:
        points: Two scores of each checkpoint, such as original-task and probe accuracy.

    Returns:
        Indices of the points on the front, by rising first score; ties are in the given order.

    Raises:
        ValueError: If a score is not a number.
    """
    if any(not math.isfinite(score) for point in points for score in point):
        raise ValueError(f"a score is not a number: {list(points)}")
    rounded = [(round(first, _DIGITS), round(second, _DIGITS)) for first, second in points]

    def is_dominated(point: tuple[float, float]) -> bool:
        return any(
            rival != point and rival[0] >= point[0] and rival[1] >= point[1] for rival in rounded
        )

    front = [index for index, point in enumerate(rounded) if not is_dominated(point)]
    return sorted(front, key=lambda index: rounded[index][0])
