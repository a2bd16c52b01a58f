"""The csv files of published numbers, checked when they are read."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Reader = Callable[[str], object]
PUBLISHED_DIR = Path(__file__).with_name("published")


class PublishedError(ValueError):
    """A file of published numbers that is not what it should be; the message names the line."""


def read_rows(name: str, **readers: Reader) -> list[dict[str, Any]]:
    """A file's rows by column; every row is as long as the header.

    Args:
        name: The file.
        **readers: What it must have besides table, probe and model, and how each is read.

    Raises:
        PublishedError: If the file is damaged; the message names the line.
    """
    path = PUBLISHED_DIR / name
    readers = {"table": whole_number, "probe": str, "model": str, **readers}
    found = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, [])
            if missing := readers.keys() - set(header):
                raise PublishedError(f"{path}:1: no column {', '.join(sorted(missing))}")
            for cells in lines:
                place = f"{path}:{lines.line_num}"
                if len(cells) != len(header):
                    raise PublishedError(f"{place}: {len(cells)} cells, the header {len(header)}")
                row = dict(zip(header, cells, strict=True))
                found.append({name: _value(row, name, readers[name], place) for name in readers})
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise PublishedError(f"{path}: cannot be read ({error})") from error
    if not found:
        raise PublishedError(f"{path}: no row is there")
    return found


def _value(row: Mapping[str, str], name: str, read: Reader, place: str) -> object:
    try:
        return read(row[name])
    except ValueError as error:
        raise PublishedError(f"{place}: {name} is {row[name]!r}, not {error}") from error


def share_if_any(text: str) -> float | None:
    """Per cent as a fraction; None where the table has no number.

    Raises:
        ValueError: If it is neither.
    """
    return measured_share(text) if text else None


def measured_share(text: str) -> float:
    """A number of per cent, which must be there, as a fraction.

    Raises:
        ValueError: If it is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= 100:
        raise ValueError("a number of per cent")
    return value / 100


def whole_number(text: str) -> int:
    """A number of a table, or of choices.

    Raises:
        ValueError: If it is none.
    """
    if not text.isdecimal():
        raise ValueError("a whole number")
    return int(text)
