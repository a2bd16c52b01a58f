"""A table: a frame with every number in full (the csv file), and columns that format its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby
from types import SimpleNamespace
from typing import Any, Literal

import pandas as pd

from probelight.reports import numbers
from probelight.reports.numbers import ABSENT, LEAST, TOO_FEW

ACCURACY = "accuracy ci_low ci_high"
SIZE = "num_items num_groups"


@dataclass(frozen=True)
class Cell:
    """A formatted value and, in smaller type, what belongs to it (its interval, its split)."""

    text: str
    detail: str = ""


@dataclass(frozen=True)
class Column:
    """A column that people see."""

    label: str  # with the unit
    show: Callable[[Any], Cell | str]  # formats a row, which has the frame's columns as attributes
    align: Literal["left", "right"] = "right"
    group: str = ""  # heading over this column and its neighbours of the same group
    code: bool = False  # cells are identifiers (checksums, keys), set in fixed width
    prose: bool = False  # cells are sentences, wrapped over several lines


@dataclass(frozen=True, eq=False)
class Table:
    """A table of the report, ready for the terminal, HTML, Markdown, LaTeX and csv."""

    name: str  # of its files
    title: str
    note: str  # how to read it
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]  # a cell per column
    frame: pd.DataFrame  # the same as fractions at full precision, for the csv file
    runs: tuple[tuple[str, ...], ...] = ()  # of each row, keys of the runs it comes from

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over columns, with the number of columns below each; empty if there are none."""
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
    visible: pd.DataFrame | None = None,
    csv: str = "",
) -> Table | None:
    """Make a table of a frame; None if the frame is empty.

    A column in which nothing was measured is not shown, nor a sentence of the note that begins with
    its label and a colon; the csv file keeps it.

    Args:
        name: Name of its files.
        title: What it shows, in a few words.
        note: How to read it.
        frame: A frame or records, one row per measurement. Columns that begin with "_" are not in
            the csv file. `_runs` holds the keys of a row's runs, if `run` is not its only one.
        columns: What people see; with `across`, the columns that all values share.
        rows: Columns of the frame that identify a row, separated by blanks; used with `across`.
        across: Column of the frame whose values are shown side by side, such as the model.
        each: The columns of each such value, or a function that makes them from it.
        values: Order of the values; None keeps the frame's.
        visible: The rows that people see, in their order; None shows the whole frame.
        csv: Columns of the csv file, separated by blanks; all of the frame by default.
    """
    frame = framed(frame)
    if frame.empty:
        return None
    visible = frame if visible is None else visible
    plain = visible.astype(object).where(visible.notna(), None)
    # The records of each row by value, and the first one by None.
    records_by_row: dict[Hashable, dict[Any, Any]] = {}
    for number, record in enumerate(plain.to_dict("records")):
        row_key = tuple(record[name] for name in rows.split()) if across else number
        fields = SimpleNamespace(**record)
        records_by_row.setdefault(row_key, {None: fields})[record.get(across)] = fields
    order = dict.fromkeys(visible[across]) if across and values is None else values or ()
    # A value is the group of its columns, unless they have a group or the value is their label.
    repeated = [
        (value, replace(column, group=column.group or ("" if column.label == value else value)))
        for value in order
        for column in (each(value) if callable(each) else each)
    ]
    all_columns = [*((None, column) for column in columns), *repeated]
    cells: list[list[Cell]] = []
    for by_value in records_by_row.values():
        row = [c.show(by_value[v]) if v in by_value else ABSENT for v, c in all_columns]
        cells.append([cell if isinstance(cell, Cell) else Cell(cell) for cell in row])
    is_filled = [any(cell.text != ABSENT for cell in column) for column in zip(*cells, strict=True)]
    visible_columns = tuple(column for _, column in compress(all_columns, is_filled))
    names = csv.split() or [name for name in frame.columns if not name.startswith("_")]
    return Table(
        name,
        title,
        _without_absent(note, [column for _, column in all_columns], visible_columns),
        visible_columns,
        tuple(tuple(compress(row, is_filled)) for row in cells),
        frame[names],
        tuple(_runs(by_value.values()) for by_value in records_by_row.values()),
    )


def _without_absent(note: str, columns: Sequence[Column], visible: Sequence[Column]) -> str:
    """Return a note without its sentences about columns that are not visible ("Paper: ...")."""
    labels, visible_labels = (
        {re.sub(" %$|, [a-z]+$", "", name).casefold() for c in of for name in (c.label, c.group)}
        for of in (columns, visible)
    )
    absent = labels - visible_labels
    sentences = re.split(r"(?<=\.) (?=[A-Z]|[\w, ]+:)", note)
    heads = [sentence.partition(":")[0].casefold() for sentence in sentences]
    is_relevant = [not ({head} <= absent or {*head.split(", ")} <= absent) for head in heads]
    return " ".join(compress(sentences, is_relevant))


