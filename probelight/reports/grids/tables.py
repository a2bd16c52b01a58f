"""Tables of the predictions over all pairs of values."""

from __future__ import annotations

from typing import NamedTuple

from probelight.reports.grids.facts import PAPER_SIZES_MODEL, SIZES, Grid, grids, paper_says
from probelight.reports.kit.columns import (
    ACCURACY,
    SIZE,
    accuracy,
    fields,
    number,
    share,
    size,
    text,
)
from probelight.reports.kit.table import Across, Cell, Column, Declared, Heading, Table
from probelight.reports.kit.text import ABSENT, INTERVAL, way
from probelight.results.load import Results


class Pair(NamedTuple):
    """Two objects of a grid, by their places."""

    grid: Grid
    row: int
    column: int


def grid_table(results: Results) -> Table | None:
    """Accuracy of each panel, beside the paper's."""
    columns: list[Column[Grid]] = [
        text("model", lambda g: g.model, "model", _how),
        fields(lambda g: {"wording": g.wording, "perturbation": g.name, "title": g.title}),
        text("grid", lambda g: g.title if g.name == SIZES else f"{g.name}: {g.title}"),
        text("values", lambda g: g.span, "values"),
        accuracy("accuracy %", lambda g: g.accuracy, ACCURACY),
        number("paper", lambda g: g.published, lambda said: said or ABSENT, "paper"),
        share("says the first answer %", lambda g: g.first_share, "first_share"),
        share("orders told apart %", lambda g: g.value("order_accuracy"), "order_accuracy"),
        size("n", lambda g: g.accuracy, SIZE),
    ]
    return Declared(
        "grid",
        "Predictions over all pairs of values",
        f"{INTERVAL} (by pairs in both orders); pairs of a grid share their values, so it is too "
        "narrow. Chance is 50%. First answers: younger, smaller. Orders told apart: the pairs "
        "whose first answer is more probable in the order where it is right; it does not suffer "
        "when a model always says one word, but it says something only beside the same model with "
        "random weights, which may be far from 50% too. Paper: Talmor et al. 2020, who do not say "
        "over which values they ran; of the released wording there is no published number.",
        columns,
        order=f"model wording perturbation title values {ACCURACY} {SIZE}",
    ).of(grids(results))


def _how(grid: Grid) -> str:
    """The wording, and how the words got their scores where no mask gave them."""
    return ", ".join(filter(None, (f"{grid.wording} wording", way(grid.accuracy.mode))))


def sizes_table(results: Results) -> Table | None:
    """Table 4: the answer to each pair of objects."""
    found = [grid for grid in grids(results) if grid.name == SIZES]
    pairs = [
        Pair(grid, row, column)
        for grid in found
        for row in range(len(grid.values))
        for column in range(len(grid.values))
        if grid.said(row, column) is not None and grid.answer[row][column] is not None
    ]
    columns: list[Column[Pair]] = [
        text(
            "model", lambda pair: pair.grid.model, "model wording", lambda pair: pair.grid.wording
        ),
        text("size of a …", lambda pair: str(pair.grid.values[pair.row])),
    ]
    across: Across[Pair] = Across(
        lambda pair: str(pair.grid.values[pair.column]),
        lambda pair: (id(pair.grid), pair.row),
        lambda name: [Column(Heading(name, "left", "than the size of a …"), _said, _answer)],
        list(dict.fromkeys(str(value) for grid in found for value in grid.values)),
    )
    paper = any(grid.paper_model == PAPER_SIZES_MODEL for grid in found)
    return Declared(
        "sizes_grid",
        "Which of two objects is larger?",
        "Objects stand from small to large, so “smaller” is right above the diagonal and "
        "“larger” below; ✗ marks a wrong answer, a tie counts one half. Beside each answer stands "
        "its probability among the two."
        + (" † marks where the paper's table 4 has another answer." if paper else ""),
        columns,
        across,
    ).of(pairs)


def _said(pair: Pair) -> Cell:
    grid, row, column = pair
    choice, p = grid.prediction[row][column], grid.probability[row][column] or 0.0
    wrong = "" if grid.credit(row, column) else " ✗"
    other = " †" if paper_says(grid, row, column) not in (None, choice) else ""
    text = f"{grid.said(row, column)}{wrong}{other}"
    return Cell(text, f"{1 - p if choice == 1 else p:.2f}")


def _answer(pair: Pair) -> dict[str, object]:
    grid, row, column = pair
    answer, paper = grid.answer[row][column], paper_says(grid, row, column)
    return {
        "first": grid.values[row],
        "second": grid.values[column],
        f"p_{grid.candidates[0]}": grid.probability[row][column],
        "prediction": grid.said(row, column),
        "answer": None if answer is None else grid.candidates[answer],
        "correct": grid.credit(row, column),
        "paper": None if paper is None else grid.candidates[paper],
    }
