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
    best_by_phrasing = best_of_each(scores)
    right = [best == (answer,) for best in best_by_phrasing]
    if any(right):
        return HIGHLY if all(right) else MAYBE
    for row, best in zip(scores, best_by_phrasing, strict=True):
        if not best or not math.isfinite(max(row)):
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
    classes = [knowledge_class(scores, answer) for answer in range(num_choices)]
    return {name: classes.count(name) / num_choices for name in CLASSES}


def consistency(scores: Sequence[Sequence[float]]) -> float:
    """Return the share of pairs of phrasings that get the same answer.

    Ties count with the probability that random picks among the best choices agree.

    Args:
        scores: (P, K) scores of the choices in each of P phrasings, at least two.
    """
    best_by_phrasing = [set(best) for best in best_of_each(scores)]
    pairs = combinations(best_by_phrasing, 2)
    return fmean(len(a & b) / (len(a) * len(b)) if a and b else 0.0 for a, b in pairs)
