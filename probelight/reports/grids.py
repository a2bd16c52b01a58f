"""Predictions over all pairs of values: ages and years, sizes (Talmor et al. 2020, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, product
from typing import Any, ClassVar, Literal, TypeVar

from probelight.io.escaping import all_visible, visible
from probelight.io.settings import STRICT, typed
from probelight.reports import table as tables
from probelight.reports.numbers import INTERVAL, listed, scored_by
from probelight.reports.published import (
    ScoreKey,
    paper_model,
    published_scores,
    published_size_errors,
)
from probelight.reports.table import SIZE, Cell, Column, Table
from probelight.reports.zero_shot.scores import STUCK
from probelight.results.load import GRID_FILE, Run, RunSet, UnreadableResultError
from probelight.results.row import Row

T = TypeVar("T")
Matrix = tuple[tuple[T | None, ...], ...]

AGE_PANELS = ("A", "B", "C", "D")
SIZES = "sizes"
# Talmor et al. 2020, section 4.1, of roberta-large; the accuracies of panel A are in table 2.
PAPER_PANELS = {"B": "76", "C": "always older", "D": "12", SIZES: "83.9"}  # 47 of 56 pairs
PAPER_SIZES_MODEL = "roberta-large"  # of table 4 as well
MOST_TOLD = 6  # sentences of the paragraph


@dataclass(frozen=True, kw_only=True)
class GridFile:
    """The content of grid.json: answers to all ordered pairs of values in one sentence.

    Rows of the matrices are first values, columns second ones; on the diagonal is None.
    """

    __pydantic_config__: ClassVar = {**STRICT, "extra": "ignore"}

    name: str  # "A" to "D" (figure 3), or "sizes" (table 4)
    title: str
    wording: str
    axes: tuple[str, str]  # what the first and the second value are
    candidates: tuple[str, str]
    values: tuple[Any, ...]  # ages or years, or names of objects
    probability: Matrix[float]  # of the first candidate
    prediction: Matrix[Literal[0, 1]]  # index of a candidate; None for a tie
    answer: Matrix[Literal[0, 1]]  # index of the right one


@dataclass(frozen=True, kw_only=True)
class Grid(GridFile):
    """A grid and its run."""

    run: Run

    @property
    def accuracy(self) -> Row:
        """The share of right answers, without the diagonal."""
        return next(row for row in self.run.rows if row.metric == "accuracy")

    def value(self, metric: str) -> float | None:
        """Return a metric of the run; None if it was not measured."""
        return next((row.value for row in self.run.rows if row.metric == metric), None)

    @property
    def first_share(self) -> float | None:
        """How often the model said the first candidate."""
        return self.value(f"share_{self.candidates[0]}")

    @property
    def span(self) -> str:
        """The values in a few words: "15–105", "15–105 in steps of 5"."""
        if self.name == SIZES:
            return f"{len(self.values)} objects"
        step = self.values[1] - self.values[0]
        steps = "" if step == 1 else f" in steps of {step}"
        return f"{self.values[0]}–{self.values[-1]}{steps}"

    @property
    def in_table_4(self) -> bool:
        """Whether table 4 of the paper has this model's answers."""
        return self.name == SIZES and paper_model(self.run) == PAPER_SIZES_MODEL

    @property
    def published(self) -> str:
        """The paper's result of this panel, model and wording; empty if there is none."""
        model = paper_model(self.run) or ""
        if self.wording != "paper":
            return ""
        if self.name == AGE_PANELS[0]:
            score = published_scores("age_comparison").get(model, {}).get(ScoreKey("zero_shot"))
            return "" if score is None else f"{100 * score:.0f}"
        return PAPER_PANELS.get(self.name, "") if model == PAPER_SIZES_MODEL else ""

    def pairs(self) -> Iterator[dict[str, Any]]:
        """Yield a record per pair that was asked; a tie counts 1/2."""
        wrong_in_paper = published_size_errors() if self.in_table_4 else ()
        for (i, first), (j, second) in product(enumerate(self.values), repeat=2):
            p, choice, answer = self.probability[i][j], self.prediction[i][j], self.answer[i][j]
            if answer is None or (p is None and choice is None):
                continue
            paper = self.candidates[answer != ((first, second) in wrong_in_paper)]
            yield {
                "_row": i,
                "_column": j,
                "first": first,
                "second": second,
                f"p_{self.candidates[0]}": p,
                "prediction": "tie" if choice is None else self.candidates[choice],
                "answer": self.candidates[answer],
                "correct": 0.5 if choice is None else float(choice == answer),
                "paper": paper if wrong_in_paper else None,
            }


def grids(results: RunSet) -> list[Grid]:
    """Return all grids that can be read, sorted by model, wording and panel."""
    return _read_grids(results)[0]


