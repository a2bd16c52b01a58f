"""How much of what is asked about each concept a model knows (Richardson & Sabharwal 2020, 5.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

import numpy as np

from probelight.metrics.clusters import credits_by_cluster, shares_by_cluster, strict_if_independent
from probelight.metrics.intervals import FEW, Term, accuracy_interval, sum_interval
from probelight.reports.concepts.facts import UNTRAINED, Asked, gathered
from probelight.reports.inoculation.columns import what
from probelight.reports.kit.columns import accuracy, fields, share, whole
from probelight.reports.kit.measured import Estimate
from probelight.reports.kit.table import Column, Declared, Table
from probelight.reports.kit.text import INTERVAL, between, count, percent, with_facts
from probelight.results.load import Results

SEVERAL = "asked several times"


@dataclass(frozen=True)
class Level:
    """A model's answers at one dose, counted by concept: means over seeds."""

    asked: Asked
    dose: int

    @cached_property
    def several(self) -> Level:
        """The same for the concepts that have more than one question."""
        return Level(self.asked.several, self.dose)

    @property
    def num_seeds(self) -> int:
        """How many runs are in the means."""
        return len(self.asked.answers[self.dose])

    @property
    def num_concepts(self) -> int:
        """How many concepts the questions are about."""
        return len(set(self.asked.concepts))

    @property
    def num_questions(self) -> int:
        """How many questions there are."""
        return len(self.asked.questions)

    @cached_property
    def accuracy(self) -> float:
        """Share of the questions that are right."""
        return fmean(fmean(credit) for credit in self._credits())

    @cached_property
    def soft(self) -> Estimate:
        """Mean over concepts of the share of their questions that are right."""
        found = [shares_by_cluster(credit, self.asked.concepts) for credit in self._credits()]
        return _crossed(found)

    @cached_property
    def strict(self) -> Estimate | None:
        """Share of the concepts with every question right; None where questions are missing."""
        if not self.asked.whole:
            return None
        found = [credits_by_cluster(credit, self.asked.concepts) for credit in self._credits()]
        return Estimate(*accuracy_interval(found[0])) if len(found) == 1 else _crossed(found)

    @cached_property
    def strict_if_independent(self) -> float | None:
        """That share if right answers fell on questions whatever their concept."""
        if not self.asked.whole:
            return None
        concepts = self.asked.concepts
        return fmean(strict_if_independent(credit, concepts) for credit in self._credits())

    def _credits(self) -> Iterable[tuple[float, ...]]:
        return (run.credit for run in self.asked.answers[self.dose])


def clusters_table(results: Results) -> Table | None:
    """Soft and strict cluster accuracy: rows are models and doses."""
    columns: list[Column[Level]] = [
        what(lambda level: level.asked.series),
        whole("k", lambda level: level.dose),
        whole("seeds", lambda level: level.num_seeds),
        fields(lambda level: level.asked.series._asdict()),
        fields(lambda level: {"dose": level.dose, "num_seeds": level.num_seeds}),
        *_counted("all concepts"),
        *_counted(SEVERAL, "several_"),
        whole("questions", lambda level: level.several.num_questions, group=SEVERAL),
        share("if independent %", lambda level: level.several.strict_if_independent, group=SEVERAL),
    ]
    return Declared(
        "concepts",
        "Concept by concept: soft and strict",
        "Soft: the share of a concept's questions that are right, mean over concepts. Strict: "
        "concepts with every question right; none where not all questions of the split were "
        "asked. If independent: the strict share to expect if as many right answers fell on "
        "questions whatever their concept; what is above it is knowledge of concepts. A concept "
        "with one question counts the same either way, so those with more stand apart. k = 0: "
        f"before inoculation, or without any. {INTERVAL}, over concepts and seeds.",
        columns,
        runs=lambda level: level.asked.runs(level.dose),
    ).of([Level(asked, dose) for asked in gathered(results).asked for dose in asked.answers])


def _counted(group: str, prefix: str = "") -> list[Column[Level]]:
    def part(level: Level) -> Level:
        return level.several if prefix else level

    def bounds(name: str) -> str:
        return f"{prefix}{name} {prefix}{name}_ci_low {prefix}{name}_ci_high"

    names = "num_questions accuracy strict_if_independent".split()
    return [
        whole("concepts", lambda x: part(x).num_concepts, f"{prefix}num_concepts", group),
        fields(lambda x: {f"{prefix}{name}": getattr(part(x), name) for name in names}),
        accuracy("soft %", lambda x: part(x).soft, bounds("soft"), group),
        accuracy("strict %", lambda x: part(x).strict, bounds("strict"), group),
    ]


def known(results: Results) -> list[str]:
    """What each model knows at its largest dose, in a sentence."""
    return [_sentence(Level(asked, asked.last).several) for asked in gathered(results).asked]


def left_out(results: Results) -> list[str]:
    """Sets that are not counted by concept, and why."""
    found = gathered(results)
    probes = dict.fromkeys(one.series.probe for one in found.few)
    few = (
        f"Not counted by concept, because under {FEW} concepts have more than one question: "
        f"{', '.join(probes)}."
    )
    return [*([few] if probes else []), *found.unread]


def _sentence(level: Level) -> str:
    series, soft, strict = level.asked.series, level.soft, level.strict
    after = "" if level.dose == UNTRAINED else f" after k = {count(level.dose)}"
    split = f" ({series.report_split})" if series.report_split else ""
    text = (
        f"Asked several times about each of {count(level.num_concepts)} concepts of "
        f"{series.probe}{split}, {series.model}{after} was right on "
        f"{with_facts(soft.value, between(soft.ci_low, soft.ci_high))} of a concept's questions on "
        "average"
    )
    if strict is None:
        return f"{text}."
    whole = with_facts(strict.value, between(strict.ci_low, strict.ci_high))
    expected = f"expected were {percent(level.strict_if_independent)}%"
    return (
        f"{text}, and on all of them for {whole} of the concepts; {expected} if right answers fell "
        "on any questions alike."
    )


def _crossed(by_seed: list[list[float]]) -> Estimate:
    """Mean over concepts and seeds."""
    terms = [Term(1.0, {seed: np.array(own) for seed, own in enumerate(by_seed)})]
    return Estimate(*sum_interval(terms))
