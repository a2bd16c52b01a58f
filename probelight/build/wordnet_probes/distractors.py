"""Wrong answers of the questions of WordNetQA, and how questions are dealt to splits.

The wrong answers of a question are the paper's sets by type and distance, filled up with random
ones (`Distractors`). No two splits share a concept, a right answer or a set of them (`Deal`).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from probelight.build.drafts import Draft, pick_distractors
from probelight.build.hygiene import plain_words
from probelight.build.wordnet_probes.graph import Graph
from probelight.build.wordnet_probes.questions import (
    Kind,
    Question,
    answer_text,
    asked_words,
)

NUM_DISTRACTORS = 4
_MAX_POOL = 24  # of thousands of sisters
# Sisters and hyponyms are more special than any hypernym: with four of them the answer could be
# told without the question.
_MAX_NEAR: Mapping[Kind, int] = {
    "definitions": 4,
    "synonymy": 4,
    "hypernymy": 2,
    "hyponymy": 4,
}
_FEW = 3  # questions of one answer
_MOST_ALIKE = 0.6  # share of their words that two glosses may have in common
_MIN_PARAPHRASE = 2  # longer words: two glosses with half of them in common say nearly the same


@dataclass(frozen=True)
class RelatedSet:
    """Concepts that may be wrong answers, by how they are related to the concept asked about."""

    kind: str
    hops: int | None
    numbers: tuple[int, ...]


class Distractors:
    """Chooses the wrong answers of one probe's questions.

    Args:
        kind: Which relation is asked for.
        graph: WordNet.
        rng: Chooses.
        max_hops: How far hypernyms and hyponyms may be.
        sister_depth: l of SISTER_l.
        golds: Right answers of the probe by part of speech: random distractors are drawn from
            them, so that nothing in such a one tells it from a right answer.
    """

    def __init__(
        self,
        kind: Kind,
        graph: Graph,
        rng: random.Random,
        *,
        max_hops: int,
        sister_depth: int,
        golds: Mapping[str, Sequence[int]],
    ) -> None:
        self.kind = kind
        self.graph = graph
        self.rng = rng
        self.max_hops = max_hops
        self.sister_depth = sister_depth
        self.golds = golds
        # Kept of each concept, as it is needed a hundred times.
        self._gloss_words: dict[int, frozenset[str]] = {}
        self._answers: dict[int, tuple[str, str]] = {}
        self._names: dict[int, list[str]] = {}

    def drafts(self, question: Question, most: int) -> Iterator[Draft]:
        """Yield the question with several sets of distractors, no two of them the same.

        Each kind of relatives gives one set before any gives a second one, which is another draw.

        Args:
            question: The question.
            most: How many sets.
        """
        kinds = [*self.related(question.concept), RelatedSet("random", None, ())]
        self.rng.shuffle(kinds)
        is_wrong = self._wrong_to(question)
        seen = set[frozenset[str]]()
        while kinds:
            fertile = list[RelatedSet]()
            for related in kinds:
                draft = self._draft(question, related, is_wrong)
                if draft is not None and frozenset(draft.distractors) not in seen:
                    seen.add(frozenset(draft.distractors))
                    fertile.append(related)
                    yield draft
                    if len(seen) == most:
                        return
            kinds = fertile

    def related(self, concept: int) -> list[RelatedSet]:
        """Return the related sets of a concept: sisters by depth, relatives up and down by hops."""
        walks = {"sister": self.graph.sisters(concept, self.sister_depth)}
        if self.kind != "hyponymy":
            walks["hyponym"] = self.graph.hops_down(concept, self.max_hops)
        if self.kind != "hypernymy":
            walks["hypernym"] = self.graph.hops_up(concept, self.max_hops)
        return [
            RelatedSet(kind, hops, tuple(level))
            for kind, levels in walks.items()
            for hops, level in enumerate(levels, start=1)
        ]

    def _draft(
        self, question: Question, related: RelatedSet, is_wrong: Callable[[int], bool]
    ) -> Draft | None:
        """Draw a set of distractors from related concepts; None where there are too few."""
        answer = answer_text(self.kind, self.graph.concepts[question.gold])
        near = self._texts(self._sample(related.numbers, is_wrong), without=[answer])
        if related.kind != "random" and not near:
            return None
        chosen = _pick(near, answer, min(_MAX_NEAR[self.kind], len(near)), self.rng)
        missing = NUM_DISTRACTORS - len(chosen)
        pos = self.graph.concepts[question.gold].pos
        others = self._sample(self.golds[pos], is_wrong) if missing else []
        random_ones = self._texts(others, without=[answer, *chosen])
        if len(random_ones) < missing:
            return None
        filled = _pick(random_ones, answer, missing, self.rng)
        numbers = [near[text] for text in chosen], [random_ones[text] for text in filled]
        notes = self._notes(question, related, *numbers)
        texts = (*chosen, *filled)
        return Draft(question.stem, answer, texts, notes["gold_synset"], notes)

    def _sample(self, numbers: Sequence[int], is_wrong: Callable[[int], bool]) -> list[int]:
        if len(numbers) > _MAX_POOL:
            numbers = self.rng.sample(numbers, _MAX_POOL)
        return [one for one in numbers if is_wrong(one)]

    def _wrong_to(self, question: Question) -> Callable[[int], bool]:
        """Return a test whether an answer is certainly wrong, in whatever sense words are meant.

        It is asked of the same concepts for each set of distractors, so what it says is kept.
        """
        graph, gold = self.graph, self._words(question.gold)
        is_up, is_down = self.kind == "hypernymy", self.kind == "hyponymy"
        # What may be right by some sense of some word of the concept.
        right = graph.broadly(question.concept) if is_up else graph.homonyms(question.concept)
        fits = self._fits(question)

        @cache
        def is_wrong(number: int) -> bool:
            if not graph.concepts[number].is_fit:
                return False
            meant = graph.broadly(number) if is_down else graph.homonyms(number)
            if not meant.isdisjoint(right):
                return False
            words = self._words(number)
            shared = len(gold & words)
            if shared > _MOST_ALIKE * (len(gold) + len(words) - shared):
                return False
            return fits(number)

        return is_wrong

    def _fits(self, question: Question) -> Callable[[int], bool]:
        """Return a test whether a wrong answer looks as right ones do, and no nearer than they.

        None repeats a word that is asked for, as no right answer does: of definitions, a gloss with
        it ("seethe with anger", of what is a kind of seething) often fits the sentence better than
        the word's own. Of a hypernym or hyponym, nothing that it is called is in the question
        ("cold spell (or cold snap)" of "a cold snap"). Of synonyms, the definition does not use
        two.
        """
        asked, graph = self.graph.concepts[question.concept], self.graph
        told = graph.asked_stems([*asked_words(self.kind, asked), *asked.words, question.word])
        own, said = _beginnings(asked.gloss), f" {plain_words(asked.gloss)} "
        stem = f" {plain_words(question.stem)} "

        def gloss_differs(number: int) -> bool:
            others = _beginnings(graph.concepts[number].gloss)
            shared, fewer = len(own & others), min(len(own), len(others))
            paraphrase = shared >= _MIN_PARAPHRASE and 2 * shared >= fewer
            return not paraphrase and told.isdisjoint(graph.glossed(number))

        def words_differ(number: int) -> bool:
            names = self._plain_names(number)
            return len(names) > 1 and sum(name in said for name in names) < 2

        def answer_differs(number: int) -> bool:
            names = self._plain_names(number)
            return told.isdisjoint(graph.spelled(number)) and not any(n in stem for n in names)

        kinds = {"definitions": gloss_differs, "synonymy": words_differ}
        return kinds.get(self.kind, answer_differs)

    def _plain_names(self, number: int) -> list[str]:
        """Return a concept's names as they would be in a text of plain words."""
        if number not in self._names:
            words = self.graph.concepts[number].words
            self._names[number] = [f" {plain_words(word)} " for word in words]
        return self._names[number]

    def _words(self, number: int) -> frozenset[str]:
        """Return the words of a concept's gloss."""
        if number not in self._gloss_words:
            words = re.findall(r"\w+", self.graph.concepts[number].gloss.lower())
            self._gloss_words[number] = frozenset(words)
        return self._gloss_words[number]

    def _texts(self, numbers: Sequence[int], without: Sequence[str]) -> dict[str, int]:
        """Return answer texts with their concepts; none that differ in case or marks alone."""
        concepts = self.graph.concepts
        taken = {plain_words(text) for text in without}
        texts = dict[str, int]()
        for one in {concepts[number].gloss: number for number in numbers}.values():
            if one not in self._answers:
                answer = answer_text(self.kind, concepts[one])
                self._answers[one] = answer, plain_words(answer)
            text, plain = self._answers[one]
            if plain not in taken:
                taken.add(plain)
                texts[text] = one
        return texts

    def _notes(
        self, question: Question, related: RelatedSet, near: list[int], filled: list[int]
    ) -> dict[str, object]:
        """Return the notes of an item, under the names of the released files."""
        concept, gold = (self.graph.concepts[n] for n in (question.concept, question.gold))
        to, back = ("=>", "<=") if self.kind == "hypernymy" else ("<=", "=>")
        names = [self.graph.concepts[one].name for one in near]
        notes: dict[str, object] = {
            "surface_form": question.word,
            "gold_synset": concept.name,
            "synset_id": concept.number,
            "chain": f"{concept.name}{to}{gold.name}",
            "hops": question.hops,
            "pos": concept.pos,
            "source": "wordnet",
            "distractor_type": related.kind,
            "distractor_chain": ";".join(f"{concept.name}{back}{name}" for name in names),
            "other_distractors": names,
            "random_distractors": [self.graph.concepts[one].name for one in filled],
        }
        return notes if related.hops is None else {**notes, "distractor_hops": related.hops}


