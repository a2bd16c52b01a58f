"""Tables as csv files, which hold full numbers, and in Markdown, which people read."""

from __future__ import annotations

import csv
import io

from probelight.io.escaping import as_cell, markdown
from probelight.reports.kit.table import Cell, Table


def to_csv(table: Table) -> str:
    """The records of a table; its columns are those of all records in order of appearance."""
    header = list(dict.fromkeys(key for record in table.records for key in record))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for record in table.records:
        cells = [record.get(key) for key in header]
        writer.writerow([as_cell(cell) if isinstance(cell, str) else cell for cell in cells])
    return text.getvalue()


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
    pads = [str.rjust if column.align == "right" else str.ljust for column in table.columns]
    padded = [[p(text, w) for p, text, w in zip(pads, line, widths, strict=True)] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in [padded[0], rule, *padded[1:]])


def _plain(cell: Cell) -> str:
    return f"{cell.text} ({cell.detail})" if cell.detail else cell.text
