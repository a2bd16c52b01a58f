"""A learning curve in a few numbers (Talmor et al. 2020, sections 3.2 and 3.3).

Points are mappings from N, the number of training examples, to an accuracy averaged over seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

# The paper's, footnote 3: a point with few examples says more about what was there before.
WEIGHTS: Mapping[int, float] = MappingProxyType(
    {62: 0.23, 125: 0.20, 250: 0.17, 500: 0.14, 1000: 0.11, 2000: 0.08, 4000: 0.07}
)


def weights_over(sizes: Iterable[int]) -> dict[int, float]:
    """Return the weights of the points there are by N, in its order, renormalised to sum to 1."""
    there = set(sizes)
    present = {size: weight for size, weight in WEIGHTS.items() if size in there}
    total = sum(present.values())
    return {size: weight / total for size, weight in present.items()}


def is_complete(sizes: Iterable[int]) -> bool:
    """Return whether all points of the paper are there: only then do sums compare with its sums."""
    return set(WEIGHTS) <= set(sizes)


def weighted_sum(points: Mapping[int, float]) -> float:
    """Return WS: accuracies by N, averaged with weights that fall with N."""
    weights = weights_over(points)
    if not weights:
        known = ", ".join(map(str, WEIGHTS))
        raise ValueError(f"no point of {sorted(points)} has a weight; those that have are {known}")
    return sum(weight * points[size] for size, weight in weights.items())


def best_size(points: Mapping[int, float]) -> int:
    """Return the N of MAX, the best point of the averaged curve with N > 0."""
    trained = [size for size in points if size > 0]
    if not trained:
        raise ValueError("a curve without a trained point has no maximum")
    return max(trained, key=points.__getitem__)


def lang_sense(standard: Mapping[int, float], control: Mapping[int, float]) -> float:
    """Return LangSense: the weighted sum of what the standard curve has above the control.

    Points are clipped at 0 one by one, after averaging over seeds, so noise makes it positive.
    """
    both = [size for size in standard if size in control]
    return weighted_sum({size: max(standard[size] - control[size], 0.0) for size in both})
