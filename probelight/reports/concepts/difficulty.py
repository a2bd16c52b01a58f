"""Probe accuracy by hops and distractors (Richardson & Sabharwal 2020, figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from probelight.reports.concepts.facts import UNTRAINED, gathered
from probelight.reports.inoculation.doses import doses
from probelight.reports.inoculation.runs import ON_REPORTED, inoculations
from probelight.reports.kit.columns import field, fields, share, text, whole
from probelight.reports.kit.table import Across, Column, Declared, Table
from probelight.reports.kit.text import count
from probelight.results.load import Results
from probelight.results.row import Subset

RANKS = {"random": 0, "sister": 1, "up/down": 2}  # the paper's order; others come behind
_UP_DOWN = ("hypernym", "hyponym")
_BEFORE, _AFTER = "difficulty_accuracy_before", "difficulty_accuracy"


class Block(NamedTuple):
    """Heat maps that stand side by side: one model, as it was taught one original task or none.

    Attributes:
        selection: "paper" where the checkpoints were chosen on the reported items.
    """

    model: str
    original_task: str = ""
    selection: str = ""

    @property
    def name(self) -> str:
        """How people call it."""
        origin = f" · originally {self.original_task}" if self.original_task else ""
        warning = " · chosen on the reported items" if self.selection == ON_REPORTED else ""
        return f"{self.model}{origin}{warning}"


class Questions(NamedTuple):
    """A row of a heat map: the questions of one probe whose answer lies as many hops away."""

    probe: str
    report_split: str
    hops: int

    @property
    def name(self) -> str:
        """How people call it."""
        split = f" ({self.report_split})" if self.report_split else ""
        hops = "1 hop" if self.hops == 1 else f"{self.hops} hops"
        return f"{self.probe.replace('_', ' ')}{split}, {hops}"


class WrongAnswers(NamedTuple):
    """A column of a heat map: what the wrong answers are and how many edges away."""

    rank: int
    kind: str
    distance: int

    @classmethod
    def of(cls, difficulty: Subset) -> WrongAnswers:
        """The column of a difficulty; up and down stand together, as in the paper."""
        kind = difficulty["distractor_type"]
        kind = "up/down" if kind in _UP_DOWN else kind
        return cls(RANKS.get(kind, len(RANKS)), kind, difficulty["distractor_hops"])

    @property
    def name(self) -> str:
        """How people call it."""
        return f"{self.kind} {self.distance}" if self.distance else self.kind


class Shade(NamedTuple):
    """A cell: accuracy averaged over seeds, items of each seed, and the keys of its runs."""

    accuracy: float
    num_items: int
    runs: tuple[str, ...] = ()


Cell = tuple[Questions, WrongAnswers]
HeatMap = Mapping[Cell, Shade]


def dose_title(dose: int, inoculated: bool = True) -> str:
    """Heading of a heat map."""
    if dose:
        return f"k = {count(dose)}"
    return "before (k = 0)" if inoculated else "before any training"


def heat_maps(results: Results) -> Mapping[Block, Mapping[int, HeatMap]]:
    """For each model and original task the heat maps by dose, 0 is before inoculation."""
    import pandas as pd

    place = ["block", "dose", "cell"]
    asked = pd.DataFrame(_asked(results), columns=[*place, "run", "right", "num_items"])
    seeds = asked.groupby([*place, "run"]).sum()
    seeds["accuracy"] = seeds.pop("right") / seeds["num_items"]
    found: dict[Block, dict[int, dict[Cell, Shade]]] = {}
    runs = asked.groupby(place)["run"].unique()
    for at, size, accuracy in seeds.groupby(place).mean().itertuples():
        block, dose, cell = at
        shade = Shade(accuracy, round(size), tuple(sorted(runs[at])))
        found.setdefault(block, {}).setdefault(dose, {})[cell] = shade
    # Those that were inoculated first: of many, a figure leaves out others.
    return dict(sorted(found.items(), key=lambda own: max(own[1]) == UNTRAINED))


def _asked(results: Results) -> Iterator[tuple[Block, int, Cell, str, float, int]]:
    """(block, dose, cell, key of the run, right items, items) of each difficulty of each run."""
    runs = [
        (series, dose, metric, run)
        for series, line in doses(inoculations(results)).items()
        # The model before inoculation is the same whatever the dose.
        for dose, metric, one in [(0, _BEFORE, line[0]), *((one.dose, _AFTER, one) for one in line)]
        for run in one.runs
    ]
    for series, dose, metric, run in runs:
        block = Block(series.model, series.original_task, series.selection)
        for difficulty, rows in run.parts.items():
            if difficulty.kind != "difficulty" or (row := rows.get(metric)) is None:
                continue
            questions = Questions(series.probe, series.report_split, difficulty["hops"])
            cell = questions, WrongAnswers.of(difficulty)  # hypernyms and hyponyms share one
            size = row.num_items or 1
            yield block, dose, cell, run.run.key, row.value * size, size
    yield from _asked_once(results)


def _asked_once(results: Results) -> Iterator[tuple[Block, int, Cell, str, float, int]]:
    """The same of zero-shot runs, question by question, from their predictions."""
    for asked in gathered(results).asked:
        if asked.last != UNTRAINED:
            continue
        series, [run] = asked.series, asked.runs()
        for place, question in enumerate(asked.questions):
            if (difficulty := question.difficulty) is not None:
                questions = Questions(series.probe, series.report_split, difficulty["hops"])
                cell = questions, WrongAnswers.of(difficulty)
                credit = asked.credit(UNTRAINED, place)
                yield Block(series.model), UNTRAINED, cell, run, credit, 1


class Place(NamedTuple):
    """A cell of a heat map, and where it stands."""

    block: Block
    questions: Questions
    wrong: WrongAnswers
    dose: int
    shade: Shade


def difficulty_table(results: Results) -> Table | None:
    """The numbers of the heat maps: a row is what is asked, a column a dose."""
    found = heat_maps(results)
    places = [
        Place(block, *place, dose, maps[dose][place])
        for block, maps in found.items()
        for place in sorted({place for heat in maps.values() for place in heat})
        for dose in maps
        if place in maps[dose]
    ]
    columns: list[Column[Place]] = [
        text("model", lambda p: p.block.name),
        text("questions", lambda p: p.questions.name),
        text("wrong answers", lambda p: p.wrong.name),
        whole("n", lambda p: p.shade.num_items),
        fields(lambda p: {**p.block._asdict(), **p.questions._asdict()}),
        fields(lambda p: {"distractors": p.wrong.kind, "distractor_hops": p.wrong.distance}),
        field("dose", lambda p: p.dose),
    ]
    across: Across[Place] = Across(
        lambda p: p.dose,
        lambda p: (p.block, p.questions, p.wrong),
        lambda dose: [
            share(dose_title(dose), lambda p: p.shade.accuracy, "accuracy", "accuracy %"),
            field("num_items", lambda p: p.shade.num_items),
        ],
        sorted({place.dose for place in places}),
    )
    return Declared(
        "difficulty",
        "By hops and wrong answers",
        "Mean over seeds of the accuracy, of n items a seed; without inoculation it stands under k "
        "= 0. Hops: edges "
        "between the concept and the right answer. Wrong answers: what most of them are, and how "
        "many edges they lie from the concept; up/down are its hypernyms or hyponyms.",
        columns,
        across,
        runs=lambda p: p.shade.runs,
    ).of(places)
