"""The report's tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from probelight.io.escaping import brief, visible
from probelight.reports.sections import printed
from probelight.reports.table import Table
from probelight.results.load import load_results

MOST_SIDEWAYS = 4  # rows that fit side by side
Widths = dict[int, int | None]  # by place of the column; None for as wide as needed
FRAME = 3  # the line before a cell, and a blank on each side of it


def print_tables(folder: Path, protocol: str, *, kept: bool = True) -> None:
    """Print the tables and notices of one protocol's results in a folder, and where it is kept."""
    # In a notebook, rich would show the tables itself, although a Python call prints nothing.
    console = Console(force_jupyter=False)
    results = load_results(folder)
    for table in printed(protocol, results):
        print_table(table, console)
    for notice in results.notices:
        console.print(Text(brief(f"notice: {notice}"), style="yellow"))
    if kept:
        console.print(Text(visible(f"results: {folder / 'results.csv'}")), soft_wrap=True)


def print_table(table: Table, console: Console) -> None:
    """Print a table and its note.

    If it is too wide, one of few rows is turned on its side; one of many rows has details below
    their numbers, and continues in further tables that repeat the first columns.
    """
    heads, cells = _texts(table, " ")
    aligns = [column.align for column in table.columns]
    needed = sum(max(map(len, column)) + FRAME for column in zip(heads, *cells, strict=True))
    is_turned = needed > console.width and len(cells) <= MOST_SIDEWAYS
    if is_turned:
        cells = [list(line) for line in zip(heads, *cells, strict=True)]
        heads, aligns = [""] * len(cells[0]), ["left"] * len(cells[0])
    parts: list[Widths] = [dict.fromkeys(range(len(heads)))]
    if needed > console.width and not is_turned:
        heads, cells = _texts(table, "\n")
        parts = list(_parts(heads, cells, console.width))
    title = table.title
    for widths in parts:
        view = RichTable(title=Text(title), title_justify="left", title_style="bold")
        view.show_header = not is_turned
        for place, width in widths.items():
            view.add_column(Text(heads[place]), justify=aligns[place], overflow="fold", width=width)
        for row in cells:
            view.add_row(*(Text(row[place]) for place in widths))
        console.print(view)
        title = f"{table.title} (continued)"
    console.print(Text(table.note, style="dim"))


def _texts(table: Table, gap: str) -> tuple[list[str], list[list[str]]]:
    """Return headings and cells as text, with a gap between group and label, number and detail."""
    heads = [f"{column.group}{gap}{column.label}".strip() for column in table.columns]
    return heads, [[f"{c.text}{gap}{c.detail}".strip() for c in row] for row in table.rows]


def _parts(labels: Sequence[str], cells: Sequence[Sequence[str]], most: int) -> Iterator[Widths]:
    """Yield the columns that fit side by side, with their widths; the first one may be folded.

    The first columns (at most three) are repeated, as many as identify the rows.
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
    first: Widths = {0: None, **{place: widths[place] - FRAME for place in range(1, repeated)}}
    part, taken = first, sum(widths[:repeated])
    for place, width in enumerate(widths[repeated:], start=repeated):
        if len(part) > repeated and taken + width >= most:
            yield part
            part, taken = first, sum(widths[:repeated])
        part, taken = {**part, place: width - FRAME}, taken + width
    yield part
