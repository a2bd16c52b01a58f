"""Wrong answers of the questions of WordNetQA, and how questions are dealt to splits.

The wrong answers of a question are the paper's sets by type and distance, filled up with random
ones (`Distractors`). Splits share no concept, right answer or set of wrong answers (`Deal`).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from probelight.builders.builder import Draft
from probelight.builders.hygiene import plain_words
from probelight.builders.wordnet_probes.graph import Graph, levels
from probelight.builders.wordnet_probes.questions import (
    Kind,
    WordNetQuestion,
    answer_text,
    asked_words,
)

NUM_DISTRACTORS = 4
_MAX_POOL = 24  # of thousands of sisters
# Sisters and hyponyms are more special than any hypernym: with four of them the answer could be
# told without the question.
_MAX_NEAR = {"definitions": 4, "synonymy": 4, "hypernymy": 2, "hyponymy": 4}
_FEW = 3  # questions of one answer
_MOST_ALIKE = 0.6  # share of their words that two glosses may have in common
_MIN_PARAPHRASE = 2  # longer words: two glosses with half of them in common say nearly the same


@dataclass(frozen=True)
class RelatedSet:
    """Concepts that may be wrong answers, by their relation to the one asked about."""

    kind: str
    hops: int | None
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Distractors:
    """Chooses the wrong answers of one probe's questions."""

    kind: Kind
    graph: Graph
    rng: random.Random
    max_hops: int  # of hypernyms and hyponyms
    sister_depth: int  # l of SISTER_l
    # Right answers of the probe by part of speech: random distractors are drawn from them, so that
    # nothing tells them from a right answer.
    golds: Mapping[str, Sequence[int]]

    def drafts(self, question: WordNetQuestion, most: int) -> Iterator[Draft]:
        """Yield the question with up to `most` different sets of distractors.

        Each kind of relatives gives one set before any gives a second one, which is another draw.
        """
        kinds = [*self.related(question.concept), RelatedSet("random", None, ())]
        self.rng.shuffle(kinds)
        is_wrong = self._wrongness_test(question)
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
        """Return a concept's sisters by depth, and its relatives up and down by hops."""
        walks = {"sister": self.graph.sisters(concept, self.sister_depth)}
        if self.kind != "hyponymy":
            walks["hyponym"] = levels([concept], self.graph.down, self.max_hops)
        if self.kind != "hypernymy":
            walks["hypernym"] = levels([concept], self.graph.up, self.max_hops)
        return [
            RelatedSet(kind, hops, tuple(level))
            for kind, steps in walks.items()
            for hops, level in enumerate(steps, start=1)
        ]

    def _draft(
        self, question: WordNetQuestion, related: RelatedSet, is_wrong: Callable[[int], bool]
    ) -> Draft | None:
        """Draw a set of distractors from related concepts; None if there are too few."""
        concepts = self.graph.concepts
        concept, gold = concepts[question.concept], concepts[question.gold]
        answer = answer_text(self.kind, gold)
        related_texts = self._wrong_texts(related.numbers, is_wrong, without=[answer])
        if related.kind != "random" and not related_texts:
            return None
        num_related = min(_MAX_NEAR[self.kind], len(related_texts))
        related_choices = pick_distractors(list(related_texts), answer, num_related, self.rng)
        missing = NUM_DISTRACTORS - len(related_choices)
        pool = self.golds[gold.pos] if missing else []
        fillers = self._wrong_texts(pool, is_wrong, without=[answer, *related_choices])
        if len(fillers) < missing:
            return None
        random_choices = pick_distractors(list(fillers), answer, missing, self.rng)
        arrow, reverse = ("=>", "<=") if self.kind == "hypernymy" else ("<=", "=>")
        names = [concepts[related_texts[text]].name for text in related_choices]
        # As the released files call them.
        notes: dict[str, object] = {
            "surface_form": question.word,
            "gold_synset": concept.name,
            "synset_id": concept.number,
            "chain": f"{concept.name}{arrow}{gold.name}",
            "hops": question.hops,
            "pos": concept.pos,
            "source": "wordnet",
            "distractor_type": related.kind,
            "distractor_chain": ";".join(f"{concept.name}{reverse}{name}" for name in names),
            "other_distractors": names,
            "random_distractors": [concepts[fillers[text]].name for text in random_choices],
        }
        if related.hops is not None:
            notes["distractor_hops"] = related.hops
        wrong = (*related_choices, *random_choices)
        return Draft(question.stem, answer, wrong, concept.name, notes)

    def _wrong_texts(
        self, numbers: Sequence[int], is_wrong: Callable[[int], bool], without: Sequence[str]
    ) -> dict[str, int]:
        """Draw wrong answers: texts with their concepts, no two alike but for case and marks."""
        concepts = self.graph.concepts
        if len(numbers) > _MAX_POOL:
            numbers = self.rng.sample(numbers, _MAX_POOL)
        by_gloss = {concepts[number].gloss: number for number in numbers if is_wrong(number)}
        used_texts = set(map(_plain, without))
        texts = dict[str, int]()
        for number in by_gloss.values():
            text = answer_text(self.kind, concepts[number])
            if _plain(text) not in used_texts:
                used_texts.add(_plain(text))
                texts[text] = number
        return texts

    def _wrongness_test(self, question: WordNetQuestion) -> Callable[[int], bool]:
        """Return a test whether an answer is certainly wrong, in whatever sense words are meant.

        Results are cached, as all sets of distractors test the same concepts.
        """
        graph, gold = self.graph, _words(self.graph.concepts[question.gold].gloss)
        is_up, is_down = self.kind == "hypernymy", self.kind == "hyponymy"
        # What may be right by some sense of some word of the concept.
        right = graph.broadly(question.concept) if is_up else graph.homonyms(question.concept)
        looks_right = self._resemblance_test(question)

        @cache
        def is_wrong(number: int) -> bool:
            concept = graph.concepts[number]
            if not concept.is_fit:
                return False
            meant = graph.broadly(number) if is_down else graph.homonyms(number)
            if not meant.isdisjoint(right):
                return False
            words = _words(concept.gloss)
            shared = len(gold & words)
            if shared > _MOST_ALIKE * (len(gold) + len(words) - shared):
                return False
            return looks_right(number)

        return is_wrong

    def _resemblance_test(self, question: WordNetQuestion) -> Callable[[int], bool]:
        """Return a test whether a wrong answer looks like right ones, and no nearer than they.

        None repeats an asked word, as no right answer does: a gloss with it ("seethe with anger",
        for a kind of seething) often fits the sentence better than the word's own. No name of a
        hypernym or hyponym is in the question ("cold spell (or cold snap)" for "a cold snap").
        Synonyms are several, and the definition uses one of them at most.
        """
        subject, graph = self.graph.concepts[question.concept], self.graph
        words = [*asked_words(self.kind, subject), *subject.words, question.word]
        telling_stems = graph.asked_stems(words)
        beginnings, gloss = _beginnings(subject.gloss), f" {_plain(subject.gloss)} "
        stem = f" {_plain(question.stem)} "

        def looks_right(number: int) -> bool:
            concept = graph.concepts[number]
            if self.kind == "definitions":
                other_beginnings = _beginnings(concept.gloss)
                shared = len(beginnings & other_beginnings)
                fewer = min(len(beginnings), len(other_beginnings))
                paraphrase = shared >= _MIN_PARAPHRASE and 2 * shared >= fewer
                return not paraphrase and telling_stems.isdisjoint(graph.glossed(number))
            names = [f" {_plain(word)} " for word in concept.words]
            if self.kind == "synonymy":
                return len(names) > 1 and sum(name in gloss for name in names) < 2
            in_stem = any(name in stem for name in names)
            return not in_stem and telling_stems.isdisjoint(graph.spelled(number))

        return looks_right


