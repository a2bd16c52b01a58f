"""A learning curve summarised in a few numbers, and what its heads tell of the answers, in bits.

A curve is a mapping from N, the number of training examples, to the accuracy averaged over seeds
(Talmor et al. 2020, sections 3.2 and 3.3).

The pointwise V-information of an item (Ethayarajh et al. 2022) is log2 p(y | x) - log2 p(y | null):
how many bits more probable the right answer is for a head trained on the items than for a head
trained on empty stems. V-information is its mean over items that no head was trained on. With the
no-language stem instead of the empty one it is conditional V-information.

The online code length (Voita & Titov 2020) is the number of bits needed to send the answers of the
train items in portions, each encoded with the head that was trained on all portions before it. The
first portion is encoded as even guesses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from probelight.metrics.scoring_rules import log_normalised

# From footnote 3 of the paper: a point with few examples says more about what was known before.
WEIGHTS: Mapping[int, float] = MappingProxyType(
    {62: 0.23, 125: 0.20, 250: 0.17, 500: 0.14, 1000: 0.11, 2000: 0.08, 4000: 0.07}
)


def weights_over(sizes: Iterable[int]) -> dict[int, float]:
    """Return the weights of the given points by N, in rising order, renormalised to sum to 1.

    Args:
        sizes: Values of N; those that have no weight are left out.
    """
    known_sizes = set(sizes)
    present = {size: weight for size, weight in WEIGHTS.items() if size in known_sizes}
    total = sum(present.values())
    return {size: weight / total for size, weight in present.items()}


def is_complete(sizes: Iterable[int]) -> bool:
    """Return whether all points of the paper are given, so that sums compare with the paper's."""
    return set(WEIGHTS) <= set(sizes)


def weighted_sum(points: Mapping[int, float]) -> float:
    """Return WS: the mean of the accuracies, with weights that fall with N.

    Args:
        points: Accuracy by N.

    Raises:
        ValueError: If no point has a weight.
    """
    weights = weights_over(points)
    if not weights:
        weighted_sizes = ", ".join(map(str, WEIGHTS))
        raise ValueError(
            f"no point of {sorted(points)} has a weight; the ones with weights are {weighted_sizes}"
        )
    return sum(weight * points[size] for size, weight in weights.items())


def best_size(points: Mapping[int, float]) -> int:
    """Return the N of MAX: the best point of the curve with N > 0.

    Args:
        points: Accuracy by N.

    Raises:
        ValueError: If there is no point with N > 0.
    """
    trained = [size for size in points if size > 0]
    if not trained:
        raise ValueError("a curve without a point above N = 0 has no maximum")
    return max(trained, key=points.__getitem__)


def lang_sense(standard: Mapping[int, float], control: Mapping[int, float]) -> float:
    """Return LangSense: the weighted sum of how far the standard curve is above the control.

    Differences below 0 count as 0, at each point, after averaging over seeds; noise therefore makes
    LangSense positive.

    Args:
        standard: Accuracy by N on the probe as it is.
        control: Accuracy by N under the control.

    Raises:
        ValueError: If no point that both curves have has a weight.
    """
    common_sizes = [size for size in standard if size in control]
    return weighted_sum({size: max(standard[size] - control[size], 0.0) for size in common_sizes})


def answer_bits(scores: Sequence[float], answer: int) -> float:
    """Return -log2 p of the right answer, with p from the softmax of the scores.

    It is NaN if a score is NaN, or if no score is above -inf.

    Args:
        scores: (K,) scores of the item's choices.
        answer: Index of the right choice.
    """
    if not scores or any(math.isnan(score) for score in scores) or max(scores) == -math.inf:
        return math.nan
    return -log_normalised(scores)[answer] / math.log(2)


def pvi(scores: Sequence[float], null: Sequence[float], answer: int) -> float:
    """Return the pointwise V-information of an item, in bits.

    Args:
        scores: (K,) scores of its choices.
        null: (K,) scores of its choices by the head that was trained without the stem.
        answer: Index of the right choice.
    """
    return answer_bits(null, answer) - answer_bits(scores, answer)
