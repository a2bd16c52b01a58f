"""What models answered to all questions about each concept, from predictions.jsonl alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import fmean
from typing import Any, NamedTuple

from probelight.io.escaping import visible
from probelight.metrics.intervals import FEW
from probelight.reports.inoculation.doses import doses
from probelight.reports.inoculation.runs import Series, inoculations
from probelight.reports.zero_shot.facts import zero_shots
from probelight.results.load import Results, Run, UnreadableResultError
from probelight.results.predictions import ItemLine, difficulty_of, read_item_lines
from probelight.results.row import Subset

BEFORE, AFTER = "report_probe_before", "report_probe"  # sets in an inoculation's predictions
UNTRAINED = 0  # the dose of a model before inoculation, or without any


class Question(NamedTuple):
    """A question about a concept.

    Attributes:
        right: Index of the right choice.
        difficulty: Its hops and distractors, where they are known.
    """

    text: str
    choices: tuple[str, ...]
    right: int
    concept: str
    difficulty: Subset | None = None

    @property
    def gold(self) -> str:
        """The right answer."""
        return self.choices[self.right]


class Answers(NamedTuple):
    """One run's answers to a set of questions.

    Attributes:
        credit: (N,) 1 where right, 1/n where it is a tie of n, else 0.
        said: (N,) index of the choice; None where nothing was said.
        run: Its key.
    """

    credit: tuple[float, ...]
    said: tuple[int | None, ...]
    run: str = ""

    def at(self, places: Sequence[int]) -> Answers:
        """The answers to some of the questions."""
        return Answers(_at(places, self.credit), _at(places, self.said), self.run)


@dataclass(frozen=True)
class Asked:
    """A model that was asked about concepts, once or before and after inoculation.

    Attributes:
        series: The model, the probe and, of an inoculation, what it was chosen by.
        whole: Whether these are all questions of the split, and so of each concept.
        questions: What it was asked.
        answers: By dose, ascending, the answers of each seed; `UNTRAINED` is before.
    """

    series: Series
    whole: bool
    questions: tuple[Question, ...]
    answers: Mapping[int, tuple[Answers, ...]]

    @property
    def concepts(self) -> list[str]:
        """(N,) the concept of each question."""
        return [question.concept for question in self.questions]

    def runs(self, dose: int | None = None) -> list[str]:
        """The keys of the runs that answered, at a dose or at all."""
        doses = self.answers if dose is None else [dose]
        return list(dict.fromkeys(one.run for dose in doses for one in self.answers[dose]))

    @property
    def last(self) -> int:
        """The largest dose."""
        return max(self.answers)

    @cached_property
    def several(self) -> Asked:
        """The same with the questions about concepts that have more than one."""
        sizes = Counter(self.concepts)
        kept = [place for place, concept in enumerate(self.concepts) if sizes[concept] > 1]
        answers = {dose: tuple(one.at(kept) for one in runs) for dose, runs in self.answers.items()}
        return replace(self, questions=_at(kept, self.questions), answers=answers)

    def credit(self, dose: int, place: int) -> float:
        """What a question counts, mean over seeds."""
        return fmean(run.credit[place] for run in self.answers[dose])

    def said(self, dose: int, place: int) -> str:
        """What most seeds answer to a question; empty for nothing."""
        said = Counter(run.said[place] for run in self.answers[dose]).most_common(1)[0][0]
        return "" if said is None else self.questions[place].choices[said]


class Gathered(NamedTuple):
    """Everything that was asked about concepts.

    Attributes:
        asked: What there is something to say of.
        few: Where under `FEW` concepts have more than one question.
        unread: Sentences about predictions that could not be read.
    """

    asked: tuple[Asked, ...]
    few: tuple[Asked, ...]
    unread: tuple[str, ...]


@lru_cache(maxsize=2)
def gathered(results: Results) -> Gathered:
    """The inoculations and, behind them, zero-shot runs whose predictions name concepts."""
    found: dict[tuple[Series, tuple[Question, ...]], dict[int, list[Answers]]] = {}
    unread: dict[str, None] = {}
    cut: set[Series] = set()
    for series, run, sets, whole in _sources(results):
        try:
            lines = read_item_lines(results, run)
        except UnreadableResultError as error:
            unread[f"Not counted by concept: {visible(results.below(str(error)))}."] = None
            continue
        if not whole:
            cut.add(series)
        for dose, name in sets.items():
            own = [line for line in lines if line.group and name in ("", line.set)]
            if own:
                questions, answers = _of(own, run.key)
                found.setdefault((series, questions), {}).setdefault(dose, []).append(answers)
    every = [
        Asked(series, series not in cut, questions, {d: tuple(own[d]) for d in sorted(own)})
        for (series, questions), own in found.items()
    ]
    enough = [len(set(one.several.concepts)) >= FEW for one in every]
    return Gathered(
        tuple(one for one, is_enough in zip(every, enough, strict=True) if is_enough),
        tuple(one for one, is_enough in zip(every, enough, strict=True) if not is_enough),
        tuple(unread),
    )


def _sources(results: Results) -> Iterable[tuple[Series, Run, Mapping[int, str], bool]]:
    """(series, run, its sets by dose, whether they are whole splits); "" is whatever set it has."""
    for series, line in doses(inoculations(results)).items():
        for dose in line:
            # The model before inoculation is the same whatever the dose.
            before = {UNTRAINED: BEFORE} if dose is line[0] else {}
            for one in dose.runs:
                yield series, one.run, {**before, dose.dose: AFTER}, one.whole_split
    for entry in zero_shots(results):
        split = entry.accuracy.split
        yield Series(entry.label, entry.probe, "", "", split), entry.run, {UNTRAINED: ""}, True


def _of(lines: Sequence[ItemLine], run: str) -> tuple[tuple[Question, ...], Answers]:
    questions = tuple(
        Question(line.question, line.choices, line.answer, line.group, difficulty_of(vars(line)))
        for line in lines
    )
    credit = tuple(line.correct for line in lines)
    return questions, Answers(credit, tuple(line.prediction for line in lines), run)


def _at(places: Sequence[int], values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(values[place] for place in places)
