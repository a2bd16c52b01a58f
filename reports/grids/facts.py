"""Grids of predictions over all pairs of values: what the runs left, and its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reports.kit.layout import (
    ABSENT,
    INTERVAL,
    Cell,
    Column,
    Table,
    accuracy_record,
    between,
    percent,
    size_cell,
)
from reports.kit.paper_identity import paper_model
from reports.kit.published import published_size_errors
from results.load import Results, Row, Run

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


@dataclass(frozen=True)
class Grid:
    """One model's answers to all ordered pairs of values in one sentence.

    Attributes:
        name: "A" to "D" (figure 3), or "sizes" (table 4).
        axes: What the first value (rows) and the second (columns) are.
        probability: p(first candidate) of each pair; None on the diagonal.
        prediction: Index of the candidate said; None on the diagonal and where both are as likely.
        answer: Index of the right one.
        rows: The run's measurements by metric.
        paper_model: The paper's name of the checkpoint that the run recorded; None for another.
    """

    model: str
    name: str
    title: str
    wording: str
    axes: tuple[str, str]
    candidates: tuple[str, str]
    values: tuple[Any, ...]
    probability: Sequence[Sequence[float | None]]
    prediction: Sequence[Sequence[int | None]]
    answer: Sequence[Sequence[int | None]]
    rows: Mapping[str, Row]
    paper_model: str | None = None

    @property
    def accuracy(self) -> Row:
        """Share of right answers, without the diagonal."""
        return self.rows["accuracy"]

    @property
    def first_share(self) -> Row | None:
        """How often the first candidate was said."""
        return self.rows.get(f"share_{self.candidates[0]}")

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
        """What the paper says of this model's panel; empty where it says nothing."""
        if self.name == SIZES and self.paper_model == PAPER_SIZES_MODEL:
            return f"{100 * (1 - len(PAPER_SIZES_WRONG) / 56):.1f}"
        panel = (self.paper_model or "", self.name)
        found, words = PAPER_ACCURACY.get(panel), PAPER_WORDS.get(panel, "")
        return words if found is None else f"{100 * found:.0f}"


def grids(results: Results) -> list[Grid]:
    """Every grid of the results, by model, wording, values and panel."""
    found = [grid for run in results.of("grid") if (grid := _grid(results, run)) is not None]
    return sorted(found, key=lambda g: (g.model, g.wording, g.name == SIZES, g.name, g.span))


def grid_table(results: Results) -> Table | None:
    """Accuracy of each panel, beside the paper's."""
    found = grids(results)
    if not found:
        return None
    heads = (
        Column("model", "left"),
        Column("grid", "left"),
        Column("values", "left"),
        Column("accuracy %"),
        Column("paper"),
        Column("says the first answer %"),
        Column("orders told apart %"),
        Column("n"),
    )
    return Table(
        "grid",
        "Predictions over all pairs of values",
        f"{INTERVAL} (by pairs in both orders); pairs of a grid share their values, so it is too "
        "narrow. Chance is 50%. First answers: younger, smaller. Orders told apart: the pairs "
        "whose first answer is more probable in the order where it is right; it does not suffer "
        "when a model always says one word, but it says something only beside the same model with "
        "random weights, which may be far from 50% too. Paper: Talmor et al. 2020, who do not say "
        "over which values they ran; of the released wording there is no published number.",
        heads,
        tuple(_accuracy_cells(grid) for grid in found),
        tuple(_accuracy_fields(grid) for grid in found),
    )


def sizes_table(results: Results) -> Table | None:
    """Table 4: the answer to each pair of objects."""
    found = [grid for grid in grids(results) if grid.name == SIZES]
    if not found:
        return None
    columns = list(dict.fromkeys(str(value) for grid in found for value in grid.values))
    heads = [Column("model", "left"), Column("size of a …", "left")]
    heads += [Column(name, "left", group="than the size of a …") for name in columns]
    rows = [
        (Cell(grid.model, grid.wording), Cell(str(value)), *_size_cells(grid, i, columns))
        for grid in found
        for i, value in enumerate(grid.values)
    ]
    return Table(
        "sizes_grid",
        "Which of two objects is larger?",
        "Objects stand from small to large, so “smaller” is right above the diagonal and "
        "“larger” below; ✗ marks a wrong answer, a tie counts one half. Beside each answer stands "
        "its probability among the two."
        + (" † marks where the paper's table 4 has another answer." if _any_paper(found) else ""),
        tuple(heads),
        tuple(rows),
        tuple(record for grid in found for record in _size_records(grid)),
    )


