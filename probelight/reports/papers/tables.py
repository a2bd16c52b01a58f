"""The tables of the section: the papers' own with ours beside, and a list of them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from probelight.reports.kit.columns import (
    accuracy,
    accuracy_cell,
    field,
    gap,
    number,
    share,
    shown,
    text,
    whole,
)
from probelight.reports.kit.table import Cell, Column, Declared, Table
from probelight.reports.kit.text import ABSENT, INTERVAL, percent
from probelight.reports.papers.beside import Beside, PaperTable
from probelight.reports.papers.registry import REGISTRY, rows_beside
from probelight.results.load import Results

_HOW = (
    "In the tables below a number of ours stands beside the printed one where it is of the very "
    "model (by its id on the Hub, or a released recording of it), measured on the released items "
    "in the same way; any other model stands in rows of its own. A table has the name of its csv "
    "file, which holds the paper's numbers of what was not measured too, as the file of this list "
    "has the papers' other tables."
)


@dataclass(frozen=True)
class Listed:
    """A table of a paper, and what of it these results hold.

    Attributes:
        rows: The rows that stand beside it.
        shown: Name of the table that has it; empty where none does.
    """

    table: PaperTable
    rows: Sequence[Beside]
    shown: str

    @property
    def held(self) -> str:
        """How many of its numbers have ours beside them."""
        printed = [row for row in self.rows if row.printed is not None]
        if not printed:
            return ""
        return f"{sum(row.ours is not None for row in printed)} of {len(printed)}"


def listed_table(results: Results) -> Table | None:
    """Which tables of the papers these results hold; None where they hold none of them."""
    found = [_listed(table, results) for table in REGISTRY]
    held = {one.table.paper for one in found if one.shown}
    columns: list[Column[Listed]] = [
        text("paper", lambda e: e.table.paper, "paper"),
        text("", lambda e: e.table.place, "place"),
        text("what it shows", lambda e: e.table.holds, "holds"),
        text("numbers with ours beside", lambda e: e.held or ABSENT),
        field("held", lambda e: e.held),
        text("table here", lambda e: e.shown or ABSENT),
        field("shown", lambda e: e.shown),
        text("command", lambda e: e.table.command or ABSENT, code=True),
        field("command", lambda e: e.table.command),
    ]
    return Declared(
        "papers",
        "The papers' tables, and which of them these results hold",
        _HOW,
        columns,
    ).of(
        found if held else [],
        [one for one in found if one.table.command and one.table.paper in held],
    )


def paper_tables(results: Results) -> list[Table]:
    """A table for each of the papers' that the results hold a number of."""
    made = (table_of(table, rows) for table, rows in rows_beside(results).items())
    return [table for table in made if table is not None]


def _listed(table: PaperTable, results: Results) -> Listed:
    rows = rows_beside(results).get(table, ())
    shown = table.name if rows else table.shown if table.is_shown(results) else ""
    return Listed(table, rows, shown)


def table_of(table: PaperTable, rows: Sequence[Beside]) -> Table | None:
    """A table of a paper with ours beside it; people see what belongs to what is here."""
    with_people = any(row.people is not None for row in rows)
    people: Column[Beside] = share("people %", lambda row: row.people, "people")
    columns: list[Column[Beside]] = [
        text("model", lambda row: row.model, "model", lambda row: row.about),
        field("about", lambda row: row.about),
        text("number", lambda row: row.name, "number"),
        accuracy("", lambda row: row.measured, "ours ci_low ci_high").hidden,
        shown("ours", lambda row: _signed(accuracy_cell(row.measured))),
        number("paper", lambda row: row.paper, lambda value: _minus(percent(value)), "paper"),
        gap(
            "ours − paper, points",
            lambda row: row.difference,
            "difference difference_ci_low difference_ci_high",
        ),
        text("the paper's lies", lambda row: row.lies or ABSENT),
        field("paper_lies", lambda row: row.lies),
        people if with_people else people.hidden,
        whole("n", lambda row: row.num_items, "num_items"),
    ]
    return Declared(
        table.name,
        f"{table.paper}, {table.place}: {table.holds}",
        f"{INTERVAL.replace('accuracy', 'number of ours')}. {table.note}",
        columns,
    ).of(rows, _seen(rows))


def _signed(cell: Cell) -> Cell:
    """Whole clusters less single questions is a number below 0."""
    return replace(cell, text=_minus(cell.text))


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _seen(rows: Sequence[Beside]) -> list[Beside]:
    """Without what is the paper's alone: of a model that is not here, a number that nobody has."""
    held = [row for row in rows if row.ours is not None]
    names = {row.name for row in held}
    models = {row.printed.model for row in held if row.printed is not None}
    return [
        row
        for row in rows
        if row.printed is None or row.printed.model in models or row.name in names
    ]