def framed(records: pd.DataFrame | Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """Return records as a frame of objects, which keeps whole numbers next to missing ones."""
    if isinstance(records, pd.DataFrame):
        return records
    return pd.DataFrame(list(records), dtype=object)


def _runs(records: Iterable[Any]) -> tuple[str, ...]:
    keys: set[str] = set()
    for record in records:
        runs = getattr(record, "_runs", None) or getattr(record, "run", None) or ()
        keys.update([runs] if isinstance(runs, str) else runs)
    return tuple(sorted(keys))


# Columns of each type: their label, and the names of the frame's columns that they show.


def text(label: str, name: str, small: str = "", *, group: str = "", code: bool = False) -> Column:
    """Make a column of words, with those of the column `small` in smaller type next to them."""

    def show(row: Any) -> Cell:
        words, detail = getattr(row, name), getattr(row, small) if small else ""
        words = ABSENT if numbers.missing(words) else str(words)
        return Cell(words, "" if numbers.missing(detail) else str(detail))

    return Column(label, show, "left", group, code)


def prose(label: str, name: str) -> Column:
    """Make a column of sentences, wrapped over several lines."""
    return Column(label, lambda row: str(getattr(row, name) or ABSENT), "left", prose=True)


def whole(label: str, name: str, *, group: str = "") -> Column:
    """Make a column of whole numbers."""
    return number(label, name, numbers.count, group=group)


def share(label: str, name: str, *, group: str = "") -> Column:
    """Make a column of fractions, in per cent."""
    return number(label, name, numbers.percent, group=group)


def number(label: str, name: str, form: Callable[[Any], str], *, group: str = "") -> Column:
    """Make a column of numbers that `form` writes."""

    def show(row: Any) -> str:
        value = getattr(row, name, None)
        return ABSENT if numbers.missing(value) else form(value)

    return Column(label, show, group=group)


def accuracy(label: str, names: str = ACCURACY, *, group: str = "") -> Column:
    """Make a column of fractions with their intervals, in per cent.

    `names` are the columns of the fraction and of both ends of its interval, separated by blanks;
    the ends default to NAME_ci_low and NAME_ci_high.
    """
    return Column(
        label, lambda row: _measured(row, names, numbers.percent, numbers.between), group=group
    )


def gap(label: str, names: str, *, group: str = "", below: str = "") -> Column:
    """Make a column of differences with their intervals, in points; `names` as in `accuracy`.

    `below` says what it means if a difference is below 0.
    """

    def show(row: Any) -> Cell:
        cell = _measured(row, names, numbers.points, numbers.points_between)
        is_below = cell.text.startswith("−")
        return replace(cell, detail=numbers.dotted(cell.detail, below)) if is_below else cell

    return Column(label, show, group=group)


def flips(lost: float, gained: float, p_value: float | None) -> Cell:
    """Return the items lost and gained, in whole numbers but where ties flipped in part.

    `p_value` is that of their difference; it is missing where that has no interval.
    """
    counts = (f"{n:,.0f}" if n == round(n) else f"{n:,.1f}" for n in (lost, gained))
    p = "" if numbers.missing(p_value) else f"p {numbers.probability(p_value)}"
    return Cell(" / ".join(counts), p)


def size(label: str = "n", names: str = SIZE, *, group: str = "") -> Column:
    """Make a column of numbers of items and, in smaller type, of groups if there are fewer."""
    items, groups = names.split()

    def show(row: Any) -> Cell:
        num_items, num_groups = getattr(row, items), getattr(row, groups, None)
        grouped = not numbers.missing(num_groups) and num_groups != num_items
        in_groups = f"{numbers.count(num_groups)} groups" if grouped else ""
        return Cell(numbers.count(num_items), in_groups)

    return Column(label, show, group=group)


def _measured(
    row: Any,
    names: str,
    form: Callable[[float | None], str],
    interval: Callable[[float | None, float | None], str],
) -> Cell:
    name, *ends = numbers.with_ends(names)
    value, low, high = (getattr(row, column, None) for column in (name, *ends))
    bounds = "" if numbers.missing(value) else interval(low, high)
    # How many items, groups and seeds the number rests on; the row's where it has none of its own.
    prefix = f"{name}_" if hasattr(row, f"{name}_num_groups") else ""
    items, groups = (getattr(row, f"{prefix}num_{of}", None) for of in ("items", "groups"))
    seeds = getattr(row, f"{name}_num_seeds", getattr(row, "num_seeds", None))
    has_few_groups = groups is not None and groups != items and groups < LEAST
    is_unsure = has_few_groups or seeds == LEAST - 1
    return Cell(form(value), TOO_FEW if bounds and is_unsure else bounds)
