r"""Any text as LaTeX that pdfLaTeX and XeLaTeX set alike, in ASCII and without a package.

What neither font has by default, such as a Chinese word, is written as its code point in fixed
width (`\texttt{U+4E2D}`): it is seen, where LaTeX itself would stop or leave a gap.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from probelight.io.escaping import visible

WRITTEN_OUT = r"\texttt{U+"
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",  # a letter of its own in some languages of babel
    "`": "{`}",
    "[": "{[}",  # behind the end of a row both would be read as its argument
    "*": "{*}",
    "\n": " ",
    "\t": " ",
} | {character: f"\\{character}" for character in "&%$#_{}"}
_SIGNS = {
    "\u00a0": "~",
    "\u2009": r"\,",
    "\u202f": r"\,",
    "–": "--",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
    "•": r"\textbullet{}",
    "§": r"\S{}",
    "£": r"\pounds{}",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
}
_MATHS = {
    "−": "-",
    "±": r"\pm",
    "×": r"\times",
    "·": r"\cdot",
    "÷": r"\div",
    "≤": r"\leq",
    "≥": r"\geq",
    "≠": r"\neq",
    "≈": r"\approx",
    "→": r"\rightarrow",
    "←": r"\leftarrow",
    "↑": r"\uparrow",
    "↓": r"\downarrow",
    "↔": r"\leftrightarrow",
    "↗": r"\nearrow",
    "↘": r"\searrow",
    "✓": r"\surd",  # a check mark is in amssymb alone
    "✗": r"\times",
    "○": r"\circ",
    "●": r"\bullet",
    "∞": r"\infty",
    "°": r"^\circ",
    "¹": "^1",
    "²": "^2",
    "³": "^3",
    "µ": r"\mu",
}
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
}
_GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (FINAL SIGMA|[A-Z]+)")
# Capitals that look like a letter of ours have no command in LaTeX.
_AS_LATIN = dict(
    zip(
        "ALPHA BETA EPSILON ZETA ETA IOTA KAPPA MU NU OMICRON RHO TAU CHI".split(),
        "ABEZHIKMNOPTX",
        strict=True,
    )
)


def escaped(text: str) -> str:
    """The text with everything that LaTeX would act on, or has no letter for, written for it."""
    apart = re.sub("-(?=-)", "-\0", visible(unicodedata.normalize("NFC", text)))
    return "".join(_character(one) for one in apart)


def num_letters(text: str) -> int:
    """About as many letters as it is wide: a code point in fixed width is as wide as nine."""
    return len(text) + 8 * escaped(text).count(WRITTEN_OUT)


@cache
def _character(one: str) -> str:
    if one == "\0":  # between two hyphens, which would be set as a dash
        return "{}"
    if (known := _SPECIAL.get(one) or _SIGNS.get(one)) is not None:
        return known
    if one in _MATHS:
        return f"${_MATHS[one]}$"
    if one.isascii():
        return one
    base, *marks = list(unicodedata.normalize("NFD", one))
    if len(marks) == 1 and marks[0] in _ACCENTS and base.isascii():
        return f"\\{_ACCENTS[marks[0]]}{{{base}}}"
    if letter := _GREEK.fullmatch(unicodedata.name(one, "")):
        return _greek(*letter.groups())
    return f"{WRITTEN_OUT}{ord(one):04X}}}"


def _greek(size: str, name: str) -> str:
    if name == "FINAL SIGMA":
        return r"$\varsigma$"
    if name == "OMICRON" and size == "SMALL":
        return "$o$"
    if size == "CAPITAL" and name in _AS_LATIN:
        return _AS_LATIN[name]
    command = name.replace("LAMDA", "LAMBDA").lower()
    return f"$\\{command if size == 'SMALL' else command.capitalize()}$"
