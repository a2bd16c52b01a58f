"""Words of texts and of models: how a text is split, and what a model has a row for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from probelight.encoding.encoded_set import Ids
from probelight.probes.record import MASK

PADDING_ID = 0

_WORD = re.compile(r"\[MASK\]|[^\W\d_]+(?:'[^\W\d_]+)*|\d+(?:[.,]\d+)*|[^\w\s]|_")
_NUM_EXAMPLES = 5


class WordIndex(Protocol):
    """The words that a model has a row for."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the results should know about where the rows come from."""
        ...

    def ids(self, words: Sequence[str]) -> Ids:
        """(W,) rows of words, from 1 on; a word that has none gets one."""
        ...

    def unknown(self, words: Iterable[str]) -> set[str]:
        """Those of these words, all with a row, for which there was no vector."""
        ...


def words_of(text: str, *, lower: bool = True) -> list[str]:
    """The words of a text, in lower case unless they are wanted as they stand.

    A run of letters is a word, an apostrophe inside it included; a number is one with its inner
    commas and points; every other sign stands alone. `[MASK]` is one word, in capitals.
    """
    words: list[str] = _WORD.findall(text)
    return [word.lower() if lower and word != MASK else word for word in words]


def candidate_word(text: str) -> str:
    """The name under which a candidate has its row: lower case, single spaces."""
    return " ".join(text.lower().split())


def unknown_words(counts: Counter[str], words: WordIndex) -> tuple[str, ...]:
    """One sentence on the words without a vector: how many, how often, the most frequent ones.

    Args:
        counts: How often each word occurs; all of them have a row.
        words: The rows.
    """
    counts = Counter({word: count for word, count in counts.items() if word != MASK})
    missing = words.unknown(counts)
    if not missing:
        return words.notices
    ranked = sorted(missing, key=lambda word: (-counts[word], word))
    share = sum(counts[word] for word in missing) / counts.total()
    shown = ", ".join(ranked[:_NUM_EXAMPLES]) + (", ..." if len(ranked) > _NUM_EXAMPLES else "")
    return (
        *words.notices,
        f"{len(missing)} of {len(counts)} distinct words have no word vector "
        f"({share:.1%} of the words read): {shown}",
    )
