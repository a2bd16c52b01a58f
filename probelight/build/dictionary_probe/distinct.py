"""Which senses are told apart: by their definitions' words and the dictionary's own synonyms."""

from __future__ import annotations

from collections.abc import Iterable

from probelight.build.dictionary_probe.entries import Entry
from probelight.build.dictionary_probe.likeness import say_the_same, share_a_word, synonyms_in
from probelight.build.sources.gcide import Sense


class Distinct:
    """Tells whether the definition of one entry is wrong where that of another is right.

    Args:
        senses: The dictionary: what one of its definitions gives as a word of its own is a synonym.
    """

    def __init__(self, senses: Iterable[Sense]) -> None:
        self._synonyms: dict[str, set[str]] = {}
        for sense in senses:
            for word in synonyms_in(sense.definition):
                self._synonyms.setdefault(sense.word.lower(), set()).add(word)

    def __call__(self, one: Entry, other: Entry) -> bool:
        """Whether either definition is wrong where the other one is right."""
        ours, theirs = synonyms_in(one.definition), synonyms_in(other.definition)
        if say_the_same(one.definition, other.definition):
            return False
        if any(self._linked(a, b) for a in ours for b in theirs):
            return False
        if one.word == other.word:
            return not share_a_word(one.definition, other.definition)
        return not (self._is_named(one.word, theirs) or self._is_named(other.word, ours))

    def _is_named(self, word: str, synonyms: Iterable[str]) -> bool:
        return any(word == given or self._linked(word, given) for given in synonyms)

    def _linked(self, one: str, other: str) -> bool:
        return other in self._synonyms.get(one, ()) or one in self._synonyms.get(other, ())
