"""What an item, or a line of another text, is compared by: its words without case and marks.

A word is a run of letters and digits: lower case, in Unicode's compatible form (NFKC: a ligature is
its letters, full-width letters are plain ones), without soft hyphens and joiners. All else divides
words: "don't" is two, "1,000" too. Where a language puts no blanks between words, all that stands
between two marks is one, so its n-grams are longer than they look.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from probelight.probes.record import MASK, Record

_WORD = re.compile(r"[^\W_]+")
_JOINERS = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
# Of text in ASCII the same, several times faster: letters in lower case, blanks for marks.
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


def words_of(text: str) -> list[str]:
    """The words of a text in their order."""
    if text.isascii():
        return text.translate(_ASCII).split()
    plain = unicodedata.normalize("NFKC", _JOINERS.sub("", text))
    return _WORD.findall(plain.casefold())


@dataclass(frozen=True)
class ItemText:
    """An item as one text: its stem with an answer in the mask's place, or behind it.

    Attributes:
        words: The words of the whole.
        start: The answer's first word.
        end: The word behind its last.
    """

    words: tuple[str, ...]
    start: int
    end: int


def item_text(record: Record, choice: str) -> ItemText:
    """The text of an item with one of its choices."""
    before, _, after = record.stem.partition(MASK)
    own, answer = words_of(before), words_of(choice)
    end = len(own) + len(answer)
    return ItemText((*own, *answer, *words_of(after)), len(own), end)


def texts_of(record: Record, wrong_choices: bool = True) -> Iterator[tuple[str, ...]]:
    """The words of an item with its right answer and with each other choice, if these count."""
    choices = record.choices if wrong_choices else [record.gold]
    return (item_text(record, choice).words for choice in choices)
