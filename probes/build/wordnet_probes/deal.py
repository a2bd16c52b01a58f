"""Deals questions to splits that share no concept, no right answer and no set of distractors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence

from probes.build.drafts import Draft
from probes.build.wordnet_probes.questions import Question

Drafted = Callable[[Question, int], Iterable[Draft]]


class Deal:
    """One dealing: who owns which concept, right answer and set of distractors.

    Train and test are filled answer by answer, all questions of an answer at once, so that few
    questions are lost because their concept is on one side and their answer on the other.

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
        self._concepts: dict[int, str] = {}
        self._golds: dict[int, str] = {}
        self._sets: dict[frozenset[str], str] = {}

    def fill(self, split: str, size: int | None, perturbations: int) -> list[Draft]:
        """The items of a split, from what others have left.

        Args:
            split: Its name.
            size: How many; None takes all.
            perturbations: Sets of distractors of one question at most.
        """
        golds = [gold for gold in self.by_gold if gold not in self._golds]
        self.rng.shuffle(golds)
        found = list[Draft]()
        for gold in golds:
            for draft in self._of_gold(split, gold, perturbations):
                if size is not None and len(found) >= size:
                    return found
                found.append(draft)
        return found

    def _of_gold(self, split: str, gold: int, perturbations: int) -> Iterator[Draft]:
        for question in self.by_gold[gold]:
            if self._concepts.get(question.concept, split) != split:
                continue
            for draft in self.drafted(question, perturbations):
                if self._sets.setdefault(frozenset(draft.distractors), split) == split:
                    self._concepts[question.concept] = self._golds[gold] = split
                    yield draft
