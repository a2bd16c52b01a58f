"""Deals questions to splits that share no concept, no right answer and no set of distractors."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from probelight.build.drafts import Draft
from probelight.build.wordnet_probes.questions import Question

_FEW = 3  # questions of one answer
Drafted = Callable[[Question, int], Iterable[Draft]]


class Deal:
    """One dealing: who owns which concept, right answer and set of distractors.

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
        """The items of a split, from what others have left.

        Args:
            split: Its name.
            size: How many; None takes all.
            perturbations: Sets of distractors of one question at most.
            most: Items of one right answer at most.
        """
        golds = list(self.by_gold)
        self.rng.shuffle(golds)
        found, answers = list[Draft](), Counter[int]()
        for gold in golds:
            for question in self._near(self.by_gold[gold]):
                room = None if most is None else most - answers[question.gold]
                for draft in islice(self._of_question(split, question, perturbations), room):
                    if size is not None and len(found) >= size:
                        return found
                    found.append(draft)
                    answers[question.gold] += 1
        return found

    def _near(self, questions: Sequence[Question]) -> Iterator[Question]:
        for question in questions:
            yield question
            yield from self.by_concept.get(question.concept, ())

    def _of_question(self, split: str, question: Question, perturbations: int) -> Iterator[Draft]:
        concept, gold = question.concept, question.gold
        owners = {self._concepts.get(concept, split), self._golds.get(gold, split)}
        if owners != {split} or question in self._asked:
            return
        self._asked.add(question)
        for draft in self.drafted(question, perturbations):
            if self._sets.setdefault(frozenset(draft.distractors), split) == split:
                self._concepts[concept] = self._golds[gold] = split
                yield draft
