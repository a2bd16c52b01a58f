"""WordNet as plain lists and sets of numbers: read once, walked a million times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from probes.build.frame.progress import tracked
from probes.build.glosses import contexts_of, is_fit_gloss
from probes.sources.verbalise import plain
from probes.sources.wordnet import open_wordnet, words_of

_BROKEN = re.compile(r"[,;]\s*$|[,;]\s*or$|[,;] *[,;]|\( ?\)|phrase \)")  # cut off by the database


@dataclass(frozen=True)
class Concept:
    """A synset.

    Attributes:
        number: Its place in the graph.
        name: Such as "dog.n.01".
        pos: Part of speech: n, v, r, or a, satellite adjectives among them.
        gloss: Its definition.
        words: Its lemmas.
        contexts: Of each fit example that has one of its words: the word as it stands there, and
            the example.
        is_fit: Whether its gloss can be shown.
    """

    number: int
    name: str
    pos: str
    gloss: str
    words: tuple[str, ...]
    contexts: tuple[tuple[str, str], ...]
    is_fit: bool


@dataclass(frozen=True)
class Graph:
    """The concepts and what is a kind of what; instances count as kinds.

    Attributes:
        concepts: All of them, in the order of the database.
        up: Numbers of the direct hypernyms, by number.
        down: Numbers of the direct hyponyms, by number.
        senses: Numbers of the concepts that have a word, by the word in lower case.
    """

    concepts: list[Concept]
    up: list[tuple[int, ...]]
    down: list[tuple[int, ...]]
    senses: dict[str, list[int]]
    _above: dict[int, frozenset[int]] = field(default_factory=dict)
    _homonyms: dict[int, frozenset[int]] = field(default_factory=dict)
    _broadly: dict[int, frozenset[int]] = field(default_factory=dict)

    def above(self, number: int) -> frozenset[int]:
        """A concept and all that it is a kind of, to the top."""
        if number not in self._above:
            found = {number}
            for level in self._levels(number, self.up, len(self.up)):
                found |= set(level)
            self._above[number] = frozenset(found)
        return self._above[number]

    def homonyms(self, number: int) -> frozenset[int]:
        """All senses of all of a concept's words, its own among them."""
        if number not in self._homonyms:
            words = self.concepts[number].words
            senses = (sense for word in words for sense in self.senses[word.lower()])
            self._homonyms[number] = frozenset(senses)
        return self._homonyms[number]

    def broadly(self, number: int) -> frozenset[int]:
        """All that any sense of any of a concept's words is, or is a kind of."""
        if number not in self._broadly:
            senses = self.homonyms(number)
            self._broadly[number] = frozenset().union(*(self.above(one) for one in senses))
        return self._broadly[number]

    def hops_up(self, number: int, most: int) -> list[list[int]]:
        """HOPS(c, up): hypernyms by their distance, nearest first, each once."""
        return list(self._levels(number, self.up, most))

    def hops_down(self, number: int, most: int) -> list[list[int]]:
        """HOPS(c, down): hyponyms by their distance, nearest first, each once."""
        return list(self._levels(number, self.down, most))

    def sisters(self, number: int, depth: int) -> list[list[int]]:
        """SISTER_l(c): other children of c's parents, and what is below those, by level."""
        first = sorted({s for up in self.up[number] for s in self.down[up]} - {number})
        return [first, *self._levels_from(first, self.down, depth - 1, {number})] if first else []

    def _levels(
        self, number: int, steps: Sequence[tuple[int, ...]], most: int
    ) -> Iterator[list[int]]:
        return self._levels_from([number], steps, most, set())

    def _levels_from(
        self, level: list[int], steps: Sequence[tuple[int, ...]], most: int, without: set[int]
    ) -> Iterator[list[int]]:
        seen = without | set(level)
        for _ in range(most):
            reached = dict.fromkeys(to for one in level for to in steps[one])
            level = [one for one in reached if one not in seen]
            if not level:
                return
            seen.update(level)
            yield level


@cache
def read_graph(wordnet_dir: Path) -> Graph:
    """Reads a WordNet database with NLTK's reader, once in a process.

    Raises:
        FileNotFoundError: As `open_wordnet`.
    """
    wordnet = open_wordnet(wordnet_dir)
    # Parts of speech apart: the reader's own order over all of them hangs on a set.
    synsets = [synset for part in "nvar" for synset in wordnet.all_synsets(part)]
    numbers = {synset.name(): number for number, synset in enumerate(synsets)}
    graph = Graph([], [], [], {})
    for number, synset in enumerate(tracked(synsets, "reading WordNet")):
        gloss, words = synset.definition(), tuple(words_of(synset))
        pos = "a" if synset.pos() == "s" else str(synset.pos())
        contexts = tuple(contexts_of(synset, wordnet))
        fit = is_fit_gloss(gloss) and not _BROKEN.search(gloss)
        graph.concepts.append(
            Concept(number, _name(synset, wordnet), pos, plain(gloss), words, contexts, fit)
        )
        above = synset.hypernyms() + synset.instance_hypernyms()
        below = synset.hyponyms() + synset.instance_hyponyms()
        graph.up.append(tuple(numbers[one.name()] for one in above))
        graph.down.append(tuple(numbers[one.name()] for one in below))
        for word in {word.lower() for word in words}:
            graph.senses.setdefault(word, []).append(number)
    return graph


def _name(synset: Any, wordnet: Any) -> str:
    """The name that the released files have, where satellite adjectives are numbered with others.

    NLTK's versions differ in this.
    """
    name = str(synset.name())
    if synset.pos() not in "as":
        return name
    word = name.rsplit(".", 2)[0]
    offsets = [sense.offset() for sense in wordnet.synsets(word, "a")]
    return f"{word}.{synset.pos()}.{offsets.index(synset.offset()) + 1:02d}"
