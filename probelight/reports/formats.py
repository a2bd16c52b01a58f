r"""A table as csv, in Markdown, in LaTeX and on the terminal.

In LaTeX it is ready to be `\input`: booktabs rules, intervals in small type. A short table is a
tabular, with a suggested caption and label and the packages that it needs in a comment above; one
of many rows is a longtable, which breaks between pages. Text becomes ASCII that pdfLaTeX and
XeLaTeX set alike; characters that their fonts lack are written as `\texttt{U+4E2D}`, since LaTeX
itself would stop or leave a gap.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from probelight.io.escaping import as_cell, brief, markdown, visible
from probelight.reports.sections import printed
from probelight.reports.table import Cell, Column, Table
from probelight.results.load import RunSet, load_results

MANY_ROWS = 30  # what fits on a page with headings
PROSE = r">{\raggedright\arraybackslash}p{18em}"  # of a column of sentences
WRITTEN_OUT = r"\texttt{U+"
_WRITTEN = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",  # a letter of its own in some languages of babel
    "`": "{`}",
    "[": "{[}",  # after the end of a row both would be read as its argument
    "*": "{*}",
    "\n": " ",
    "\t": " ",
    "\0": "{}",  # between two hyphens, which would be set as a dash
}
_GREEK_CAPITALS = [chr(code) for code in range(0x391, 0x3AA) if code != 0x3A2]
_WRITTEN |= zip(
    [*"\u00a0\u2009\u202f–—‘’“”…•§£ßæÆœŒøØłŁı", *_GREEK_CAPITALS],
    r"~ \, \, -- --- ` ' `` '' \ldots{} \textbullet{} \S{} \pounds{} \ss{} \ae{} \AE{} \oe{} \OE{} "
    r"\o{} \O{} \l{} \L{} \i{} "
    # Those that look like a letter of ours have no command.
    r"A B $\Gamma$ $\Delta$ E Z H $\Theta$ I K $\Lambda$ M N $\Xi$ O $\Pi$ P $\Sigma$ T $\Upsilon$ "
    r"$\Phi$ X $\Psi$ $\Omega$".split(" "),
    strict=True,
)
_GREEK_SMALL = map(chr, range(0x3B1, 0x3CA))
_MATHS = (  # a check mark is in amssymb alone
    r"- \pm \times \cdot \div \leq \geq \neq \approx \rightarrow \leftarrow \uparrow \downarrow "
    r"\leftrightarrow \nearrow \searrow \surd \times \circ \bullet \infty ^\circ ^1 ^2 ^3 \mu "
    r"\alpha \beta \gamma \delta \epsilon \zeta \eta \theta \iota \kappa \lambda \mu \nu \xi o \pi "
    r"\rho \varsigma \sigma \tau \upsilon \phi \chi \psi \omega".split()
)
_SIGNS = [*"−±×·÷≤≥≠≈→←↑↓↔↗↘✓✗○●∞°¹²³µ", *_GREEK_SMALL]
_WRITTEN |= {sign: f"${maths}$" for sign, maths in zip(_SIGNS, _MATHS, strict=True)}
_ACCENTS = dict(
    zip(
        "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327",
        "`'^~=u.\"rHvc",
        strict=True,
    )
)
MOST_SIDEWAYS = 4  # rows that fit side by side
Widths = dict[int, int | None]  # by place of the column; None for as wide as needed
FRAME = 3  # the line before a cell, and a blank on each side of it


def to_csv(table: Table) -> str:
    """Return the frame as csv, floats in full, with no cell that a spreadsheet would execute."""
    filled = table.frame.astype(object).where(table.frame.notna(), "")
    cells = [
        [as_cell(value) if isinstance(value, str) else value for value in line]
        for line in filled.itertuples(index=False)
    ]
    # As objects, so that whole numbers of which one is missing stay whole.
    frame = pd.DataFrame(cells, columns=table.frame.columns, dtype=object)
    return str(frame.to_csv(index=False, lineterminator="\n"))


def to_markdown(table: Table) -> str:
    """Return the table in Markdown, padded to be readable as plain text."""
    heads = [f"{c.group}: {c.label}" if c.group else c.label for c in table.columns]
    body = [[f"{c.text} ({c.detail})" if c.detail else c.text for c in row] for row in table.rows]
    padded = []
    for column, cells in zip(table.columns, zip(heads, *body, strict=True), strict=True):
        texts = [markdown(cell) for cell in cells]
        width, right = max(3, *map(len, texts)), column.align == "right"
        texts.insert(1, f"{'-' * (width - 1)}:" if right else "-" * width)
        padded.append([text.rjust(width) if right else text.ljust(width) for text in texts])
    return "\n".join(f"| {' | '.join(line)} |" for line in zip(*padded, strict=True))


def to_latex(table: Table) -> str:
    """Return the table as a tabular, or as a longtable where it has many rows."""
    is_long = len(table.rows) > MANY_ROWS
    columns = table.columns
    labels = [(escaped(column.group), escaped(column.label)) for column in columns]
    heads = pd.MultiIndex.from_tuples(labels) if table.groups else [label for _, label in labels]
    cells = [[_latex_cell(*pair) for pair in zip(columns, row, strict=True)] for row in table.rows]
    title, label = escaped(table.title), f"tab:{table.name}"
    alignment = "".join(PROSE if column.prose else column.align[0] for column in columns)
    style = pd.DataFrame(cells, columns=heads).style.hide(axis="index")
    breaks = {"environment": "longtable", "caption": title, "label": label} if is_long else {}
    text: str = style.to_latex(
        column_format=f"@{{}}{alignment}@{{}}", multicol_align="c", hrules=True, **breaks
    )
    if table.groups:  # a rule below the heading of each group
        ends = accumulate(number for _, number in table.groups)
        rules = " ".join(
            rf"\cmidrule(lr){{{end - number + 1}-{end}}}"
            for end, (name, number) in zip(ends, table.groups, strict=True)
            if name
        )
        text = re.sub(r"(?<=\\toprule\n)(.*)", lambda line: f"{line[0]}\n{rules}", text)
    packages = ["booktabs", *(["longtable"] if is_long else [])]
    packages += ["array"] if any(column.prose for column in columns) else []
    comment = [rf"\usepackage{{{','.join(packages)}}}"]
    comment += [] if is_long else [rf"\caption{{{title}}}\label{{{label}}}"]
    comment += textwrap.wrap(escaped(table.note), 96, break_long_words=False)
    if num_unknown := text.count(WRITTEN_OUT):
        comment.append(
            f"{num_unknown} characters that LaTeX's own fonts lack are written as U+ and a code."
        )
    # Without the last % the line's end would be a blank in the author's text.
    return "".join(f"% {line}\n" for line in comment) + text.rstrip("\n") + "%\n"


def _latex_cell(column: Column, cell: Cell) -> str:
    text = escaped(cell.text)
    if column.code and text:
        text = rf"\texttt{{{text}}}"
    detail = rf"{{\scriptsize ({escaped(cell.detail)})}}" if cell.detail else ""
    return f"{text} {detail}".strip()


def escaped(text: str) -> str:
    """Return the text with all that is special to LaTeX, or that its fonts lack, escaped."""
    apart = re.sub("-(?=-)", "-\0", visible(unicodedata.normalize("NFC", text)))
    return "".join(map(_character, apart))


@cache
def _character(character: str) -> str:
    if character in _WRITTEN:
        return _WRITTEN[character]
    if character.isascii():
        return character
    base, *marks = list(unicodedata.normalize("NFD", character))
    if len(marks) == 1 and marks[0] in _ACCENTS and base.isascii():
        return f"\\{_ACCENTS[marks[0]]}{{{base}}}"
    return f"{WRITTEN_OUT}{ord(character):04X}}}"


def print_tables(folder: Path, protocol: str, *, is_saved: bool = True) -> RunSet:
    """Print notices and tables of one protocol, and where they are kept; return all results."""
    # In a notebook, rich would show the tables itself, although a Python call prints nothing.
    console = Console(force_jupyter=False)
    results = load_results(folder)
    for notice in results.notices:
        console.print(Text(brief(f"notice: {notice}"), style="yellow"))
    for table in printed(protocol, results):
        print_table(table, console)
    if is_saved:
        console.print(Text(visible(f"results: {folder / 'results.csv'}")), soft_wrap=True)
    return results


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
    views: list[Widths] = [dict.fromkeys(range(len(heads)))]
    if needed > console.width and not is_turned:
        heads, cells = _texts(table, "\n")
        views = list(_views(heads, cells, console.width))
    title = table.title
    for widths in views:
        view = RichTable(title=Text(title), title_justify="left", title_style="bold")
        view.show_header = not is_turned
        for index, width in widths.items():
            view.add_column(Text(heads[index]), justify=aligns[index], overflow="fold", width=width)
        for row in cells:
            view.add_row(*(Text(row[index]) for index in widths))
        console.print(view)
        title = f"{table.title} (continued)"
    console.print(Text(table.note, style="dim"))


def _texts(table: Table, gap: str) -> tuple[list[str], list[list[str]]]:
    """Return headings and cells as text, with a gap between group and label, number and detail."""
    heads = [f"{column.group}{gap}{column.label}".strip() for column in table.columns]
    return heads, [[f"{c.text}{gap}{c.detail}".strip() for c in row] for row in table.rows]


def _views(labels: Sequence[str], cells: Sequence[Sequence[str]], most: int) -> Iterator[Widths]:
    """Yield the columns that fit side by side, with their widths; the first one may be folded.

    The first columns (at most three) are repeated, as many as identify the rows.
    """
    # A heading may be folded between its words, a number with its interval may not.
    widths = [
        FRAME + max(len(group) for text in (*column, *label.split()) for group in text.split("\n"))
        for label, column in zip(labels, zip(*cells, strict=True), strict=True)
    ]
    widths[0] = min(widths[0], most // 3)
    repeated = next((n for n in (1, 2, 3) if len({(*row[:n],) for row in cells}) == len(cells)), 1)
    if sum(widths[:repeated]) > most // 2:
        repeated = 1
    first: Widths = {0: None, **{index: widths[index] - FRAME for index in range(1, repeated)}}
    group, used_width = first, sum(widths[:repeated])
    for index, width in enumerate(widths[repeated:], start=repeated):
        if len(group) > repeated and used_width + width >= most:
            yield group
            group, used_width = first, sum(widths[:repeated])
        group, used_width = {**group, index: width - FRAME}, used_width + width
    yield group


def page_line(page_path: Path) -> str:
    """Return the line that says where a page is, so that it can be opened from any folder."""
    return f"page: {page_path.resolve()}"