@lru_cache(maxsize=2)
def _read_grids(results: RunSet) -> tuple[list[Grid], list[str]]:
    """Return the grids, and a sentence on each that cannot be read."""
    read_grids, problems = list[Grid](), list[str]()
    for run in results.of("grid"):
        try:
            if (content := results.read(run, GRID_FILE)) is not None:
                read_grids.append(_checked_grid(content, run))
        except UnreadableResultError as error:
            problems.append(f"Not shown: {visible(str(error))}.")
    read_grids.sort(key=lambda g: (g.run.model, g.wording, g.name, g.span))
    return read_grids, problems


def _checked_grid(content: object, run: Run) -> Grid:
    path = f"{run.path}/{GRID_FILE}"
    file = typed(GridFile, all_visible(content), path, UnreadableResultError)
    grid = Grid(**vars(file), run=run)
    size = len(grid.values)
    for name in ("probability", "prediction", "answer"):
        if [len(row) for row in getattr(grid, name)] != [size] * size:
            raise UnreadableResultError(f"{path}: `{name}` must be {size} rows of {size} values")
    kind = str if grid.name == SIZES else int
    if size < 2 or any(type(value) is not kind for value in grid.values):
        raise UnreadableResultError(f"{path}: `values` do not fit grid {grid.name}")
    return grid


def grid_table(results: RunSet) -> Table | None:
    """Make the table of the accuracy on each panel, with the paper's."""
    records = [
        {
            "model": grid.run.model,
            "wording": grid.wording,
            "perturbation": grid.name,
            "title": grid.title,
            "values": grid.span,
            "accuracy": grid.accuracy.value,
            **{name: getattr(grid.accuracy, name) for name in f"ci_low ci_high {SIZE}".split()},
            "paper": grid.published or None,
            "first_share": grid.first_share,
            "order_accuracy": grid.value("order_accuracy"),
            "_how": ", ".join(
                filter(None, (f"{grid.wording} wording", scored_by(grid.accuracy.mode)))
            ),
            "_grid": grid.title if grid.name == SIZES else f"{grid.name}: {grid.title}",
            "_runs": grid.run.key,
        }
        for grid in grids(results)
    ]
    return tables.table(
        "grid",
        "Predictions over all pairs of values",
        f"{INTERVAL} (by pairs in both orders). It is too narrow, because pairs of a grid share "
        "their values. Chance is 50%. First answers: younger, smaller. Orders distinguished: the "
        "pairs whose first answer is more probable in the order in which it is right. Compare this "
        "with the same model with random weights, which may be far from 50%. Paper: Talmor et al. "
        "2020, which does not say which values it used.",
        records,
        [
            tables.text("model", "model", "_how"),
            tables.text("grid", "_grid"),
            tables.text("values", "values"),
            tables.accuracy("accuracy %"),
            tables.number("paper", "paper", str),
            tables.share("says the first answer %", "first_share"),
            tables.share("orders distinguished %", "order_accuracy"),
            tables.size(),
        ],
    )


def sizes_table(results: RunSet) -> Table | None:
    """Make the table of the answers to all pairs of objects (table 4 of the paper)."""
    size_grids = [grid for grid in grids(results) if grid.name == SIZES]

    def answer(row: Any) -> Cell:
        wrong = "" if row.correct else " ✗"
        mark = " †" if row.paper not in (None, row.prediction) else ""
        p = row.p_smaller or 0.0
        return Cell(f"{row.prediction}{wrong}{mark}", f"{max(p, 1 - p):.2f}")

    return tables.table(
        "sizes_grid",
        "Which of two objects is larger?",
        "Objects go from small to large, so “smaller” is right above the diagonal and “larger” "
        "below. ✗ marks a wrong answer; a tie counts one half. With each answer comes its "
        "probability among the two. † marks answers that differ from the paper's table 4.",
        [
            {
                "model": grid.run.model,
                "wording": grid.wording,
                **pair,
                "_place": number,
                "_runs": grid.run.key,
            }
            for number, grid in enumerate(size_grids)
            for pair in grid.pairs()
        ],
        [tables.text("model", "model", "wording"), tables.text("size of a …", "first")],
        rows="_place first",
        across="second",
        each=lambda name: [Column(name, answer, "left", "than the size of a …")],
        values=list(dict.fromkeys(value for grid in size_grids for value in grid.values)),
    )


def grids_summary(results: RunSet) -> str:
    """Return which models say one word whatever the values, and which grids are not shown."""
    read_grids, problems = _read_grids(results)
    sentences = []
    for (model, wording), members in groupby(
        read_grids, key=lambda grid: (grid.run.model, grid.wording)
    ):
        stuck: dict[str, list[str]] = {}
        for grid in members:
            first = grid.first_share
            if first is not None and not 1 - STUCK < first < STUCK:
                stuck.setdefault(grid.candidates[first < STUCK], []).append(grid.name)
        if stuck:
            words = listed([f"“{word}” ({', '.join(names)})" for word, names in stuck.items()])
            sentences.append(
                f"Whatever the values ({wording} wording), {model} almost always says {words}."
            )
    if (num_more := len(sentences) - MOST_TOLD) > 0:
        sentences[MOST_TOLD:] = [f"So do {num_more} more."]
    return " ".join([*sentences, *problems])
