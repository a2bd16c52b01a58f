"""The kinds of columns: how a value is formatted for people, and its full numbers for csv files.

Each takes its label, how the value is got from an item, and in `csv` the names of its full numbers
there, divided by blanks: those that have a name stand in the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from probelight.reports.kit.measured import Measured, Sized
from probelight.reports.kit.table import Cell, Column, Heading
from probelight.reports.kit.text import ABSENT, between, count, percent, points, points_between

Item = TypeVar("Item")
Value = TypeVar("Value")
ACCURACY = "accuracy ci_low ci_high"
SIZE = "num_items num_groups"


def column(
    heading: Heading,
    get: Callable[[Item], Value],
    cell: Callable[[Value], Cell],
    csv: str = "",
    full: Callable[[Value], Sequence[object]] = lambda value: (value,),
) -> Column[Item]:
    """A column of a kind of its own.

    Args:
        heading: What stands above it.
        get: The value of an item.
        cell: How the value is formatted.
        csv: Names of the full numbers, divided by blanks.
        full: The numbers themselves, at least as many as there are names.
    """
    names = csv.split()

    def fields(item: Item) -> Mapping[str, object]:
        return dict(zip(names, full(get(item)), strict=False)) if names else {}

    return Column(heading, lambda item: cell(get(item)), fields)


def text(
    label: str,
    get: Callable[[Item], str],
    csv: str = "",
    small: Callable[[Item], str] | None = None,
    *,
    group: str = "",
    code: bool = False,
) -> Column[Item]:
    """Words, with others in smaller type beside them, which may have a second name in `csv`."""
    return column(
        Heading(label, "left", group, code),
        lambda item: (get(item), small(item) if small else ""),
        lambda words: Cell(*words),
        csv,
        lambda words: words,
    )


def prose(label: str, get: Callable[[Item], str], csv: str = "") -> Column[Item]:
    """Sentences, which go on in further lines."""
    return column(Heading(label, "left", prose=True), get, Cell, csv)


def whole(
    label: str, get: Callable[[Item], int | None], csv: str = "", group: str = ""
) -> Column[Item]:
    """A whole number."""
    return column(Heading(label, group=group), get, lambda number: Cell(count(number)), csv)


def share(
    label: str, get: Callable[[Item], float | None], csv: str = "", group: str = ""
) -> Column[Item]:
    """A fraction, in per cent."""
    return column(Heading(label, group=group), get, lambda value: Cell(percent(value)), csv)


def accuracy(
    label: str, get: Callable[[Item], Measured | None], csv: str = "", group: str = ""
) -> Column[Item]:
    """A fraction with its interval, in per cent; `ACCURACY` are the usual names in the file."""
    return column(Heading(label, group=group), get, accuracy_cell, csv, _bounds)


def gap(
    label: str, get: Callable[[Item], Measured | None], csv: str = "", group: str = ""
) -> Column[Item]:
    """A difference of fractions with its interval, in percentage points."""
    return column(Heading(label, group=group), get, gap_cell, csv, _bounds)


def size(
    label: str, get: Callable[[Item], Sized | None], csv: str = "", group: str = ""
) -> Column[Item]:
    """Items and, in smaller type, groups where they are fewer; `SIZE` are the names in the file."""
    return column(
        Heading(label, group=group),
        get,
        size_cell,
        csv,
        lambda sized: (sized.num_items, sized.num_groups) if sized else (None, None),
    )


def number(
    label: str,
    get: Callable[[Item], Value],
    say: Callable[[Value], str],
    csv: str = "",
) -> Column[Item]:
    """A value that is said in a way of its own."""
    return column(Heading(label), get, lambda value: Cell(say(value)), csv)


def shown(label: str, cell: Callable[[Item], Cell], group: str = "") -> Column[Item]:
    """What people alone see: the csv file has its numbers elsewhere, or needs none."""
    return Column(Heading(label, group=group), cell, lambda item: {})


def attributes(names: str, of: Callable[[Item], object] = lambda item: item) -> Column[Item]:
    """Attributes of the item, or of a part of it, that stand in the csv file alone."""
    return fields(lambda item: {name: getattr(of(item), name) for name in names.split()})


def field(name: str, get: Callable[[Item], object]) -> Column[Item]:
    """A value that stands in the csv file alone."""
    return fields(lambda item: {name: get(item)})


def fields(get: Callable[[Item], Mapping[str, object]]) -> Column[Item]:
    """Values that stand in the csv file alone, by their names there."""
    return Column(None, lambda item: Cell(ABSENT), get)


def accuracy_cell(measured: Measured | None) -> Cell:
    """A fraction in per cent with its interval."""
    if measured is None:
        return Cell(ABSENT)
    return Cell(percent(measured.value), between(measured.ci_low, measured.ci_high))


def gap_cell(measured: Measured | None) -> Cell:
    """A difference in percentage points with its interval."""
    if measured is None:
        return Cell(ABSENT)
    return Cell(points(measured.value), points_between(measured.ci_low, measured.ci_high))


def size_cell(sized: Sized | None) -> Cell:
    """A number of items, and the groups that their interval goes by where they are fewer."""
    if sized is None:
        return Cell(ABSENT)
    grouped = sized.num_groups not in (None, sized.num_items)
    return Cell(count(sized.num_items), f"{count(sized.num_groups)} groups" if grouped else "")


def _bounds(measured: Measured | None) -> tuple[float | None, float | None, float | None]:
    if measured is None:
        return None, None, None
    return measured.value, measured.ci_low, measured.ci_high
