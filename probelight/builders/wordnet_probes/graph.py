"""WordNet as lists and sets of numbers, walked far faster than NLTK's objects; checks by it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from probelight.builders.builder import tracked
from probelight.builders.hygiene import Finding
from probelight.builders.sources.wordnet import (
    contexts_of,
    is_fit,
    open_wordnet,
    plain,
    synset_words,
)
from probelight.probes.record import Record
from probelight.probes.words import stem_of, telling_words, words_in

_NUM_LETTERS = 5  # that tell a word and what is made of it: "oppose", "opposition"
_BROKEN = re.compile(r"[,;]\s*$|[,;]\s*or$|[,;] *[,;]|\( ?\)|phrase \)")  # cut off by the database


@dataclass(frozen=True)
class Concept:
    """A synset."""

    number: int  # its place in the graph
    name: str  # such as dog.n.01
    pos: str  # n, v, r, or a, satellite adjectives among them
    gloss: str
    words: tuple[str, ...]
    contexts: tuple[tuple[str, str], ...]  # word and fit example that has it
    is_fit: bool  # the gloss can be shown


@dataclass
class Graph:
    """Concepts and their hypernyms, by number; instances count as hyponyms."""

    concepts: list[Concept]  # in the order of the database
    up: list[tuple[int, ...]]  # direct hypernyms
    down: list[tuple[int, ...]]  # direct hyponyms
    senses: dict[str, list[int]]  # of a word in lower case
    inflected: Callable[[str], frozenset[str]]  # stems of a lower-case word, irregular forms too

    def __post_init__(self) -> None:
        for name in ("above", "homonyms", "broadly", "spelled", "glossed"):
            setattr(self, name, cache(getattr(self, name)))  # of each concept asked many times

    def above(self, number: int) -> frozenset[int]:
        """Return a concept and all its hypernyms, to the top."""
        return frozenset([number]).union(*levels([number], self.up, len(self.up)))

    def homonyms(self, number: int) -> frozenset[int]:
        """Return all senses of all of a concept's words, its own included."""
        words = self.concepts[number].words
        return frozenset(sense for word in words for sense in self.senses[word.lower()])

    def broadly(self, number: int) -> frozenset[int]:
        """Return all senses of all of a concept's words, and their hypernyms."""
        return frozenset().union(*map(self.above, self.homonyms(number)))

    def asked_stems(self, texts: Iterable[str]) -> frozenset[str]:
        """Return the stems of a question's words, by which spelling could tell an answer."""
        return frozenset().union(
            *(self.inflected(word) for text in texts for word in telling_words(text))
        )

    def spelled(self, number: int) -> frozenset[str]:
        """Return the stems of a concept's words and gloss, all that an answer can show."""
        words = words_in(" ".join(self.concepts[number].words))
        return self.glossed(number).union(*map(self.inflected, words))

    def glossed(self, number: int) -> frozenset[str]:
        """Return the stems of the words of a concept's gloss."""
        words = words_in(self.concepts[number].gloss)
        return frozenset().union(*map(self.inflected, words))

    def sisters(self, number: int, depth: int) -> list[list[int]]:
        """Return SISTER_l(c): other children of c's parents, and their descendants, by level."""
        first = sorted({s for up in self.up[number] for s in self.down[up]} - {number})
        return [first, *levels(first, self.down, depth - 1, {number})] if first else []


def levels(
    start: Sequence[int], steps: Sequence[tuple[int, ...]], most: int, without: Collection[int] = ()
) -> list[list[int]]:
    """Return the concepts reached from `start` after 1, 2, ... steps, each once, without `without`.

    With `Graph.up` it is HOPS(c, up) of the paper, with `Graph.down` HOPS(c, down).
    """
    seen = {*without, *start}
    reached_levels: list[list[int]] = []
    level: Sequence[int] = start
    while level and len(reached_levels) < most:
        reached = dict.fromkeys(to for number in level for to in steps[number])
        level = [number for number in reached if number not in seen]
        seen.update(level)
        if level:
            reached_levels.append(level)
    return reached_levels


