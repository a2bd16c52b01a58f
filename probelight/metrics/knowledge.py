"""Whether a model knows an item, judged from several phrasings of it.

The classes follow SliCK (Gekhman et al. 2024), which samples answers from a generator; here an item
has choices:

- HighlyKnown: right in all phrasings.
- MaybeKnown: right in some phrasings.
- WeaklyKnown: right in none, but in some the right choice is more probable than an even guess.
- Unknown: the rest.

With two choices no item is WeaklyKnown, and with one phrasing no item is MaybeKnown. Consistency is
the share of pairs of phrasings that get the same answer (Elazar et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

from probelight.metrics.choices import best_of_each
from probelight.metrics.scoring_rules import log_normalised

CLASSES = ("HighlyKnown", "MaybeKnown", "WeaklyKnown", "Unknown")
HIGHLY, MAYBE, WEAKLY, UNKNOWN = CLASSES


def knowledge_class(scores: Sequence[Sequence[float]], answer: int) -> str:
    """Return the class of an item.

    In a phrasing with a tie for the best score the item is not right. A phrasing with a NaN counts
    as not known.

    Args:
        scores: (P, K) scores of the choices in each of P phrasings.
        answer: Index of the right choice.
    """
    best = best_of_each(scores)
    right = [of_one == (answer,) for of_one in best]
    if any(right):
        return HIGHLY if all(right) else MAYBE
    for row, of_one in zip(scores, best, strict=True):
        if not of_one or not math.isfinite(max(row)):
            continue
        if log_normalised(row)[answer] > -math.log(len(row)) + 1e-9:
            return WEAKLY
    return UNKNOWN


def guessed_shares(scores: Sequence[Sequence[float]]) -> dict[str, float]:
    """Return how probable each class is if any of the K choices may be the right one.

    These are the classes of a model that knows nothing, but answers as consistently and as
    confidently.

    Args:
        scores: (P, K) scores of the choices in each of P phrasings.
    """
    num_choices = len(scores[0])
    found = [knowledge_class(scores, place) for place in range(num_choices)]
    return {name: found.count(name) / num_choices for name in CLASSES}


def consistency(scores: Sequence[Sequence[float]]) -> float:
    """Return the share of pairs of phrasings that get the same answer.

    Ties count with the probability that random picks among the best choices agree.

    Args:
        scores: (P, K) scores of the choices in each of P phrasings, at least two.
    """
    best = [set(of_one) for of_one in best_of_each(scores)]
    pairs = combinations(best, 2)
    return fmean(len(a & b) / (len(a) * len(b)) if a and b else 0.0 for a, b in pairs)
