"""Tables: one declaration of the columns gives what people see and what the csv file holds.

`probelight.reports.kit.forms` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from probelight.reports.kit.runs import runs_of
from probelight.reports.kit.text import ABSENT
from probelight.reports.table import Cell

Item = TypeVar("Item")
Record = Mapping[str, object]
Align = Literal["left", "right"]


@dataclass(frozen=True)
class Heading:
    """What stands above a column.

    Attributes:
        label: What stands in the column, with its unit.
        align: Numbers are aligned right, so that their decimals stand below each other.
        group: Heading over this column and its neighbours with the same group.
        code: The cells are identifiers (checksums, keys), set in fixed width.
        prose: The cells are sentences, which go on in further lines.
    """

    label: str
    align: Align = "right"
    group: str = ""
    code: bool = False
    prose: bool = False


@dataclass(frozen=True)
class Table:
    """One table of the report, ready for the terminal, HTML, Markdown, LaTeX and csv.

    Attributes:
        name: Name of its files.
        title: What it shows, in a few words.
        note: How to read it.
        columns: Headings of the columns people see.
        rows: A `Cell` for each column.
        records: The same measurements as fractions at full precision, for the csv file.
        runs: For each row the keys of the runs that its numbers come from; empty where not known.
    """

    name: str
    title: str
    note: str
    columns: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]
    records: tuple[Record, ...]
    runs: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Column(Generic[Item]):
    """What a table says of each of its items, declared once; `reports.kit.columns` has the kinds.

    Attributes:
        heading: None for numbers that stand in the csv file alone.
        cell: What people see of an item.
        fields: The item's full numbers, by their names in the csv file.
    """

    heading: Heading | None
    cell: Callable[[Item], Cell]
    fields: Callable[[Item], Record]

    @property
    def hidden(self) -> Column[Item]:
        """The same for the csv file alone."""
        return replace(self, heading=None)


@dataclass(frozen=True)
class Across(Generic[Item]):
    """Columns that stand side by side once for each of several values, such as the models.

    Attributes:
        value: The value that an item belongs to.
        row: Items with the same one share a row.
        columns: The columns of a value; a row without an item of it has no numbers there.
        values: Their order; that of the items where it is None.
    """

    value: Callable[[Item], Any]
    row: Callable[[Item], Hashable]
    columns: Callable[[Any], Sequence[Column[Item]]]
    values: Sequence[Any] | None = None


@dataclass(frozen=True)
class Declared(Generic[Item]):
    """A table without its items.

    Attributes:
        name: Name of its files.
        title: What it shows, in a few words.
        note: How to read it.
        columns: Of rows that several items share, what they have in common.
        across: Columns that stand side by side, behind the others.
        order: What the csv file begins with, divided by blanks; the rest follows as declared.
        runs: The keys of the runs that an item comes from; those that it holds where it is left.
    """

    name: str
    title: str
    note: str
    columns: Sequence[Column[Item]]
    across: Across[Item] | None = None
    order: str = ""
    runs: Callable[[Item], Iterable[str]] = runs_of

    def of(self, items: Sequence[Item], shown: Sequence[Item] | None = None) -> Table | None:
        """The table of these items, None where there are none.

        Args:
            items: What the csv file has a line of each of.
            shown: What people see a row of each of; the same where it is None.
        """
        if not items:
            return None
        across = self.across
        values = [] if across is None else across.values or list(map(across.value, items))
        beside = {value: across.columns(value) for value in dict.fromkeys(values) if across}
        columns = [*self.columns, *(column for own in beside.values() for column in own)]
        by_row = self._by_row(items if shown is None else shown)
        return Table(
            self.name,
            self.title,
            self.note,
            tuple(column.heading for column in columns if column.heading),
            tuple(self._row(own, beside) for own in by_row),
            tuple(self._record(item, beside) for item in items),
            tuple(self._runs(own) for own in by_row),
        )

    def _by_row(self, items: Sequence[Item]) -> list[dict[Any, Item]]:
        """The items of each row, by the value they belong to."""
        if self.across is None:
            return [{None: item} for item in items]
        rows: dict[Hashable, dict[Any, Item]] = {}
        for item in items:
            rows.setdefault(self.across.row(item), {})[self.across.value(item)] = item
        return list(rows.values())

    def _row(
        self, own: Mapping[Any, Item], beside: Mapping[Any, Sequence[Column[Item]]]
    ) -> tuple[Cell, ...]:
        first = next(iter(own.values()))
        cells = [column.cell(first) for column in self.columns if column.heading]
        for value, columns in beside.items():
            for column in columns:
                if column.heading:
                    cells.append(column.cell(own[value]) if value in own else Cell(ABSENT))
        return tuple(cells)

    def _runs(self, own: Mapping[Any, Item]) -> tuple[str, ...]:
        keys = (key for item in own.values() for key in self.runs(item))
        return tuple(dict.fromkeys(keys))

    def _record(self, item: Item, beside: Mapping[Any, Sequence[Column[Item]]]) -> Record:
        columns = [*self.columns]
        if self.across is not None:
            columns += beside[self.across.value(item)]
        found = {name: full for column in columns for name, full in column.fields(item).items()}
        return {name: found[name] for name in self.order.split() if name in found} | found
