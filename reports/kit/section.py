"""What a protocol's package registers in `reports.sections`: its part of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reports.kit.table import Table
from results.load import Results

if TYPE_CHECKING:
    from reports.kit.figure import Figure  # matplotlib takes a second to import

TableMaker = Callable[[Results], Table | Sequence[Table] | None]


def nothing(results: Results) -> list[str]:
    """The findings of a section that has none."""
    return []


def undrawn(results: Results) -> list[Figure | None]:
    """The figures of a section that has none."""
    return []


@dataclass(frozen=True)
class Section:
    """A part of the page: figures first, then the tables with the numbers.

    Attributes:
        name: Its address in the page.
        title: Its heading.
        tables: Makers of its tables, in the order of the page; None where there is nothing to show.
        figures: Draws its figures; imports what it draws with, for a terminal needs none.
        findings: What its numbers say, in sentences.
        printed: By protocol the makers of the tables that its command prints when it has finished.
    """

    name: str
    title: str
    tables: Sequence[TableMaker]
    figures: Callable[[Results], Sequence[Figure | None]] = undrawn
    findings: Callable[[Results], list[str]] = nothing
    printed: Mapping[str, Sequence[TableMaker]] = field(default_factory=dict)

    def made(self, results: Results) -> Made:
        """The section with everything that the results have something for."""
        return Made(
            self.name,
            self.title,
            tuple(figure for figure in self.figures(results) if figure is not None),
            tuple(made_tables(self.tables, results)),
            tuple(self.findings(results)),
        )


@dataclass(frozen=True)
class Made:
    """A section with its contents, drawn and counted."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    findings: tuple[str, ...]


def made_tables(makers: Sequence[TableMaker], results: Results) -> list[Table]:
    """The tables that there are numbers for."""
    made: list[Table] = []
    for maker in makers:
        found = maker(results)
        made += [] if found is None else [found] if isinstance(found, Table) else found
    return made
