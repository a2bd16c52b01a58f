r"""A table for a paper in LaTeX, ready to be `\input`: booktabs rules, intervals in small type.

A short table is a tabular without a float, so that its place, caption and label are the author's;
a title and a label stand above it in a comment, with the packages that it needs. What is wider than
a line is scaled down to it; columns that would be too small then go on in a further tabular, behind
the first ones or, where these do not tell the rows apart, behind the rows' numbers. What has many
lines is one longtable or several, which break between pages and have a caption.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from reports.kit.forms.fitting import fitting, num_telling
from reports.kit.forms.latex_text import WRITTEN_OUT, escaped
from reports.kit.table import Cell, Heading, Table

LINE = 66  # characters of an article's line in its own type
SURE = 50  # characters that fit on it whatever they are
MOST = 140  # characters that are still read when they are made as small as that line
MOST_LONG = 74  # characters of a line in the small type of a long table, which cannot be scaled
MANY_LINES = 34  # what fits on a page with headings and a caption
PROSE = 36  # characters on a line of a cell that goes on in further lines
GAP = 2  # characters between two columns
LEAST = 16  # of them where there is little room
PIECE = 8  # of a code behind which it may break
FIXED = 1.25  # of the width of a letter has one of fixed width
SMALL = 0.7  # of the width of a number's type has that of its detail
END = r" \tabularnewline"  # \raggedright in a cell takes \\ for the end of its own line


def to_latex(table: Table) -> str:
    """The table as one or several tabulars, or longtables where it has many lines."""
    columns, parts, long = _parts(table)
    if len(parts) > 1 and not _tells(table, parts):
        table = _numbered(table)
        columns, parts, long = _parts(table)
    lines: list[str] = []
    for places in parts:
        own = [columns[place] for place in places]
        rows = [[row[place] for place in places] for row in table.rows]
        continued = bool(lines)
        lines += [r"\par\medskip\noindent"] if continued else []
        if long:
            lines += _longtable(table, own, rows, continued)
        else:
            lines += _tabular(own, rows, sum(column.width + GAP for column in own) > SURE)
    # The end of the last line would be a blank at the end of the author's.
    return "\n".join([*_comment(table, lines), *lines]) + "%\n"


def _parts(table: Table) -> tuple[list[_Column], list[list[int]], bool]:
    """The columns, places of those of each part, and whether it breaks between pages."""
    columns, most = _laid_out(table, LINE, MOST), MOST
    width = sum(column.width + GAP for column in columns)
    # What is scaled down to the width of a line is as much less high, where it is one part.
    scale = LINE / width if LINE < width < MOST else 1.0
    if long := scale * sum(_num_lines(columns, row) for row in table.rows) > MANY_LINES:
        columns, most = _laid_out(table, MOST_LONG, MOST_LONG), MOST_LONG
    widths = [column.width + GAP for column in columns]
    telling = num_telling([[cell.text for cell in row] for row in table.rows])
    return columns, list(fitting(widths, telling, most)), long


def _tells(table: Table, parts: Sequence[Sequence[int]]) -> bool:
    """Whether the columns that stand in every part tell the rows apart."""
    repeated = set(parts[0]).intersection(*parts)
    return len({tuple(row[place] for place in repeated) for row in table.rows}) == len(table.rows)


def _numbered(table: Table) -> Table:
    """The same with the number of each row before it."""
    rows = tuple((Cell(str(number)), *row) for number, row in enumerate(table.rows, 1))
    return replace(table, columns=(Heading("row"), *table.columns), rows=rows)


@dataclass(frozen=True)
class _Column:
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
        lines = _folded(self.heading.label, self.width)
        one = " ".join(lines) if self.wraps else _stacked(lines, self.heading.align[0])
        return rf"\multicolumn{{2}}{{c}}{{{one}}}" if self.details == "beside" else one

    def cells(self, cell: Cell) -> str:
        """What stands in a row of it, the detail too unless that has a row of its own."""
        text, detail = escaped(cell.text), _small(cell)
        if self.heading.code and text:
            text = rf"\texttt{{{_in_pieces(cell.text) if self.wraps else text}}}"
        if self.details == "beside":
            return f"{text} & {detail}"
        said = text if self.details == "below" else " ".join(filter(None, (text, detail)))
        return rf"\raggedright {_breakable(said)}" if self.wraps and said else said


def _laid_out(table: Table, line: int, most: int) -> list[_Column]:
    """Details beside their numbers where that fits on a line, else below, and narrower texts."""
    places = range(len(table.columns))
    columns = [_column(table, place, below=False) for place in places]
    if sum(column.width + GAP for column in columns) <= line:
        return columns
    stacked = [_column(table, place, below=True) for place in places]
    # Below a cell of several lines, a detail would stand far from its number.
    columns = columns if any(column.wraps for column in stacked) else stacked
    fixed = sum(column.width for column in columns if not column.wraps) + GAP * len(columns)
    num_wrapping = sum(column.wraps for column in columns)
    share = (most - fixed) // max(1, num_wrapping)
    if share < LEAST:  # they go on in a further part, where there is room for them
        return columns
    return [replace(c, width=min(c.width, share)) if c.wraps else c for c in columns]


def _column(table: Table, place: int, *, below: bool) -> _Column:
    heading = table.columns[place]
    cells = [row[place] for row in table.rows]
    number = heading.align == "right"
    width = max((_length(one, below) for one in cells), default=0)
    wraps = heading.prose or (not number and width > PROSE)
    width = round(min(width, PROSE) if wraps else width * (FIXED if heading.code else 1))
    sharing = sum(one.group == heading.group for one in table.columns)
    width = max([width, *map(len, heading.label.split())])
    width = max([width, *(math.ceil(len(word) / sharing) for word in heading.group.split())])
    beside = number and any(one.detail for one in cells)
    details: Literal["beside", "below", "inside"] = "beside" if beside else "inside"
    return _Column(heading, width, wraps, "below" if below and not wraps else details)


def _tabular(
    columns: Sequence[_Column], rows: Sequence[Sequence[Cell]], scaled: bool
) -> Iterator[str]:
    if scaled:
        yield r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
    yield f"\\begin{{tabular}}{{@{{}}{''.join(c.spec for c in columns)}@{{}}}}"
    yield r"\toprule"
    yield from _head(columns)
    yield r"\midrule"
    yield from _body(columns, rows)
    yield r"\bottomrule"
    yield r"\end{tabular}" + ("}" if scaled else "")


def _longtable(
    table: Table, columns: Sequence[_Column], rows: Sequence[Sequence[Cell]], continued: bool
) -> Iterator[str]:
    title = escaped(table.title)
    first = rf"\caption{{{title}}}\label{{tab:{table.name}}}{END}"
    again = rf"\caption[]{{{title} (continued)}}{END}"
    if continued:  # under the number of the first one
        yield r"\addtocounter{table}{-1}"
    yield r"\begingroup\footnotesize\setlength{\tabcolsep}{3pt}"
    yield f"\\begin{{longtable}}{{@{{}}{''.join(c.spec for c in columns)}@{{}}}}"
    for above, end in ((again if continued else first, "firsthead"), (again, "head")):
        yield above
        yield r"\toprule"
        yield from _head(columns)
        yield rf"\midrule\end{end}"
    yield r"\bottomrule\endfoot"
    yield from _body(columns, rows)
    yield r"\end{longtable}"
    yield r"\endgroup"


def _head(columns: Sequence[_Column]) -> Iterator[str]:
    """The headings, below those of groups."""
    above, rules, place = [], [], 1
    for group, own in groupby(columns, key=lambda column: column.heading.group):
        members = list(own)
        span = sum(column.span for column in members)
        if group:
            lines = _folded(group, sum(column.width + GAP for column in members))
            rules.append(rf"\cmidrule(lr){{{place}-{place + span - 1}}}")
            above.append(rf"\multicolumn{{{span}}}{{c}}{{{_stacked(lines, 'c')}}}")
        else:
            above += [""] * span
        place += span
    if rules:
        yield " & ".join(above) + END
        yield " ".join(rules)
    yield " & ".join(column.label() for column in columns) + END


def _body(columns: Sequence[_Column], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    apart = False  # rows with details below them are told apart by a little room
    for row in rows:
        pairs = list(zip(columns, row, strict=True))
        if apart:
            yield r"\addlinespace"
        yield " & ".join(column.cells(cell) for column, cell in pairs) + END
        below = [_small(cell) if column.details == "below" else "" for column, cell in pairs]
        if apart := any(below):
            yield " & ".join(below) + END


def _comment(table: Table, lines: Sequence[str]) -> Iterator[str]:
    """What an author needs to know, at the top of the file."""
    text = "\n".join(lines)
    packages = ["booktabs"]
    packages += ["longtable"] if r"\begin{longtable}" in text else []
    packages += ["graphicx"] if r"\resizebox" in text else []
    said = [rf"\usepackage{{{','.join(packages)}}}"]
    if "longtable" not in packages:
        said += [rf"\caption{{{escaped(table.title)}}}\label{{tab:{table.name}}}"]
    said += textwrap.wrap(escaped(table.note), 96, break_long_words=False)
    if num_unknown := text.count(WRITTEN_OUT):
        said.append(f"{num_unknown} characters that LaTeX's own fonts lack stand as U+ and a code.")
    return (f"% {line}" for line in said)


def _num_lines(columns: Sequence[_Column], row: Sequence[Cell]) -> int:
    pairs = list(zip(columns, row, strict=True))
    lines = [math.ceil(_length(cell) / column.width) for column, cell in pairs if column.wraps]
    below = any(column.details == "below" and cell.detail for column, cell in pairs)
    return max([2 if below else 1, *lines])


def _length(cell: Cell, below: bool = False) -> int:
    """Characters of a cell's line, in the type of its text."""
    detail = round(SMALL * len(f" ({cell.detail})")) if cell.detail else 0
    return max(len(cell.text), detail) if below else len(cell.text) + detail


def _small(cell: Cell) -> str:
    return rf"{{\scriptsize ({escaped(cell.detail)})}}" if cell.detail else ""


def _folded(label: str, width: int) -> list[str]:
    """A heading in lines that are as wide as its column."""
    wide = max([width, *map(len, label.split())], default=1)
    folded = textwrap.wrap(label, max(wide, 1), break_long_words=False, break_on_hyphens=False)
    return [escaped(line) for line in folded]


def _stacked(lines: Sequence[str], align: str) -> str:
    joined = r"\\".join(lines)
    return rf"\shortstack[{align}]{{\strut {joined}}}" if len(lines) > 1 else joined


def _in_pieces(code: str) -> str:
    """Lets a checksum or a key break behind every few characters."""
    pieces = (code[start : start + PIECE] for start in range(0, len(code), PIECE))
    return r"\allowbreak ".join(escaped(piece) for piece in pieces)


def _breakable(text: str) -> str:
    """Lets long names break behind their underscores and slashes."""
    return text.replace(r"\_", r"\_\allowbreak ").replace("/", r"/\allowbreak ")
