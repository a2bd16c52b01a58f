"""Grids of predictions over all pairs of values: what the runs left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, ClassVar, Literal, TypeVar

from probelight.io.documents import STRICT, typed
from probelight.io.escaping import all_visible, visible
from probelight.reports.published import published_size_errors
from probelight.reports.released import paper_model
from probelight.results.load import GRID_FILE, Results, UnreadableResultError
from probelight.results.row import Row

T = TypeVar("T")
Matrix = tuple[tuple[T | None, ...], ...]

AGE_PANELS = ("A", "B", "C", "D")
SIZES = "sizes"
TIE = "tie"
# Talmor et al. 2020: sections 3.1 and 4.1 for roberta-large, table 2 for the others.
PAPER_ACCURACY = {
    ("roberta-large", "A"): 0.98,
    ("roberta-large", "B"): 0.76,
    ("roberta-large", "D"): 0.12,
    ("roberta-base", "A"): 0.68,
    ("bert-large-uncased-whole-word-masking", "A"): 0.70,
    ("bert-large-uncased", "A"): 0.50,
    ("bert-base-uncased", "A"): 0.49,
}
PAPER_WORDS = {("roberta-large", "C"): "always older"}
# Table 4 of the paper: the pairs (OBJ-1, OBJ-2) that roberta-large got wrong, of 56.
PAPER_SIZES_MODEL = "roberta-large"
PAPER_SIZES_WRONG = published_size_errors()


@dataclass(frozen=True, kw_only=True)
class GridFile:
    """What grid.json holds: the answers to all ordered pairs of values in one sentence.

    Attributes:
        name: "A" to "D" (figure 3), or "sizes" (table 4).
        axes: What the first value (rows) and the second (columns) are.
        values: Ages or years, or the names of objects.
        probability: p(first candidate) of each pair; None on the diagonal.
        prediction: Index of the candidate said; None on the diagonal and where both are as likely.
        answer: Index of the right one.
    """

    __pydantic_config__: ClassVar = {**STRICT, "extra": "ignore"}

    name: str
    title: str
    wording: str
    axes: tuple[str, str]
    candidates: tuple[str, str]
    values: tuple[Any, ...]
    probability: Matrix[float]
    prediction: Matrix[Literal[0, 1]]
    answer: Matrix[Literal[0, 1]]


@dataclass(frozen=True, kw_only=True)
class Grid(GridFile):
    """A grid, and the run that it is of.

    Attributes:
        model: The model that answered.
        rows: The run's measurements by metric.
        paper_model: The paper's name of the checkpoint that the run recorded; None for another.
        control_of: The model whose architecture with random weights it is; empty for any other.
    """

    model: str
    rows: Mapping[str, Row]
    paper_model: str | None = None
    control_of: str = ""

    @property
    def accuracy(self) -> Row:
        """Share of right answers, without the diagonal."""
        return self.rows["accuracy"]

    @property
    def first_share(self) -> float | None:
        """How often the first candidate was said."""
        return self.value(f"share_{self.candidates[0]}")

    def value(self, metric: str) -> float | None:
        """A measurement, None where it was not made."""
        row = self.rows.get(metric)
        return None if row is None else row.value

    def said(self, row: int, column: int) -> str | None:
        """The candidate said of a pair, "tie" where both are as likely, None where none was."""
        choice = self.prediction[row][column]
        if choice is None:
            return None if self.probability[row][column] is None else TIE
        return self.candidates[choice]

    def credit(self, row: int, column: int) -> float:
        """1 where the answer of a pair is right, 1/2 where it is a tie, else 0."""
        choice = self.prediction[row][column]
        if choice is None:
            return 0.0 if self.probability[row][column] is None else 0.5
        return float(choice == self.answer[row][column])

    @property
    def span(self) -> str:
        """The values in a few words: "15–105", "15–105 in steps of 5"."""
        if self.name == SIZES:
            return f"{len(self.values)} objects"
        step = self.values[1] - self.values[0]
        steps = "" if step == 1 else f" in steps of {step}"
        return f"{self.values[0]}–{self.values[-1]}{steps}"

    @property
    def published(self) -> str:
        """What the paper says of this model's panel in its own wording; empty where nothing."""
        if self.wording != "paper":
            return ""
        if self.name == SIZES and self.paper_model == PAPER_SIZES_MODEL:
            return f"{100 * (1 - len(PAPER_SIZES_WRONG) / 56):.1f}"
        panel = (self.paper_model or "", self.name)
        found, words = PAPER_ACCURACY.get(panel), PAPER_WORDS.get(panel, "")
        return words if found is None else f"{100 * found:.0f}"


def grids(results: Results) -> list[Grid]:
    """Every grid of the results that can be read, by model, wording, values and panel."""
    return _read(results)[0]


def unread(results: Results) -> list[str]:
    """A sentence about each grid that cannot be read."""
    return _read(results)[1]


def paper_says(grid: Grid, row: int, column: int) -> int | None:
    """The candidate that table 4 of the paper has for a pair; None where it has none."""
    answer = grid.answer[row][column]
    if grid.name != SIZES or grid.paper_model != PAPER_SIZES_MODEL or answer is None:
        return None
    wrong = (grid.values[row], grid.values[column]) in PAPER_SIZES_WRONG
    return 1 - answer if wrong else answer


def _read(results: Results) -> tuple[list[Grid], list[str]]:
    found, damaged = list[Grid](), list[str]()
    for run in results.of("grid"):
        rows = {row.metric: row for row in run.rows}
        try:
            held = results.read(run, GRID_FILE)
            if held is not None and "accuracy" in rows:
                grid = _grid(held, f"{run.path}/{GRID_FILE}")
                own = {part.name: getattr(grid, part.name) for part in fields(grid)}
                found.append(
                    Grid(
                        **own,
                        model=run.model,
                        rows=rows,
                        paper_model=paper_model(run),
                        control_of=run.source.control_of,
                    )
                )
        except UnreadableResultError as error:
            damaged.append(f"Not shown: {visible(str(error))}.")
    key = attrgetter("model", "wording")
    return sorted(found, key=lambda g: (*key(g), g.name == SIZES, g.name, g.span)), damaged


def _grid(held: object, place: str) -> GridFile:
    grid = typed(GridFile, all_visible(held), place, UnreadableResultError)
    size = len(grid.values)
    for name in ("probability", "prediction", "answer"):
        if [len(row) for row in getattr(grid, name)] != [size] * size:
            raise UnreadableResultError(f"{place}: `{name}` is not {size} rows of {size} values")
    kind = str if grid.name == SIZES else int
    if size < 2 or any(type(value) is not kind for value in grid.values):
        raise UnreadableResultError(f"{place}: `values` are not those of grid {grid.name}")
    return grid
