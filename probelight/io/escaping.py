"""Texts of items, probes and models made harmless in output: terminals, spreadsheets, pages.

`visible` is for people (terminal, pages, figures) and cannot be undone; `as_cell` and `json_text`
are for files that are read again, and can.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

# C0 but tab and line feed, DEL, C1, separators of lines, marks that turn the direction of text,
# halves of characters, and what XML has no place for.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
MOST_MESSAGE = 1_000  # characters
MOST_LISTED = 12
_LONG_WORD = re.compile(r"(\S{60})(\S{40,})(\S{30})")
_LONG_LIST = re.compile(r"(?<!\S)((?:[^,]{1,80}, ){12})((?:[^,]{1,80}, ){8,})")
_FORMULA = ("=", "+", "-", "@", "\t")
_QUOTE = "'"  # what a spreadsheet takes as "text follows"
_MARKDOWN = re.compile(r"[\\`*\[\]|]")
_ADDRESS = re.compile(r"(?<=\w)://|@|\b(?<=www)\.", re.IGNORECASE)


def visible(text: str) -> str:
    r"""Return a text with control characters written out, as `\x1b`; line feeds and tabs stay."""

    def escaped(match: re.Match[str]) -> str:
        code = ord(match[0])
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return _CONTROL.sub(escaped, text)


def brief(message: str) -> str:
    """Return a message `visible`, and a long one without the middle of its words, lists and texts.

    What it quotes of a file, an option or a library may have any length.
    """
    text = visible(message)
    if len(text) > MOST_MESSAGE:
        text = _LONG_WORD.sub(r"\1...\3", text)
    if len(text) > MOST_MESSAGE:
        text = _LONG_LIST.sub(lambda f: f"{f[1]}... ({f[2].count(', '):,} more), ", text)
    if (num_more := len(text) - MOST_MESSAGE) > 0:
        text = f"{text[:600]} ... ({num_more:,} characters) ... {text[600 + num_more :]}"
    return text


def listed(names: Sequence[str]) -> str:
    """Return names with commas between them, of many the first ones and how many more."""
    more = f", ... ({len(names) - MOST_LISTED:,} more)" if len(names) > MOST_LISTED else ""
    return brief(", ".join(names[:MOST_LISTED]) + more)


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a JSON value with each of its texts, numbers and keys changed."""
    if isinstance(value, list | tuple):
        return [mapped(item, change) for item in value]
    if isinstance(value, dict):
        return {change(key): mapped(item, change) for key, item in value.items()}
    return change(value)


def all_visible(value: Any) -> Any:
    """Return a JSON value with all its texts `visible`."""
    return mapped(value, lambda item: visible(item) if isinstance(item, str) else item)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON that a terminal shows as it is; infinity and NaN become null."""

    def finite(item: Any) -> Any:
        return None if isinstance(item, float) and not math.isfinite(item) else item

    encode = _encoder(indent).encode
    try:
        text = encode(value)
    except ValueError:  # most values are finite, and copying them takes longer than the rest
        text = encode(mapped(value, finite))
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


@cache
def _encoder(indent: int | None) -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, indent=indent, allow_nan=False)


def as_cell(text: str) -> str:
    """Return a text as a csv cell that no spreadsheet takes for a formula; `from_cell` undoes it.

    A text that begins like a formula gets an apostrophe in front; one with control characters
    becomes JSON behind an apostrophe.
    """
    if _CONTROL.search(text):
        return _QUOTE + json_text(text)
    would_change = text.startswith(_FORMULA) or from_cell(text) != text
    return _QUOTE + text if would_change else text


def from_cell(cell: str) -> str:
    """Return the text that `as_cell` made the cell of; any other cell as it is."""
    if cell.startswith(f'{_QUOTE}"'):
        try:
            return str(json.loads(cell[1:]))
        except ValueError:
            return cell
    return cell[1:] if cell[:1] == _QUOTE and cell[1:].startswith((*_FORMULA, _QUOTE)) else cell


def markdown(text: str) -> str:
    """Return a text as one line of Markdown without HTML, link, emphasis or cell of a table."""
    text = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _ADDRESS.sub(lambda match: f"&#{ord(match[0][0])};{match[0][1:]}", text)
    return _MARKDOWN.sub(r"\\\g<0>", text).replace("\n", " ")