_plain = cache(plain_words)


def pick_distractors(
    pool: Sequence[str], gold: str, count: int, rng: random.Random
) -> tuple[str, ...]:
    """Pick distractors so that the gold answer's rank in length says nothing about it.

    The number of longer distractors is drawn evenly from 0..count, as far as the pool allows. The
    pool has at least `count` different answers, without the gold.
    """
    if not count:
        return ()
    candidates = list(pool)
    rng.shuffle(candidates)
    longer = [text for text in candidates if len(text) > len(gold)]
    shorter = [text for text in candidates if len(text) <= len(gold)]
    num_longer = min(rng.randint(0, count), len(longer))
    num_longer = max(num_longer, count - len(shorter))
    chosen = longer[:num_longer] + shorter[: count - num_longer]
    return tuple(rng.sample(chosen, count))


@cache
def _words(gloss: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", gloss.lower()))


@cache
def _beginnings(text: str) -> frozenset[str]:
    """Return the beginnings of a text's longer words; the text itself if it has none."""
    long_words = [word for word in re.findall(r"\w+", text.lower()) if len(word) > 3]
    return frozenset(word[:5] for word in long_words or [text.lower()])


class Deal:
    """Deals questions to splits, each of which owns its concepts, answers and sets of distractors.

    A split is filled answer by answer: all questions of an answer at once, with those questions
    about the same concepts whose answers few others share. So few questions are lost because their
    concept is in one split and their answer in another. `drafts` returns up to so many items of a
    question; `most` limits the items per right answer in a split.
    """

    def __init__(
        self,
        questions: Sequence[WordNetQuestion],
        drafts: Callable[[WordNetQuestion, int], Iterable[Draft]],
        rng: random.Random,
        most: int | None,
    ) -> None:
        self.drafts = drafts
        self.rng = rng
        self.most = most
        self.by_gold: dict[int, list[WordNetQuestion]] = {}
        for question in questions:
            self.by_gold.setdefault(question.gold, []).append(question)
        self.by_concept: dict[int, list[WordNetQuestion]] = {}
        for question in questions:
            if len(self.by_gold[question.gold]) <= _FEW:
                self.by_concept.setdefault(question.concept, []).append(question)
        self._asked = set[WordNetQuestion]()
        self._concepts: dict[int, str] = {}
        self._golds: dict[int, str] = {}
        self._sets: dict[frozenset[str], str] = {}

    def fill(self, split: str, size: int | None, perturbations: int) -> list[Draft]:
        """Take the items of a split from what other splits have left.

        `size` None takes all; each question gets up to `perturbations` sets of distractors.
        """
        golds = list(self.by_gold)
        self.rng.shuffle(golds)
        split_drafts, answers = list[Draft](), Counter[int]()
        for gold in golds:
            near = (
                candidate
                for question in self.by_gold[gold]
                for candidate in (question, *self.by_concept.get(question.concept, ()))
            )
            for question in near:
                room = None if self.most is None else self.most - answers[question.gold]
                for draft in islice(self._question_drafts(split, question, perturbations), room):
                    if size is not None and len(split_drafts) >= size:
                        return split_drafts
                    split_drafts.append(draft)
                    answers[question.gold] += 1
        return split_drafts

    def _question_drafts(
        self, split: str, question: WordNetQuestion, perturbations: int
    ) -> Iterator[Draft]:
        """Yield a question's items for a split, unless another split owns a part of it."""
        concept, gold = question.concept, question.gold
        owners = {self._concepts.get(concept, split), self._golds.get(gold, split)}
        if owners != {split} or question in self._asked:
            return
        self._asked.add(question)
        for draft in self.drafts(question, perturbations):
            if self._sets.setdefault(frozenset(draft.distractors), split) == split:
                self._concepts[concept] = self._golds[gold] = split
                yield draft
