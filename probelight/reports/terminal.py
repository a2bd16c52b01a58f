"""The report's tables on the terminal, when a command has finished."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from probelight.io.escaping import visible
from probelight.reports.sections import printed
from probelight.reports.table import Table
from probelight.results.load import load_results

MOST_SIDEWAYS = 4  # rows that fit side by side
FRAME = 3  # the line before a cell, and a blank on each side of it


def print_tables(folder: Path, protocol: str) -> None:
    """Print the tables of one protocol, and what its runs noticed, from the files of a folder."""
    console = Console()
    results = load_results(folder)
    for table in printed(protocol, results):
        print_table(table, console)
    for notice in results.notices:
        console.print(Text(visible(f"notice: {notice}"), style="yellow"))
    console.print(Text(visible(f"results: {folder / 'results.csv'}")), soft_wrap=True)


def print_table(table: Table, console: Console) -> None:
    """Print a table and how to read it.

    A table of few rows that is too wide is turned on its side. In one of many rows, details are
    below their numbers, and columns that do not fit go on in a further table, with the first
    columns repeated.
    """
    labels = [f"{c.group} {c.label}".strip() for c in table.columns]
    cells = [[f"{cell.text} {cell.detail}".strip() for cell in row] for row in table.rows]
    needed = sum(max(map(len, column)) + FRAME for column in zip(labels, *cells, strict=True))
    if needed <= console.width:
        console.print(
            _upright(table, table.title, labels, cells, dict.fromkeys(range(len(labels))))
        )
    elif len(cells) <= MOST_SIDEWAYS:
        view = _empty(table.title)
        for _ in range(len(cells) + 1):
            view.add_column("", overflow="fold")
        view.show_header = False
        for line in zip(labels, *cells, strict=True):
            view.add_row(*map(Text, line))
        console.print(view)
    else:
        labels = [f"{c.group}\n{c.label}".strip() for c in table.columns]
        cells = [[f"{cell.text}\n{cell.detail}".strip() for cell in row] for row in table.rows]
        title = table.title
        for widths in _parts(labels, cells, console.width):
            console.print(_upright(table, title, labels, cells, widths))
            title = f"{table.title} (continued)"
    console.print(Text(table.note, style="dim"))


def _empty(title: str) -> RichTable:
    return RichTable(title=Text(title), title_justify="left", title_style="bold")


def _upright(
    table: Table,
    title: str,
    labels: Sequence[str],
    cells: Sequence[Sequence[str]],
    widths: Mapping[int, int | None],
) -> RichTable:
    """Return the columns of these places, with their widths where they are given."""
    view = _empty(title)
    for place, width in widths.items():
        view.add_column(
            Text(labels[place]), justify=table.columns[place].align, overflow="fold", width=width
        )
    for row in cells:
        view.add_row(*(Text(row[place]) for place in widths))
    return view


def _parts(
    labels: Sequence[str], cells: Sequence[Sequence[str]], most: int
) -> Iterator[dict[int, int | None]]:
    """Yield the columns that fit side by side, with their widths; the first one may be folded.

    As many of the first columns are repeated as tell the rows from each other, at most three.
    """
    # A heading may be folded between its words, a number with its interval may not.
    widths = [
        FRAME + max(len(part) for text in (*column, *label.split()) for part in text.split("\n"))
        for label, column in zip(labels, zip(*cells, strict=True), strict=True)
    ]
    widths[0] = min(widths[0], most // 3)
    repeated = next((n for n in (1, 2, 3) if len({(*row[:n],) for row in cells}) == len(cells)), 1)
    if sum(widths[:repeated]) > most // 2:
        repeated = 1
    first = {0: None, **{place: widths[place] - FRAME for place in range(1, repeated)}}
    part, taken = first, sum(widths[:repeated])
    for place, width in enumerate(widths[repeated:], start=repeated):
        if len(part) > repeated and taken + width >= most:
            yield part
            part, taken = first, sum(widths[:repeated])
        part, taken = {**part, place: width - FRAME}, taken + width
    yield part