def _pick(texts: Mapping[str, int], answer: str, count: int, rng: random.Random) -> tuple[str, ...]:
    return pick_distractors(list(texts), answer, count, rng) if count else ()


@cache
def _beginnings(text: str) -> frozenset[str]:
    """Return the beginnings of a text's longer words; of one that has none, the text."""
    parts = [part for part in re.findall(r"\w+", text.lower()) if len(part) > 3]
    return frozenset(part[:5] for part in parts or [text.lower()])


Drafted = Callable[[Question, int], Iterable[Draft]]


class Deal:
    """Deals questions to splits, each of which owns its concepts, answers and distractors.

    A split is filled answer by answer: all questions of an answer at once, and with them those
    questions about the same concepts whose answers few others share. So few questions are lost
    because their concept is on one side and their answer on the other.

    Args:
        questions: All questions.
        drafted: Gives a question's items, one for each of so many sets of distractors.
        rng: The order.
    """

    def __init__(self, questions: Sequence[Question], drafted: Drafted, rng: random.Random) -> None:
        self.drafted = drafted
        self.rng = rng
        self.by_gold: dict[int, list[Question]] = {}
        for question in questions:
            self.by_gold.setdefault(question.gold, []).append(question)
        self.by_concept: dict[int, list[Question]] = {}
        for question in questions:
            if len(self.by_gold[question.gold]) <= _FEW:
                self.by_concept.setdefault(question.concept, []).append(question)
        self._asked = set[Question]()
        self._concepts: dict[int, str] = {}
        self._golds: dict[int, str] = {}
        self._sets: dict[frozenset[str], str] = {}

    def fill(
        self, split: str, size: int | None, perturbations: int, most: int | None = None
    ) -> list[Draft]:
        """Take the items of a split from what others have left.

        Args:
            split: Its name.
            size: Number of items; None takes all.
            perturbations: Sets of distractors of one question at most.
            most: Items of one right answer at most.
        """
        golds = list(self.by_gold)
        self.rng.shuffle(golds)
        found, answers = list[Draft](), Counter[int]()
        for gold in golds:
            near = (
                one
                for question in self.by_gold[gold]
                for one in (question, *self.by_concept.get(question.concept, ()))
            )
            for question in near:
                room = None if most is None else most - answers[question.gold]
                for draft in islice(self._of_question(split, question, perturbations), room):
                    if size is not None and len(found) >= size:
                        return found
                    found.append(draft)
                    answers[question.gold] += 1
        return found

    def _of_question(self, split: str, question: Question, perturbations: int) -> Iterator[Draft]:
        """Yield a question's items for a split, unless another one owns a part of it."""
        concept, gold = question.concept, question.gold
        owners = {self._concepts.get(concept, split), self._golds.get(gold, split)}
        if owners != {split} or question in self._asked:
            return
        self._asked.add(question)
        for draft in self.drafted(question, perturbations):
            if self._sets.setdefault(frozenset(draft.distractors), split) == split:
                self._concepts[concept] = self._golds[gold] = split
                yield draft
