"""How much of the answers a model's features give away, in bits.

Pointwise V-information of an item (Ethayarajh et al. 2022) is log2 p(y | x) - log2 p(y | null): by
how many bits the right answer is likelier to a head that was trained on the items than to one that
was trained on an empty stem. Its mean over items that no head was trained on is V-information; with
the no-language stem in place of the empty one it is conditional V-information. Online code length
(Voita & Titov 2020) is what it takes to send the answers of the train items, portion by portion,
each by the head that was trained on all before it; the first portion is sent as even guesses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from probelight.metrics.scoring_rules import log_normalised


def answer_bits(scores: Sequence[float], answer: int) -> float:
    """Return -log2 p of the right answer, by the softmax of the scores (K,); NaN without one."""
    if not scores or any(math.isnan(score) for score in scores) or max(scores) == -math.inf:
        return math.nan
    return -log_normalised(scores)[answer] / math.log(2)


def pvi(scores: Sequence[float], null: Sequence[float], answer: int) -> float:
    """Return the pointwise V-information of an item, in bits.

    Args:
        scores: (K,) scores of its choices.
        null: (K,) the same by the head that was trained without the stem.
        answer: Index of the right choice.
    """
    return answer_bits(null, answer) - answer_bits(scores, answer)
