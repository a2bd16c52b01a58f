"""How wide the columns of a LaTeX table are, and how their cells are set."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from probelight.reports.kit.forms.latex_text import WRITTEN_OUT, escaped, num_letters
from probelight.reports.kit.table import Cell, Heading, Table

PROSE = 36  # characters on a line of a cell that goes on in further lines
GAP = 2  # characters between two columns
LEAST = 16  # of them where there is little room
PIECE = 8  # of a code behind which it may break
FIXED = 1.25  # of the width of a letter has one of fixed width
SMALL = 0.7  # of the width of a number's type has that of its detail


@dataclass(frozen=True)
class Column:
    """How a column is set.

    Attributes:
        width: Characters.
        wraps: Its cells go on in further lines.
        details: Where they stand: in a column of their own, so that the numbers are aligned, in a
            row of their own below the numbers, or in the cell.
    """

    heading: Heading
    width: int
    wraps: bool
    details: Literal["beside", "below", "inside"]

    @property
    def span(self) -> int:
        """Columns of the tabular that it takes."""
        return 2 if self.details == "beside" else 1

    @property
    def spec(self) -> str:
        """Its letters in the preamble of the tabular."""
        if self.wraps:
            return f"p{{{self.width / 2:g}em}}"
        return r"r@{\ }l" if self.details == "beside" else self.heading.align[0]

    def label(self) -> str:
        """Its heading."""
        lines = folded(self.heading.label, self.width)
        one = " ".join(lines) if self.wraps else stacked(lines, self.heading.align[0])
        return rf"\multicolumn{{2}}{{c}}{{{one}}}" if self.details == "beside" else one

    def cells(self, cell: Cell) -> str:
        """What stands in a row of it, the detail too unless that has a row of its own."""
        text, detail = escaped(cell.text), small(cell)
        if self.wraps:
            text = " ".join(map(_in_pieces if self.heading.code else _word, cell.text.split(" ")))
        if self.heading.code and text:
            text = rf"\texttt{{{text}}}"
        if self.details == "beside":
            return f"{text} & {detail}"
        said = text if self.details == "below" else " ".join(filter(None, (text, detail)))
        return rf"\raggedright {_breakable(said)}" if self.wraps and said else said


def laid_out(table: Table, line: int, most: int) -> list[Column]:
    """Details beside their numbers where that fits on a line, else below, and narrower texts."""
    places = range(len(table.columns))
    columns = [_column(table, place, below=False) for place in places]
    if sum(column.width + GAP for column in columns) <= line:
        return columns
    below = [_column(table, place, below=True) for place in places]
    # Below a cell of several lines, a detail would stand far from its number.
    columns = columns if any(column.wraps for column in below) else below
    fixed = sum(column.width for column in columns if not column.wraps) + GAP * len(columns)
    num_wrapping = sum(column.wraps for column in columns)
    share = (most - fixed) // max(1, num_wrapping)
    if share < LEAST:  # they go on in a further part, where there is room for them
        return columns
    return [replace(c, width=min(c.width, share)) if c.wraps else c for c in columns]


def _column(table: Table, place: int, *, below: bool) -> Column:
    heading = table.columns[place]
    cells = [row[place] for row in table.rows]
    number = heading.align == "right"
    width = max((_length(one, below) for one in cells), default=0)
    wraps = heading.prose or (not number and width > PROSE)
    width = round(min(width, PROSE) if wraps else width * (FIXED if heading.code else 1))
    sharing = sum(one.group == heading.group for one in table.columns)
    width = max([width, 1, *map(len, heading.label.split())])
    width = max([width, *(math.ceil(len(word) / sharing) for word in heading.group.split())])
    beside = number and any(one.detail for one in cells)
    details: Literal["beside", "below", "inside"] = "beside" if beside else "inside"
    return Column(heading, width, wraps, "below" if below and not wraps else details)


def num_lines(columns: Sequence[Column], row: Sequence[Cell]) -> int:
    """Lines that a row takes."""
    pairs = list(zip(columns, row, strict=True))
    lines = [math.ceil(_length(cell) / column.width) for column, cell in pairs if column.wraps]
    below = any(column.details == "below" and cell.detail for column, cell in pairs)
    return max([2 if below else 1, *lines])


def _length(cell: Cell, below: bool = False) -> int:
    """Characters of a cell's line, in the type of its text."""
    text = num_letters(cell.text)
    detail = round(SMALL * num_letters(f" ({cell.detail})")) if cell.detail else 0
    return max(text, detail) if below else text + detail


def small(cell: Cell) -> str:
    """The detail of a cell in small type; empty where it has none."""
    return rf"{{\scriptsize ({escaped(cell.detail)})}}" if cell.detail else ""


def folded(label: str, width: int) -> list[str]:
    """A heading in lines that are as wide as its column."""
    wide = max([width, *map(len, label.split())], default=1)
    lines = textwrap.wrap(label, max(wide, 1), break_long_words=False, break_on_hyphens=False)
    return [escaped(line) for line in lines]


def stacked(lines: Sequence[str], align: str) -> str:
    """Lines above each other in one cell."""
    joined = r"\\".join(lines)
    return rf"\shortstack[{align}]{{\strut {joined}}}" if len(lines) > 1 else joined


def _in_pieces(code: str) -> str:
    """Lets a checksum or a key break behind every few characters."""
    pieces = (code[start : start + PIECE] for start in range(0, len(code), PIECE))
    return r"\allowbreak ".join(escaped(piece) for piece in pieces)


def _word(word: str) -> str:
    """Lets a word break that is longer than any line."""
    return _in_pieces(word) if len(word) > PROSE else escaped(word)


def _breakable(text: str) -> str:
    """Lets long names break behind their underscores and slashes, code points before each."""
    text = text.replace(f"}}{WRITTEN_OUT}", rf"}}\allowbreak {WRITTEN_OUT}")
    return text.replace(r"\_", r"\_\allowbreak ").replace("/", r"/\allowbreak ")
