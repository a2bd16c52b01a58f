"""The concepts that a model knows most and least of, with their questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import fsum

from probelight.metrics.intervals import wilson
from probelight.reports.concepts.facts import UNTRAINED, Asked, Question, gathered
from probelight.reports.inoculation.columns import what
from probelight.reports.kit.columns import fields, share, text
from probelight.reports.kit.table import Cell, Column, Declared, Heading, Table
from probelight.reports.kit.text import ABSENT
from probelight.results.load import Results

OF_EACH = 4  # most-known concepts of a model that are shown, and least-known ones
MOST_MODELS = 4
MOST_QUESTIONS = 3
NONE = Cell(ABSENT)


@dataclass(frozen=True)
class Concept:
    """A concept that was asked about several times.

    Attributes:
        name: What data files call it, such as "trouser.n.01".
        places: Of its questions in `asked`.
        question: That of the one question that a row shows.
        rank: "most" or "least" where it is shown as such.
        num_alike: How many concepts are known as surely much or little.
    """

    asked: Asked
    name: str
    places: tuple[int, ...]
    question: int = 0
    rank: str = ""
    num_alike: int = 1

    @property
    def asks(self) -> Question:
        """The question of the row."""
        return self.asked.questions[self.question]

    def right(self, dose: int) -> float:
        """How many of its questions are right, mean over seeds."""
        return fsum(self.asked.credit(dose, place) for place in self.places)

    def share(self, dose: int) -> float | None:
        """The share of them; None where it was not asked at this dose."""
        if dose not in self.asked.answers:
            return None
        return self.right(dose) / len(self.places)

    @property
    def before(self) -> float | None:
        """The share before inoculation, or without any."""
        return self.share(UNTRAINED)

    @property
    def after(self) -> float | None:
        """The share after the largest dose."""
        return self.share(self.asked.last) if self.asked.last != UNTRAINED else None

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of the last share: right on 9 of 10 tells more than on 2 of 2."""
        return wilson(self.right(self.asked.last), len(self.places))

    def said(self, dose: int) -> Cell:
        """What most seeds answer to the question of the row, and what that counts."""
        if dose not in self.asked.answers:
            return NONE
        credit = self.asked.credit(dose, self.question)
        if credit == 1:
            return Cell("right")
        said = self.asked.said(dose, self.question) or ABSENT
        return Cell(said, f"counts {credit:.2g}" if credit else "")


def concepts_table(results: Results) -> Table | None:
    """The concepts known most and least; the csv file has all that were asked about twice."""
    every = [_concepts(asked.several) for asked in gathered(results).asked]
    columns: list[Column[Concept]] = [
        what(lambda c: c.asked.series),
        text("known", lambda c: c.rank, small=lambda c: f"{c.num_alike} alike"),
        text("concept", lambda c: c.name, "concept", lambda c: f"{len(c.places)} questions"),
        share("before", lambda c: c.before, "share_before", "right %"),
        share("after", lambda c: c.after, "share_after", "right %"),
        _shown_alone("question, right answer", lambda c: Cell(c.asks.text, c.asks.gold)),
        _shown_alone("answer before", lambda c: c.said(UNTRAINED)),
        _shown_alone("after", lambda c: c.said(c.asked.last) if c.after is not None else NONE),
        fields(lambda c: c.asked.series._asdict()),
        fields(lambda c: {"dose": c.asked.last, "num_questions": len(c.places)}),
    ]
    return Declared(
        "known_concepts",
        "The concepts known most and least",
        f"Of each model the {OF_EACH} concepts that it surely knows most of and least of after the "
        "largest k, by the end of the 95% interval of the share of their questions that are right "
        "(right on 9 of 10 is surer than on 2 of 2), among those with several questions; of those "
        "alike, which are counted, the first by name. Some are there by luck alone: how many, the "
        "strict share if independent says, in the table above. Up to "
        f"{MOST_QUESTIONS} questions of each are shown, with what most seeds answer; what that "
        f"counts is said where seeds differ or choices tie. Up to {MOST_MODELS} models are shown; "
        "the csv file has all, and all their concepts with several questions.",
        columns,
        order="model probe original_task report_split dose concept num_questions",
        runs=lambda c: c.asked.runs(),
    ).of([c for own in every for c in own], [c for own in every[:MOST_MODELS] for c in _shown(own)])


def _shown_alone(label: str, get: Callable[[Concept], Cell]) -> Column[Concept]:
    return Column(Heading(label, "left", prose=True), get, lambda concept: {})


def _concepts(asked: Asked) -> list[Concept]:
    places: dict[str, list[int]] = {}
    for place, name in enumerate(asked.concepts):
        places.setdefault(name, []).append(place)
    return [Concept(asked, name, tuple(places[name])) for name in sorted(places)]


def _shown(own: list[Concept]) -> Iterable[Concept]:
    """A row a question of the concepts known most and least."""
    most = sorted((c for c in own if c.bounds[0] > 0), key=lambda c: -c.bounds[0])[:OF_EACH]
    least = sorted((c for c in own if c.bounds[1] < 1), key=lambda c: c.bounds[1])[:OF_EACH]
    alike = Counter(c.bounds for c in own)
    for rank, concepts in (("most", most), ("least", least)):
        for concept in concepts:
            for place in concept.places[:MOST_QUESTIONS]:
                yield replace(concept, question=place, rank=rank, num_alike=alike[concept.bounds])


def summary(results: Results) -> str:
    """The findings in one paragraph."""
    from probelight.reports.concepts.clusters import known, left_out

    return " ".join([*known(results), *left_out(results)])