@cache
def read_graph(wordnet_dir: Path) -> Graph:
    """Read a WordNet database, once per process; errors are those of `open_wordnet`."""
    wordnet = open_wordnet(wordnet_dir)
    # Parts of speech apart: the reader's own order over all of them hangs on a set.
    synsets = [synset for pos in "nvar" for synset in wordnet.all_synsets(pos)]
    numbers = {synset.name(): number for number, synset in enumerate(synsets)}

    @cache
    def stems(word: str) -> frozenset[str]:
        """Return a word's stems and beginnings, which words derived from it share."""
        # "broke": "break"
        bases = {word, *(wordnet.morphy(word, pos) or word for pos in "nvar")}
        beginning = {word[:_NUM_LETTERS]} if len(word) > _NUM_LETTERS - 2 else set[str]()
        return frozenset({*map(stem_of, bases), *beginning})

    graph = Graph([], [], [], {}, stems)
    for number, synset in enumerate(tracked(synsets, "reading WordNet")):
        gloss, words = synset.definition(), tuple(synset_words(synset))
        pos = "a" if synset.pos() == "s" else str(synset.pos())
        contexts = tuple(contexts_of(synset, wordnet))
        fit = is_fit(gloss) and not _BROKEN.search(gloss)
        graph.concepts.append(
            Concept(number, _name(synset, wordnet), pos, plain(gloss), words, contexts, fit)
        )
        above = synset.hypernyms() + synset.instance_hypernyms()
        below = synset.hyponyms() + synset.instance_hyponyms()
        graph.up.append(tuple(numbers[synset.name()] for synset in above))
        graph.down.append(tuple(numbers[synset.name()] for synset in below))
        for word in {word.lower() for word in words}:
            graph.senses.setdefault(word, []).append(number)
    return graph


def _name(synset: Any, wordnet: Any) -> str:
    """Name a synset as in released files, which number satellite adjectives with the others."""
    name = str(synset.name())
    if synset.pos() not in "as":
        return name
    word = name.rsplit(".", 2)[0]
    offsets = [sense.offset() for sense in wordnet.synsets(word, "a")]
    return f"{word}.{synset.pos()}.{offsets.index(synset.offset()) + 1:02d}"


def check_synsets(records: Sequence[Record], graph: Graph) -> list[Finding]:
    """Find wrong answers that are right in WordNet: by the concept, or by a sense of its words.

    All hypernyms (or hyponyms) of a concept are right answers to an ISA question. A choice that is
    right only by another sense of its or the concept's words is a finding of its own, as the
    sentence may tell the senses apart. Items without notes on synsets are passed over.
    """
    numbers = {concept.name: concept.number for concept in graph.concepts}
    findings = list[Finding]()
    for record in records:
        chain = str(record.meta.get("chain") or "")
        ends = re.split("=>|<=", chain)
        if len(ends) != 2:
            continue
        noted = (record.meta.get(f"{kind}_distractors") for kind in ("other", "random"))
        named = [str(name) for names in noted if isinstance(names, list) for name in names]
        if unknown := [name for name in (*ends, *named) if name not in numbers]:
            findings.append(Finding("unknown synset", record.where, unknown[0]))
            continue
        concept, gold = (numbers[name] for name in ends)
        for name in named:
            number = numbers[name]
            if concept == gold:
                same_gloss = graph.concepts[number].gloss == graph.concepts[concept].gloss
                is_right = number == concept or same_gloss
                is_right_by_sense = number in graph.homonyms(concept)
            else:
                below, above = (concept, number) if "=>" in chain else (number, concept)
                is_right = above in graph.above(below)
                is_right_by_sense = not graph.homonyms(above).isdisjoint(graph.broadly(below))
            if is_right:
                check = "a wrong answer is right (WordNet)"
            elif is_right_by_sense:
                check = "right in another sense (WordNet)"
            elif gold in graph.homonyms(number):
                check = "synonym of the gold (WordNet)"
            else:
                continue
            findings.append(Finding(check, record.where, f"{name}, of {chain}"))
    return findings
