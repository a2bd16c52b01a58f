"""The questions about each concept: stems by the templates of table 2, and right answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from probelight.builders.hygiene import stands_in
from probelight.builders.wordnet_probes.graph import Concept, Graph, levels

Kind = Literal["definitions", "synonymy", "hypernymy", "hyponymy"]

_MAX_PER_GOLD = 60  # a few very general hypernyms would be the answer of every tenth question
_NUM_TRIES = 6
CONTEXTS = (
    "Given '{s}',",
    "Given the fragment '{s}',",
    "Given the following expression: '{s}',",
    "In '{s}',",
    "In the expression '{s}',",
    "In the sentence or expression '{s}',",
    "In the following context: '{s}',",
    "Assuming '{s}',",
    "Assuming the expression '{s}',",
    "Imagining a situation where the following is uttered: '{s}',",
)
WORDINGS: Mapping[Kind, tuple[str, ...]] = {
    "definitions": (
        "the word '{w}' is best defined as",
        "the word or concept '{w}' is best described as",
        "'{w}' is best characterized as",
        "which of the following best describes '{w}'",
        "which of the following best defines the word or phrase '{w}'",
    ),
    "hypernymy": (
        "the word or concept '{w}' is best described as a type of",
        "the word or phrase '{w}' is best defined as a type of",
        "'{w}' as a concept is best defined as a type of",
        "the concept '{w}' is best characterized as a type of",
        "the word or concept '{w}' is best described as a kind of",
    ),
    "hyponymy": (
        "which of the following is a more specific type of '{w}'",
        "which of the following words or concepts is a specific example of '{w}'",
        "which of the following concepts is a more specific type of '{w}'",
        "a more specific type of the concept '{w}' is",
        "a specific example of the word or phrase '{w}' is",
    ),
    "synonymy": (
        "Which set of words best corresponds to the definition '{d}'",
        "Which set of words or concepts is best defined as '{d}'",
        "Which set of words or concepts is most related to the definition '{d}'",
        "Which collection of words or concepts best corresponds to the definition '{d}'",
        "The definition '{d}' best characterizes the following words:",
        "'{d}' best defines the following collection of words:",
        "'{d}' is most associated with which of the following set of words",
    ),
}


@dataclass(frozen=True)
class WordNetQuestion:
    """A stem and its right answer, without distractors; concepts by number."""

    concept: int  # what it is about: its cluster
    gold: int  # the answer
    hops: int  # edges between them; 0 where the answer is the concept itself
    word: str  # the word of the concept as the stem shows it
    stem: str


def answer_text(kind: Kind, concept: Concept) -> str:
    """Return the text of an answer: a gloss, words, or "report (or account), defined as '...'"."""
    if kind == "definitions":
        return concept.gloss
    if kind == "synonymy":
        return ", ".join(concept.words)
    first, *synonyms = concept.words
    more = f" (or {', '.join(synonyms[:2])})" if synonyms else ""
    event = " event" if concept.pos == "v" else ""
    return f"{first}{more}{event}, defined as '{concept.gloss}'"


@dataclass
class Questions:
    """The questions of one probe, concept by concept; no stem is asked twice."""

    kind: Kind
    graph: Graph
    rng: random.Random
    max_hops: int  # of hypernyms and hyponyms
    most: int  # questions per concept
    _stems: set[str] = field(default_factory=set)
    _answers: dict[str, int] = field(default_factory=dict)
    _uses: Counter[int] = field(default_factory=Counter)

    def of_concept(self, concept: Concept) -> Iterator[WordNetQuestion]:
        """Yield the questions about one concept; none without a context or a fit answer."""
        if not concept.is_fit or (self.kind != "synonymy" and not concept.contexts):
            return
        for hops, gold in self._golds(concept):
            answer = answer_text(self.kind, self.graph.concepts[gold])
            # Two concepts of one gloss or of the same words could not be told apart.
            if self._answers.setdefault(answer, gold) != gold:
                continue
            for _ in range(_NUM_TRIES):
                wording = self.rng.choice(WORDINGS[self.kind])
                if self.kind == "synonymy":
                    word, stem = concept.words[0], wording.format(d=concept.gloss)
                else:
                    word, sentence = self.rng.choice(concept.contexts)
                    context = self.rng.choice(CONTEXTS).format(s=sentence)
                    stem = f"{context} {wording.format(w=word)}"
                if stem not in self._stems and not stands_in(answer, stem):
                    self._stems.add(stem)
                    self._uses[gold] += 1
                    yield WordNetQuestion(concept.number, gold, hops, word, stem)
                    break

    def _golds(self, concept: Concept) -> list[tuple[int, int]]:
        """Choose (hops, concept) of the right answers to ask for."""
        graph = self.graph
        telling_stems = graph.asked_stems(asked_words(self.kind, concept))
        if self.kind in {"definitions", "synonymy"}:
            is_asked = self.kind == "definitions" or len(concept.words) > 1
            is_told = not telling_stems.isdisjoint(graph.glossed(concept.number))
            return [(0, concept.number)] * self.most if is_asked and not is_told else []
        steps = graph.up if self.kind == "hypernymy" else graph.down
        homonyms = graph.homonyms(concept.number)
        golds = [
            (hops, gold)
            for hops, level in enumerate(levels([concept.number], steps, self.max_hops), start=1)
            for gold in level
            if graph.concepts[gold].is_fit
            and self._uses[gold] < _MAX_PER_GOLD
            and gold not in homonyms
            and telling_stems.isdisjoint(graph.spelled(gold))
        ]
        chosen = list[tuple[int, int]]()
        while golds and len(chosen) < self.most:
            # Near relatives first: far ones are few and very general, or many and obscure.
            [gold] = self.rng.choices(golds, [1 / hops for hops, _ in golds])
            golds.remove(gold)
            chosen.append(gold)
        return chosen


def asked_words(kind: Kind, concept: Concept) -> list[str]:
    """Return the words that no answer may repeat: the concept's, and as its examples have them."""
    example_words = [word for word, _ in concept.contexts]
    return example_words if kind == "definitions" else [*concept.words, *example_words]
