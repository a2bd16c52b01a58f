"""The report's tables on the terminal, when a command has finished."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from reports.layout import Table
from reports.load import load_results
from reports.tables import tables

_MOST_SIDEWAYS = 4  # rows that fit side by side
_OF_PROTOCOL = {
    "zero_shot": ("zero_shot",),
    "curve": ("curve_summary", "curve_medals", "curve_against"),
    "grid": ("grid",),
    "taxonomy_distance": ("taxonomy_distance",),
    "unigrams": ("unigrams",),
    "original": ("original",),
    "inoculation": ("original", "inoculation"),
}


def print_tables(folder: Path, protocol: str) -> None:
    """Prints the tables of one protocol from the result files of a folder."""
    console = Console()
    found = [t for t in tables(load_results(folder)) if t.name.startswith(_OF_PROTOCOL[protocol])]
    for table in found:
        console.print(_rich(table, console.width))
        console.print(Text(table.note, style="dim"))
    console.print(f"results: {folder / 'results.csv'}", soft_wrap=True)


def _rich(table: Table, width: int) -> RichTable:
    """A row a measurement; on a narrow terminal a table with many columns is turned on its side."""
    view = RichTable(title=table.title, title_justify="left", title_style="bold")
    labels = [f"{c.group} {c.label}".strip() for c in table.columns]
    cells = [[f"{cell.text} {cell.detail}".strip() for cell in row] for row in table.rows]
    needed = sum(max(map(len, column)) + 3 for column in zip(labels, *cells, strict=True))
    if needed <= width or len(cells) > _MOST_SIDEWAYS:
        for label, column in zip(labels, table.columns, strict=True):
            view.add_column(label, justify=column.align)
        for row in cells:
            view.add_row(*map(Text, row))
        return view
    for _ in range(len(cells) + 1):
        view.add_column("")
    view.show_header = False
    for line in zip(labels, *cells, strict=True):
        view.add_row(*map(Text, line))
    return view
