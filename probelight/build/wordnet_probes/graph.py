"""WordNet as plain lists and sets of numbers, which are walked far faster than NLTK's objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from probelight.build.progress import tracked
from probelight.build.sources.verbalise import contexts_of, is_fit_gloss, plain
from probelight.build.sources.wordnet import open_wordnet, words_of
from probelight.probes.words import stem_of, telling_words, words_in

_NUM_LETTERS = 5  # that tell a word and what is made of it: "oppose", "opposition"
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
        contexts: Of each fit example that has one of its words: the word as it is there, and
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
        inflected: Stems of a word in lower case, irregular forms among them.
    """

    concepts: list[Concept]
    up: list[tuple[int, ...]]
    down: list[tuple[int, ...]]
    senses: dict[str, list[int]]
    inflected: Callable[[str], frozenset[str]]
    _glossed: dict[int, frozenset[str]] = field(default_factory=dict)
    _spelled: dict[int, frozenset[str]] = field(default_factory=dict)
    _above: dict[int, frozenset[int]] = field(default_factory=dict)
    _homonyms: dict[int, frozenset[int]] = field(default_factory=dict)
    _broadly: dict[int, frozenset[int]] = field(default_factory=dict)

    def above(self, number: int) -> frozenset[int]:
        """Return a concept and all that it is a kind of, to the top."""
        if number not in self._above:
            found = {number}
            for level in self._levels([number], self.up, len(self.up)):
                found |= set(level)
            self._above[number] = frozenset(found)
        return self._above[number]

    def homonyms(self, number: int) -> frozenset[int]:
        """Return all senses of all of a concept's words, its own among them."""
        if number not in self._homonyms:
            words = self.concepts[number].words
            senses = (sense for word in words for sense in self.senses[word.lower()])
            self._homonyms[number] = frozenset(senses)
        return self._homonyms[number]

    def broadly(self, number: int) -> frozenset[int]:
        """Return all that any sense of any of a concept's words is, or is a kind of."""
        if number not in self._broadly:
            senses = self.homonyms(number)
            self._broadly[number] = frozenset().union(*(self.above(one) for one in senses))
        return self._broadly[number]

    def asked_stems(self, texts: Iterable[str]) -> frozenset[str]:
        """Return the stems of a question's words, by which spelling could tell an answer."""
        return frozenset().union(
            *(self.inflected(word) for text in texts for word in telling_words(text))
        )

    def spelled(self, number: int) -> frozenset[str]:
        """Return the stems of a concept's words and gloss, all that an answer can show."""
        if number not in self._spelled:
            words = words_in(" ".join(self.concepts[number].words))
            names = frozenset().union(*map(self.inflected, words))
            self._spelled[number] = names | self.glossed(number)
        return self._spelled[number]

    def glossed(self, number: int) -> frozenset[str]:
        """Return the stems of the words of a concept's gloss."""
        if number not in self._glossed:
            words = words_in(self.concepts[number].gloss)
            self._glossed[number] = frozenset().union(*map(self.inflected, words))
        return self._glossed[number]

    def hops_up(self, number: int, most: int) -> list[list[int]]:
        """HOPS(c, up): hypernyms by their distance, nearest first, each once."""
        return list(self._levels([number], self.up, most))

    def hops_down(self, number: int, most: int) -> list[list[int]]:
        """HOPS(c, down): hyponyms by their distance, nearest first, each once."""
        return list(self._levels([number], self.down, most))

    def sisters(self, number: int, depth: int) -> list[list[int]]:
        """SISTER_l(c): other children of c's parents, and what is below those, by level."""
        first = sorted({s for up in self.up[number] for s in self.down[up]} - {number})
        return [first, *self._levels(first, self.down, depth - 1, {number})] if first else []

    @staticmethod
    def _levels(
        level: list[int],
        steps: Sequence[tuple[int, ...]],
        most: int,
        without: Set[int] = frozenset(),
    ) -> Iterator[list[int]]:
        """Yield the concepts reached by one step more each time, each concept once."""
        seen = {*without, *level}
        for _ in range(most):
            reached = dict.fromkeys(to for one in level for to in steps[one])
            level = [one for one in reached if one not in seen]
            if not level:
                return
            seen.update(level)
            yield level


@cache
def read_graph(wordnet_dir: Path) -> Graph:
    """Read a WordNet database with NLTK's reader, once in a process.

    Raises:
        FileNotFoundError: As `open_wordnet`.
    """
    wordnet = open_wordnet(wordnet_dir)
    # Parts of speech apart: the reader's own order over all of them hangs on a set.
    synsets = [synset for part in "nvar" for synset in wordnet.all_synsets(part)]
    numbers = {synset.name(): number for number, synset in enumerate(synsets)}
    graph = Graph([], [], [], {}, _stemmer(wordnet))
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


def _stemmer(wordnet: Any) -> Callable[[str], frozenset[str]]:
    """Return a function that gives what a word has in common with words made from it.

    Those are the stems of the word and of what WordNet knows it to be a form of ("broke": "break"),
    and how it begins.
    """

    @cache
    def stems(word: str) -> frozenset[str]:
        bases = {word, *(wordnet.morphy(word, part) or word for part in "nvar")}
        beginning = {word[:_NUM_LETTERS]} if len(word) > _NUM_LETTERS - 2 else set[str]()
        return frozenset({*map(stem_of, bases), *beginning})

    return stems


def _name(synset: Any, wordnet: Any) -> str:
    """Name a synset as released files do, which number satellite adjectives with the others.

    NLTK's versions differ in this.
    """
    name = str(synset.name())
    if synset.pos() not in "as":
        return name
    word = name.rsplit(".", 2)[0]
    offsets = [sense.offset() for sense in wordnet.synsets(word, "a")]
    return f"{word}.{synset.pos()}.{offsets.index(synset.offset()) + 1:02d}"