def paper_says(grid: Grid, row: int, column: int) -> int | None:
    """The candidate that table 4 of the paper has for a pair; None where it has none."""
    answer = grid.answer[row][column]
    if grid.name != SIZES or grid.paper_model != PAPER_SIZES_MODEL or answer is None:
        return None
    wrong = (grid.values[row], grid.values[column]) in PAPER_SIZES_WRONG
    return 1 - answer if wrong else answer


def _grid(results: Results, run: Run) -> Grid | None:
    held = results.read(run, str(run.facts.get("grid", "grid.json")))
    rows = {row.metric: row for row in run.rows}
    if held is None or "accuracy" not in rows:
        return None
    return Grid(
        model=run.model,
        name=held["name"],
        title=held["title"],
        wording=held["wording"],
        axes=tuple(held["axes"]),
        candidates=tuple(held["candidates"]),
        values=tuple(held["values"]),
        probability=held["probability"],
        prediction=held["prediction"],
        answer=held["answer"],
        rows=rows,
        paper_model=paper_model(run.model, run.facts),
    )


def _any_paper(found: Sequence[Grid]) -> bool:
    return any(grid.paper_model == PAPER_SIZES_MODEL for grid in found)


def _accuracy_cells(grid: Grid) -> tuple[Cell, ...]:
    row, share, order = grid.accuracy, grid.first_share, grid.rows.get("order_accuracy")
    name = grid.title if grid.name == SIZES else f"{grid.name}: {grid.title}"
    return (
        Cell(grid.model, f"{grid.wording} wording"),
        Cell(name),
        Cell(grid.span),
        Cell(percent(row.value), between(row.ci_low, row.ci_high)),
        Cell((grid.published if grid.wording == "paper" else "") or ABSENT),
        Cell(percent(None if share is None else share.value)),
        Cell(percent(None if order is None else order.value)),
        size_cell(row),
    )


def _accuracy_fields(grid: Grid) -> dict[str, object]:
    share, order = grid.first_share, grid.rows.get("order_accuracy")
    return {
        "model": grid.model,
        "wording": grid.wording,
        "perturbation": grid.name,
        "title": grid.title,
        "values": grid.span,
        **accuracy_record(grid.accuracy),
        "paper": grid.published if grid.wording == "paper" else "",
        "first_share": None if share is None else share.value,
        "order_accuracy": None if order is None else order.value,
    }


def _size_cells(grid: Grid, row: int, columns: Sequence[str]) -> list[Cell]:
    places = {str(value): place for place, value in enumerate(grid.values)}
    cells = []
    for name in columns:
        column = places.get(name)
        said = None if column is None else grid.said(row, column)
        p = None if column is None else grid.probability[row][column]
        if column is None or said is None or p is None:
            cells.append(Cell(ABSENT))
            continue
        choice = grid.prediction[row][column]
        wrong = "" if grid.credit(row, column) else " ✗"
        other = " †" if paper_says(grid, row, column) not in (None, choice) else ""
        cells.append(Cell(f"{said}{wrong}{other}", f"{1 - p if choice == 1 else p:.2f}"))
    return cells


def _size_records(grid: Grid) -> list[dict[str, object]]:
    records = []
    for i, first in enumerate(grid.values):
        for j, second in enumerate(grid.values):
            said, answer = grid.said(i, j), grid.answer[i][j]
            if said is None or answer is None:
                continue
            paper = paper_says(grid, i, j)
            records.append(
                {
                    "model": grid.model,
                    "wording": grid.wording,
                    "first": first,
                    "second": second,
                    f"p_{grid.candidates[0]}": grid.probability[i][j],
                    "prediction": said,
                    "answer": grid.candidates[answer],
                    "correct": grid.credit(i, j),
                    "paper": None if paper is None else grid.candidates[paper],
                }
            )
    return records
