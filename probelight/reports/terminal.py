"""The report's tables on the terminal, when a command has finished."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from probelight.io.escaping import visible
from probelight.reports.kit.forms.fitting import fitting, num_telling
from probelight.reports.kit.table import Table
from probelight.reports.page.provenance import notices
from probelight.reports.sections import printed
from probelight.results.load import load_results

_MOST_SIDEWAYS = 4  # rows that fit side by side
_FRAME = 3  # the line before a cell, and a blank on each side of it


def print_tables(folder: Path, protocol: str) -> None:
    """Prints the tables of one protocol, and what its runs noticed, from the files of a folder."""
    console = Console()
    results = load_results(folder)
    for table in printed(protocol, results):
        print_table(table, console)
    for notice in notices(results):
        console.print(Text(visible(f"notice: {notice}"), style="yellow"))
    console.print(Text(visible(f"results: {folder / 'results.csv'}")), soft_wrap=True)


def print_table(table: Table, console: Console) -> None:
    """Prints a table and how to read it."""
    for view in _rich(table, console.width):
        console.print(view)
    console.print(Text(table.note, style="dim"))


def _rich(table: Table, width: int) -> Iterator[RichTable]:
    """A row a measurement; on a narrow terminal a table with many columns is turned on its side.

    Of one that has too many rows for that, details stand below their numbers, and columns that do
    not fit go on in a second table, with the first columns repeated that tell its rows apart.
    """
    labels = [f"{c.group} {c.label}".strip() for c in table.columns]
    cells = [[f"{cell.text} {cell.detail}".strip() for cell in row] for row in table.rows]
    needed = sum(max(map(len, column)) + _FRAME for column in zip(labels, *cells, strict=True))
    if needed <= width:
        yield _upright(table, labels, cells, range(len(labels)))
    elif len(cells) <= _MOST_SIDEWAYS:
        view = RichTable(title=Text(table.title), title_justify="left", title_style="bold")
        for _ in range(len(cells) + 1):
            view.add_column("", overflow="fold")
        view.show_header = False
        for line in zip(labels, *cells, strict=True):
            view.add_row(*map(Text, line))
        yield view
    else:
        labels = [f"{c.group}\n{c.label}".strip() for c in table.columns]
        cells = [[f"{cell.text}\n{cell.detail}".strip() for cell in row] for row in table.rows]
        for number, widths in enumerate(_fitting(labels, cells, width)):
            view = _upright(table, labels, cells, list(widths))
            for column, needed in list(zip(view.columns, widths.values(), strict=True))[1:]:
                column.width = needed - _FRAME  # the first one is folded before a number is
            view.title = Text(f"{table.title} (continued)" if number else table.title)
            yield view


def _upright(
    table: Table, labels: Sequence[str], cells: Sequence[Sequence[str]], places: Sequence[int]
) -> RichTable:
    view = RichTable(title=Text(table.title), title_justify="left", title_style="bold")
    for place in places:
        view.add_column(Text(labels[place]), justify=table.columns[place].align, overflow="fold")
    for row in cells:
        view.add_row(*(Text(row[place]) for place in places))
    return view


def _fitting(
    labels: Sequence[str], cells: Sequence[Sequence[str]], width: int
) -> Iterator[dict[int, int]]:
    """Columns that fit, with their widths, each time with the repeated ones, the first folded."""
    # A heading may be folded between its words, a number with its interval may not.
    widths = [
        _FRAME + max(len(part) for text in (*column, *label.split()) for part in text.split("\n"))
        for label, column in zip(labels, zip(*cells, strict=True), strict=True)
    ]
    widths[0] = min(widths[0], width // 3)
    for places in fitting(widths, num_telling(cells), width):
        yield {place: widths[place] for place in places}
