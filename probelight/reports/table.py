"""A table: a frame with every number in full, and how people see it.

`table` makes one of a frame and a list of columns, each of which formats a row of the frame. The
frame is what the csv file has, the columns what the page, the terminal, Markdown and LaTeX show.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby
from types import SimpleNamespace
from typing import Any, Literal

import pandas as pd

from probelight.io.escaping import as_cell, markdown
from probelight.reports.words import (
    ABSENT,
    LEAST,
    TOO_FEW,
    between,
    count,
    missing,
    percent,
    points,
    points_between,
)

ACCURACY = "accuracy ci_low ci_high"
SIZE = "num_items num_groups"


@dataclass(frozen=True)
class Cell:
    """A formatted value and, in smaller type, what belongs to it (its interval, its split)."""

    text: str
    detail: str = ""


@dataclass(frozen=True)
class Column:
    """A column that people see.

    Attributes:
        label: Its heading, with the unit.
        show: Formats a row of the frame, whose columns are its attributes.
        align: Numbers are aligned right, so that decimals are below each other.
        group: Heading over this column and its neighbours with the same group.
        code: The cells are identifiers (checksums, keys), set in fixed width.
        prose: The cells are sentences, which go on in further lines.
    """

    label: str
    show: Callable[[Any], Cell | str]
    align: Literal["left", "right"] = "right"
    group: str = ""
    code: bool = False
    prose: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """A table of the report, ready for the terminal, HTML, Markdown, LaTeX and csv.

    Attributes:
        name: Name of its files.
        title: What it shows, in a few words.
        note: How to read it.
        columns: Of what people see.
        rows: A cell for each column.
        frame: The same measurements as fractions at full precision, for the csv file.
        runs: Of each row the keys of the runs that its numbers come from; empty where unknown.
    """

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    frame: pd.DataFrame
    runs: tuple[tuple[str, ...], ...] = ()

    @property
    def groups(self) -> list[tuple[str, int]]:
        """The headings over columns, and how many each is over; none where no column has one."""
        groups = groupby(column.group for column in self.columns)
        spans = [(group, len(list(columns))) for group, columns in groups]
        return spans if any(group for group, _ in spans) else []


def table(
    name: str,
    title: str,
    note: str,
    frame: pd.DataFrame | Iterable[Mapping[str, object]],
    columns: Sequence[Column],
    *,
    rows: str = "",
    across: str = "",
    each: Sequence[Column] | Callable[[Any], Sequence[Column]] = (),
    values: Sequence[Any] | None = None,
    shown: pd.DataFrame | None = None,
    csv: str = "",
) -> Table | None:
    """Make a table of a frame, None where the frame is empty.

    A column in which nothing was measured is not shown; the csv file keeps it.

    Args:
        name: Name of its files.
        title: What it shows, in a few words.
        note: How to read it.
        frame: A row a measurement, or the records that make one. A name that begins with "_" is
            for the columns alone and is not in the csv file; that of `_runs` are the keys of a
            row's runs.
        columns: What people see; of rows that several measurements share, what is the same.
        rows: Names of the frame's columns, divided by blanks, that measurements of one row share.
        across: Name of the column whose values are next to each other, such as the model.
        each: The columns of each such value, or what makes them of it.
        values: Order of the values; that of the frame where it is None.
        shown: What people see where it is not the whole frame in its order.
        csv: The columns of the csv file, divided by blanks; all of the frame where it is left out.
    """
    frame = framed(frame)
    if frame.empty:
        return None
    shown = frame if shown is None else shown
    plain = shown.astype(object).where(shown.notna(), None)
    # Of each row the records by value, and the first one by None.
    found: dict[Hashable, dict[Any, Any]] = {}
    for number, record in enumerate(plain.to_dict("records")):
        place = tuple(record[name] for name in rows.split()) if across else number
        line = SimpleNamespace(**record)
        found.setdefault(place, {None: line})[record.get(across)] = line
    order = dict.fromkeys(shown[across]) if across and values is None else values or ()
    # The value is the group of its columns, unless they have one or are called like it.
    repeated = [
        (value, replace(column, group=column.group or ("" if column.label == value else value)))
        for value in order
        for column in (each(value) if callable(each) else each)
    ]
    all_columns = [*((None, column) for column in columns), *repeated]
    cells: list[list[Cell]] = []
    for by_value in found.values():
        row = [c.show(by_value[v]) if v in by_value else ABSENT for v, c in all_columns]
        cells.append([shown if isinstance(shown, Cell) else Cell(shown) for shown in row])
    kept = [any(cell.text != ABSENT for cell in column) for column in zip(*cells, strict=True)]
    names = csv.split() or [name for name in frame.columns if not name.startswith("_")]
    return Table(
        name,
        title,
        note,
        tuple(column for _, column in compress(all_columns, kept)),
        tuple(tuple(compress(line, kept)) for line in cells),
        frame[names],
        tuple(_runs(by_value.values()) for by_value in found.values()),
    )


def framed(records: pd.DataFrame | Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """Return records as a frame whose numbers stay what they are: a missing one makes no float."""
    if isinstance(records, pd.DataFrame):
        return records
    return pd.DataFrame(list(records), dtype=object)


def _runs(records: Iterable[Any]) -> tuple[str, ...]:
    keys: set[str] = set()
    for record in records:
        runs = getattr(record, "_runs", None) or ()
        keys.update([runs] if isinstance(runs, str) else runs)
    return tuple(sorted(keys))


# The kinds of columns. Each takes its label and the names of the frame's columns that it shows.


def text(label: str, name: str, small: str = "", *, group: str = "", code: bool = False) -> Column:
    """Make a column of words, with others in smaller type next to them."""

    def show(row: Any) -> Cell:
        words = getattr(row, name)
        detail = getattr(row, small) if small else ""
        return Cell(
            ABSENT if missing(words) else str(words), "" if missing(detail) else str(detail)
        )

    return Column(label, show, "left", group, code)


def prose(label: str, name: str) -> Column:
    """Make a column of sentences, which go on in further lines."""
    return Column(label, lambda row: str(getattr(row, name) or ABSENT), "left", prose=True)


def whole(label: str, name: str, *, group: str = "") -> Column:
    """Make a column of whole numbers."""
    return number(label, name, count, group=group)


def share(label: str, name: str, *, group: str = "") -> Column:
    """Make a column of fractions, in per cent."""
    return number(label, name, percent, group=group)


def number(label: str, name: str, form: Callable[[Any], str], *, group: str = "") -> Column:
    """Make a column of numbers that are written in another form."""

    def show(row: Any) -> str:
        value = getattr(row, name, None)
        return ABSENT if missing(value) else form(value)

    return Column(label, show, group=group)


def accuracy(label: str, names: str = ACCURACY, *, group: str = "") -> Column:
    """Make a column of fractions with their intervals, in per cent.

    Args:
        label: The heading.
        names: The columns with the fraction and the two ends of the interval, divided by blanks;
            of NAME alone the ends are NAME_ci_low and NAME_ci_high.
        group: As in `Column`.
    """
    return Column(label, lambda row: _measured(row, names, percent, between), group=group)


def gap(label: str, names: str, *, group: str = "") -> Column:
    """Make a column of differences of fractions with their intervals, in percentage points."""
    return Column(label, lambda row: _measured(row, names, points, points_between), group=group)


def size(label: str = "n", names: str = SIZE, *, group: str = "") -> Column:
    """Make a column of numbers of items and, in smaller type, of groups where they are fewer."""
    items, groups = names.split()

    def show(row: Any) -> Cell:
        num_items, num_groups = getattr(row, items), getattr(row, groups, None)
        grouped = not missing(num_groups) and num_groups != num_items
        return Cell(count(num_items), f"{count(num_groups)} groups" if grouped else "")

    return Column(label, show, group=group)


def _measured(
    row: Any,
    names: str,
    form: Callable[[float | None], str],
    interval: Callable[[float | None, float | None], str],
) -> Cell:
    name, *ends = names.split()
    ends = ends or [f"{name}_ci_low", f"{name}_ci_high"]
    value, low, high = (getattr(row, column, None) for column in (name, *ends))
    bounds = "" if missing(value) else interval(low, high)
    return Cell(form(value), TOO_FEW if bounds and _has_few(row, name) else bounds)


def _has_few(row: Any, name: str) -> bool:
    """Whether a number's interval goes by two groups of items or two seeds, its or the row's."""
    its = f"{name}_" if hasattr(row, f"{name}_num_groups") else ""
    items, groups = (getattr(row, f"{its}num_{of}", None) for of in ("items", "groups"))
    if groups is not None and groups != items and groups < LEAST:
        return True
    seeds = getattr(row, f"{name}_num_seeds", getattr(row, "num_seeds", None))
    return bool(seeds == LEAST - 1)


# The plain forms of a table.


def to_csv(table: Table) -> str:
    """Return the frame as csv, floats in full; no spreadsheet takes a cell for a formula."""
    known = table.frame.astype(object).where(table.frame.notna(), "")
    safe = [
        [as_cell(value) if isinstance(value, str) else value for value in line]
        for line in known.itertuples(index=False)
    ]
    # As objects, so that whole numbers of which one is missing stay whole.
    frame = pd.DataFrame(safe, columns=table.frame.columns, dtype=object)
    return str(frame.to_csv(index=False, lineterminator="\n"))


def to_markdown(table: Table) -> str:
    """Return the table in Markdown, padded so that it can be read as plain text as well."""
    heads = [f"{c.group}: {c.label}" if c.group else c.label for c in table.columns]
    body = [[f"{c.text} ({c.detail})" if c.detail else c.text for c in row] for row in table.rows]
    padded = []
    for column, cells in zip(table.columns, zip(heads, *body, strict=True), strict=True):
        texts = [markdown(cell) for cell in cells]
        width, right = max(3, *map(len, texts)), column.align == "right"
        texts.insert(1, f"{'-' * (width - 1)}:" if right else "-" * width)
        padded.append([text.rjust(width) if right else text.ljust(width) for text in texts])
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*padded, strict=True))
