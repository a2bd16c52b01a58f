"""What a protocol's package registers in `probelight.reports.sections`: its part of the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, TypeVar

from probelight.reports.kit.table import Table
from probelight.results.load import Results

if TYPE_CHECKING:
    from probelight.reports.kit.figure import Figure  # matplotlib takes a second to import

Shown = TypeVar("Shown")
TableMaker = Callable[[Results], Table | Sequence[Table] | None]


@dataclass(frozen=True)
class Section:
    """A part of the page: figures first, then the tables with the numbers.

    Attributes:
        name: Its address in the page.
        title: Its heading.
        tables: Makers of its tables, in the order of the page; None where there is nothing to show.
        figures: The same of its figures, as "module:function": a terminal needs no matplotlib.
        findings: What its numbers say, in sentences.
        printed: By protocol the makers of the tables that its command prints when it has finished.
    """

    name: str
    title: str
    tables: Sequence[TableMaker]
    figures: Sequence[str] = ()
    findings: Callable[[Results], Sequence[str]] = lambda results: ()
    printed: Mapping[str, Sequence[TableMaker]] = field(default_factory=dict)

    def made(self, results: Results) -> Made:
        """The section with everything that the results have something for."""
        figures = flat(resolve_name(name)(results) for name in self.figures)
        tables = flat(make(results) for make in self.tables)
        return Made(self.name, self.title, figures, tables, tuple(self.findings(results)))


@dataclass(frozen=True)
class Made:
    """A section with its contents, drawn and counted."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    findings: tuple[str, ...]


def flat(made: Iterable[Shown | Sequence[Shown] | None]) -> tuple[Shown, ...]:
    """What makers made: of each one, several or nothing."""
    several = (one if isinstance(one, Sequence) else [one] for one in made)
    return tuple(one for own in several for one in own if one is not None)
