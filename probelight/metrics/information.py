"""How much information about the answers a model's features have, in bits.

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
from collections.abc import Sequence

from probelight.metrics.scoring_rules import log_normalised


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
