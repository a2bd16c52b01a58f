r"""A table for a paper in LaTeX, ready to be `\input`: booktabs rules, intervals in small type.

A short table is a tabular without a float, so that its place, caption and label are the author's;
a title and a label stand above it in a comment, with the packages that it needs. What is wider than
a line is scaled down to it; columns that would be too small then go on in a further tabular, behind
the first ones or, where these do not tell the rows apart, behind the rows' numbers. What has many
lines is one longtable or several, which break between pages and have a caption.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from probelight.reports.kit.forms.fitting import fitting, num_telling
from probelight.reports.kit.forms.latex_columns import (
    GAP,
    Column,
    folded,
    laid_out,
    num_lines,
    small,
    stacked,
)
from probelight.reports.kit.forms.latex_text import WRITTEN_OUT, escaped
from probelight.reports.kit.table import Cell, Heading, Table

LINE = 66  # characters of an article's line in its own type
SURE = 50  # characters that fit on it whatever they are
MOST = 140  # characters that are still read when they are made as small as that line
MOST_LONG = 74  # characters of a line in the small type of a long table, which cannot be scaled
MANY_LINES = 34  # what fits on a page with headings and a caption
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


def _parts(table: Table) -> tuple[list[Column], list[list[int]], bool]:
    """The columns, places of those of each part, and whether it breaks between pages."""
    columns, most = laid_out(table, LINE, MOST), MOST
    width = sum(column.width + GAP for column in columns)
    # What is scaled down to the width of a line is as much less high, where it is one part.
    scale = LINE / width if LINE < width < MOST else 1.0
    if long := scale * sum(num_lines(columns, row) for row in table.rows) > MANY_LINES:
        columns, most = laid_out(table, MOST_LONG, MOST_LONG), MOST_LONG
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


def _tabular(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], scaled: bool
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
    table: Table, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], continued: bool
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


def _head(columns: Sequence[Column]) -> Iterator[str]:
    """The headings, below those of groups."""
    above, rules, place = [], [], 1
    for group, own in groupby(columns, key=lambda column: column.heading.group):
        members = list(own)
        span = sum(column.span for column in members)
        if group:
            lines = folded(group, sum(column.width + GAP for column in members))
            rules.append(rf"\cmidrule(lr){{{place}-{place + span - 1}}}")
            above.append(rf"\multicolumn{{{span}}}{{c}}{{{stacked(lines, 'c')}}}")
        else:
            above += [""] * span
        place += span
    if rules:
        yield " & ".join(above) + END
        yield " ".join(rules)
    yield " & ".join(column.label() for column in columns) + END


def _body(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    apart = False  # rows with details below them are told apart by a little room
    for row in rows:
        pairs = list(zip(columns, row, strict=True))
        if apart:
            yield r"\addlinespace"
        yield " & ".join(column.cells(cell) for column, cell in pairs) + END
        below = [small(cell) if column.details == "below" else "" for column, cell in pairs]
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
