"""Tables as people and programs read them: formatted cells for the eye, full numbers for csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from metrics.intervals import FEW
from results.load import Row
from storage.escaping import as_cell, markdown

NOT_INTERPRETABLE = "not interpretable"
ABSENT = "–"  # a number that was not measured
INTERVAL = "Beside each accuracy stands its 95% interval"
BY_GROUPS = "by groups where items come in groups, else Wilson's"


@dataclass(frozen=True)
class Cell:
    """A formatted value and, in smaller type, what belongs to it (its interval, its split)."""

    text: str
    detail: str = ""


@dataclass(frozen=True)
class Column:
    """A column heading.

    Attributes:
        label: What stands in the column, with its unit.
        align: Numbers are aligned right, so that their decimals stand below each other.
        group: Heading over this column and its neighbours with the same group.
        code: The cells are identifiers (checksums, keys), set in fixed width.
    """

    label: str
    align: Literal["left", "right"] = "right"
    group: str = ""
    code: bool = False


@dataclass(frozen=True)
class Table:
    """One table of the report.

    Attributes:
        name: Name of its csv file.
        title: What it shows, in a few words.
        note: How to read it.
        columns: The columns people see.
        rows: A `Cell` for each column.
        records: The same measurements as fractions at full precision, for the csv file.
    """

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    records: tuple[Mapping[str, object], ...]


def percent(value: float | None) -> str:
    """A fraction as per cent with one decimal."""
    return ABSENT if value is None else f"{100 * value:.1f}"


def points(value: float) -> str:
    """A difference of fractions in percentage points, signed."""
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def unsigned(value: float) -> str:
    """A difference in percentage points for running text: no plus, but a minus."""
    return points(value).removeprefix("+")


def between(low: float | None, high: float | None) -> str:
    """An interval of fractions in per cent; empty where there is none."""
    return "" if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f}"


def points_between(low: float | None, high: float | None) -> str:
    """An interval of differences in percentage points; empty where there is none."""
    return "" if low is None or high is None else f"{points(low)} to {points(high)}"


def count(number: int | None) -> str:
    """A whole number with thousands separators."""
    return ABSENT if number is None else f"{number:,}"


def sample(num_items: int | None, num_groups: int | None) -> str:
    """Items measured, and the groups that their interval goes by; said in words where few."""
    if not num_items:
        return ""
    text = f"n = {count(num_items)}"
    if num_groups in (None, num_items):
        return text
    few = "only " if num_groups is not None and num_groups < FEW else ""
    return f"{text} in {few}{count(num_groups)} {'group' if num_groups == 1 else 'groups'}"


def rate(value: float | None) -> str:
    """A learning rate, 1e-05 written as 1e-5."""
    return ABSENT if value is None else f"{value:g}".replace("e-0", "e-")


def probability(value: float | None) -> str:
    """A p-value with its sign of relation; one that would print as zero is given as a bound."""
    if value is None:
        return "not recorded"
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def accuracy_cell(row: Row | None) -> Cell:
    """An accuracy in per cent with its interval."""
    if row is None:
        return Cell(ABSENT)
    return Cell(percent(row.value), between(row.ci_low, row.ci_high))


def size_cell(row: Row) -> Cell:
    """Items and, in smaller type, the groups that their interval goes by where they are fewer."""
    grouped = row.num_groups not in (None, row.num_items)
    return Cell(count(row.num_items), f"{count(row.num_groups)} groups" if grouped else "")


def accuracy_record(row: Row) -> dict[str, object]:
    """An accuracy with its interval and number of items and groups, for csv files."""
    return {
        "accuracy": row.value,
        "ci_low": row.ci_low,
        "ci_high": row.ci_high,
        "num_items": row.num_items,
        "num_groups": row.num_groups,
    }


def to_csv(table: Table) -> str:
    """The records of a table; its columns are those of all records in order of appearance."""
    header = list(dict.fromkeys(key for record in table.records for key in record))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for record in table.records:
        cells = (record.get(key) for key in header)
        writer.writerow([_csv_cell(cell) for cell in cells])
    return text.getvalue()


def _csv_cell(value: object) -> object:
    if value is None:
        return ""
    return as_cell(value) if isinstance(value, str) else value


def to_markdown(table: Table) -> str:
    """The table in Markdown, padded so that it can be read as plain text as well."""
    heads = [f"{c.group}: {c.label}" if c.group else c.label for c in table.columns]
    body = [[_plain(cell) for cell in row] for row in table.rows]
    lines = [[markdown(text) for text in line] for line in [heads, *body]]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(heads))]
    rule = [
        "-" * (width - 1) + ":" if column.align == "right" else "-" * width
        for column, width in zip(table.columns, widths, strict=True)
    ]
    padded = [
        [
            text.rjust(width) if column.align == "right" else text.ljust(width)
            for text, column, width in zip(line, table.columns, widths, strict=True)
        ]
        for line in lines
    ]
    return "\n".join(_piped(line) for line in [padded[0], rule, *padded[1:]])


def _plain(cell: Cell) -> str:
    return f"{cell.text} ({cell.detail})" if cell.detail else cell.text


def _piped(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
