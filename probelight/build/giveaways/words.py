"""Which words of the answers, and which whole answers, go with being right (Gururangan 2018).

An item is counted once for a part, however often and in however many of its choices it stands; an
item all of whose choices have the part says nothing of it. Of n such items let r be those whose
right answer has it, and c the sum of the shares of their choices that do: what r would be by
chance. Then

    PMI = log2 (r + s p) / (c + s p),    p = c / n, s = SMOOTHING

which is log2 P(right | part) / P(right) of the choices where an item has the part once, drawn
towards 0 by s further items that chance decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass

from probelight.build.hygiene.finding import plain_words
from probelight.probes.record import Record

SMOOTHING = 10.0  # items at chance that are added to those of each word
LEAST_ITEMS = 10  # fewer tell of the word what they tell of themselves
Parts = Callable[[str], Set[str]]


@dataclass(frozen=True)
class Association:
    """How a part of answers goes with being right.

    Attributes:
        part: The word, or the answer.
        num_items: n, the items that it tells choices of apart.
        num_right: r.
        expected: c.
    """

    part: str
    num_items: int
    num_right: int
    expected: float

    @property
    def pmi(self) -> float:
        """Smoothed, in bits; above 0 where right answers have it more often than wrong ones."""
        added = SMOOTHING * self.expected / self.num_items
        return math.log2((self.num_right + added) / (self.expected + added))


def words_of(answer: str) -> Set[str]:
    """The words of an answer, in lower case, each once."""
    return set(plain_words(answer).split())


def whole(answer: str) -> Set[str]:
    """The answer as it is, without case and marks unless it is nothing else."""
    return {plain_words(answer) or answer.strip()}


def associations(records: Sequence[Record], parts: Parts = words_of) -> dict[str, Association]:
    """The association of each part of the answers, by the part, in alphabetical order.

    Args:
        records: The items.
        parts: What an answer is made of: `words_of` or `whole`.
    """
    counts: dict[str, list[float]] = {}
    for record in records:
        for part, (right, share) in told_by(record, parts).items():
            own = counts.setdefault(part, [0, 0, 0.0])
            own[0] += 1
            own[1] += right
            own[2] += share
    return {
        part: Association(part, int(n), int(right), expected)
        for part, (n, right, expected) in sorted(counts.items())
    }


def told_by(record: Record, parts: Parts = words_of) -> dict[str, tuple[bool, float]]:
    """Each part that some choices have and others not: whether the gold does, and their share."""
    texts = [parts(choice) for choice in record.choices]
    held = [part for own in texts for part in own]
    num_choices = len(texts)
    return {
        part: (part in texts[record.answer], held.count(part) / num_choices)
        for part in dict.fromkeys(held)
        if held.count(part) < num_choices
    }


def most_telling(
    found: Iterable[Association], most: int, least_items: int = LEAST_ITEMS
) -> list[Association]:
    """Those of the highest and those of the lowest PMI, the highest first.

    Args:
        found: Of all parts.
        most: How many of either end.
        least_items: Parts of fewer items are passed over.
    """
    ordered = sorted(found, key=lambda one: (-one.pmi, one.part))
    seen = [one for one in ordered if one.num_items >= least_items]
    high = [one for one in seen if one.pmi > 0][:most]
    low = [one for one in seen if one.pmi < 0][-most:]
    return [*high, *low]
