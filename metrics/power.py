"""The smallest difference that a comparison with so many items can be expected to find."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

_STEPS = 60  # halvings: the answer is exact to the last digits of a float


def two_proportions(
    num_items: float, share: float = 0.5, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Difference between the accuracies of two models on different items (Fleiss 1981).

    Args:
        num_items: Items of each of the two.
        share: The lower accuracy; 0.5 is the worst case.
        alpha: Level of the two-sided test.
        power: Probability of finding a difference that is there.

    Returns:
        The smallest difference; infinite where no difference would be found.

    Raises:
        ValueError: If a share is not between 0 and 1.
    """
    _check(num_items, share, alpha, power)
    level, found = _quantiles(alpha, power)

    def needed(difference: float) -> float:
        other = share + difference
        mean = (share + other) / 2
        spread = level * math.sqrt(2 * mean * (1 - mean))
        spread += found * math.sqrt(share * (1 - share) + other * (1 - other))
        return (spread / difference) ** 2

    return _smallest(needed, num_items, 1 - share)


def paired(
    num_items: float, discordant: float = 0.3, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Difference between two models on the same items, by McNemar's test (Connor 1987).

    Args:
        num_items: Items.
        discordant: Share of the items that one model has right and the other wrong; at least the
            difference itself.
        alpha: Level of the two-sided test.
        power: Probability of finding a difference that is there.

    Returns:
        The smallest difference; infinite where no difference would be found.

    Raises:
        ValueError: If a share is not between 0 and 1.
    """
    _check(num_items, discordant, alpha, power)
    level, found = _quantiles(alpha, power)

    def needed(difference: float) -> float:
        changed = max(discordant, difference)
        spread = level * math.sqrt(changed) + found * math.sqrt(changed - difference**2)
        return (spread / difference) ** 2

    return _smallest(needed, num_items, 1.0)


def effective_items(num_items: int, num_seeds: int, correlation: float) -> float:
    """Items that count for a mean over seeds, all of which answer the same items.

    Args:
        num_items: Items.
        num_seeds: Seeds.
        correlation: Of an item's outcome between two seeds: with 1 further seeds bring nothing,
            with 0 each is worth as many items again.

    Raises:
        ValueError: If the correlation is not in [0, 1] or there is no seed.
    """
    if num_seeds < 1 or not 0 <= correlation <= 1:
        raise ValueError(f"{num_seeds} seeds with correlation {correlation}")
    return num_items * num_seeds / (1 + (num_seeds - 1) * correlation)


def _quantiles(alpha: float, power: float) -> tuple[float, float]:
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / 2), normal.inv_cdf(power)


def _check(num_items: float, share: float, alpha: float, power: float) -> None:
    if num_items < 0 or not all(0 < value < 1 for value in (share, alpha, power)):
        raise ValueError(
            f"num_items={num_items} must not be negative, and share={share}, alpha={alpha} and "
            f"power={power} must be between 0 and 1"
        )


def _smallest(needed: Callable[[float], float], num_items: float, largest: float) -> float:
    """The difference for which `needed`, which falls with it, is `num_items`."""
    if needed(largest) > num_items:
        return math.inf
    low, high = 0.0, largest
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) > num_items else (low, middle)
    return high
