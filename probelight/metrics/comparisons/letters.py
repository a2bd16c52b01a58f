"""Which of several models cannot be told apart, as letters that they share (Piepho 2004)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count, islice

_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def compact_letters(number: int, apart: Iterable[tuple[int, int]]) -> list[str]:
    """Letters of each of some models: two share one exactly where they are not told apart.

    Insert and absorb: one letter for all is split at each pair that is told apart, and a letter
    whose models all share another one is dropped.

    Args:
        number: How many models there are, the best one first: it gets an "a".
        apart: Pairs of their places that are told apart.

    Returns:
        A text of letters for each.
    """
    sets = [frozenset(range(number))]
    for one, other in sorted(apart):
        split = [s for s in sets if not {one, other} <= s]
        split += [s - {gone} for s in sets if {one, other} <= s for gone in (one, other)]
        distinct = set(split)
        sets = [s for s in distinct if not any(s < larger for larger in distinct)]
    named = list(zip(_names(len(sets)), sorted(sets, key=sorted), strict=True))
    return ["".join(name for name, own in named if place in own) for place in range(number)]


def _names(number: int) -> list[str]:
    """A to z, then a1 to z1, a2, ..."""
    endless = (f"{letter}{turn or ''}" for turn in count() for letter in _ALPHABET)
    return list(islice(endless, number))
