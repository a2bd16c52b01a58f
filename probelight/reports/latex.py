r"""Tables in LaTeX, ready to be `\input`: booktabs rules, intervals in small type.

A short table is a tabular, with a suggested caption and label and the packages that it needs in a
comment above; one of many rows is a longtable, which breaks between pages. Text becomes ASCII that
pdfLaTeX and XeLaTeX set alike; characters that their fonts lack are written as `\texttt{U+4E2D}`,
since LaTeX itself would stop or leave a gap.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from functools import cache
from itertools import accumulate

import pandas as pd

from probelight.io.escaping import visible
from probelight.reports.table import Cell, Column, Table

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


def to_latex(table: Table) -> str:
    """Return the table as a tabular, or as a longtable where it has many rows."""
    is_long = len(table.rows) > MANY_ROWS
    columns = table.columns
    labels = [(escaped(column.group), escaped(column.label)) for column in columns]
    heads = pd.MultiIndex.from_tuples(labels) if table.groups else [label for _, label in labels]
    cells = [[_cell(*pair) for pair in zip(columns, row, strict=True)] for row in table.rows]
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


def _cell(column: Column, cell: Cell) -> str:
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
