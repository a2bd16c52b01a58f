"""The smallest difference that a given number of items can be expected to find.

Tests are two-sided at a level of 5%, and find a difference that exists with a probability of 80%.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import NormalDist

_LEVEL_Z, POWER_Z = NormalDist().inv_cdf(1 - 0.05 / 2), NormalDist().inv_cdf(0.8)
_SHARE = 0.5  # the lower accuracy of two models
_STEPS = 60  # halvings: the answer is exact to the last digits of a float


def two_proportions(num_items: float) -> float:
    """Return the smallest difference found between two models on different items (Fleiss 1981).

    The lower accuracy is taken to be one half, the worst case. The result is infinite if no
    difference would be found.

    Args:
        num_items: Number of items of each of the two models.

    Raises:
        ValueError: If the number is negative.
    """

    def needed(difference: float) -> float:
        higher = _SHARE + difference
        mean = (_SHARE + higher) / 2
        spread = _LEVEL_Z * math.sqrt(2 * mean * (1 - mean))
        spread += POWER_Z * math.sqrt(_SHARE * (1 - _SHARE) + higher * (1 - higher))
        return (spread / difference) ** 2

    return _smallest(needed, num_items, 1 - _SHARE)


def paired(num_items: float, discordant: float = 0.3) -> float:
    """Return the smallest difference found between two models on the same items (Connor 1987).

    The test is McNemar's. The result is infinite if no difference would be found.

    Args:
        num_items: Number of items that both models answer.
        discordant: Share of the items that one model answers correctly and the other does not,
            between 0 and 1. It is taken to be at least the difference itself.

    Raises:
        ValueError: If a value is out of range.
    """
    return _smallest(partial(paired_items, discordant=discordant), num_items, 1.0)


def paired_items(difference: float, discordant: float = 0.3) -> float:
    """Return how many items it takes to find a difference between two models on the same items.

    Args:
        difference: Difference of the accuracies, above 0 and at most 1.
        discordant: As in `paired`.

    Raises:
        ValueError: If `discordant` is not between 0 and 1.
    """
    if not 0 < discordant < 1:
        raise ValueError(f"discordant={discordant} must be between 0 and 1")
    changed = max(discordant, difference)
    spread = _LEVEL_Z * math.sqrt(changed) + POWER_Z * math.sqrt(changed - difference**2)
    return (spread / difference) ** 2


def above_level(num_items: float, level: float) -> float:
    """Return the smallest accuracy that is found above a level, such as chance (Fleiss 1981).

    The result is infinite if no accuracy would be.

    Args:
        num_items: Number of independent items.
        level: Accuracy to compare with, above 0; nothing is above 1.
    """
    if level >= 1:
        return math.inf

    def needed(difference: float) -> float:
        accuracy = level + difference
        spread = _LEVEL_Z * math.sqrt(level * (1 - level))
        return ((spread + POWER_Z * math.sqrt(accuracy * (1 - accuracy))) / difference) ** 2

    return level + _smallest(needed, num_items, 1 - level)


def effective_items(num_items: float, num_seeds: int, correlation: float) -> float:
    """Return how many independent items a mean over seeds on the same items is worth.

    Args:
        num_items: Number of items.
        num_seeds: Number of seeds, at least one.
        correlation: Correlation of an item's outcome between two seeds. With 1, further seeds add
            nothing; with 0, each seed is worth as many items again.

    Raises:
        ValueError: If a value is out of range.
    """
    if num_seeds < 1 or not 0 <= correlation <= 1:
        raise ValueError(
            f"{num_seeds} seeds with correlation {correlation}; give at least 1 seed and a "
            "correlation from 0 to 1"
        )
    return num_items * num_seeds / (1 + (num_seeds - 1) * correlation)


def _smallest(needed: Callable[[float], float], num_items: float, largest: float) -> float:
    """Return the difference for which `needed`, which falls with it, is `num_items`."""
    if num_items < 0:
        raise ValueError(f"num_items={num_items} must not be negative")
    if needed(largest) > num_items:
        return math.inf
    low, high = 0.0, largest
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) > num_items else (low, middle)
    return high
