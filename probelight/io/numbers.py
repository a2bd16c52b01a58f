"""Numbers that users write in tables, JSON lines and options: one reading for all of them."""

from __future__ import annotations

import math
import re

_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
_TOO_LARGE = 2**1023
_INFINITY = re.compile(r"[-+]?inf(inity)?", re.IGNORECASE)


def number_of(value: object, *, finite: bool = True) -> float:
    """Return a number, or that of its text in ASCII digits; nan for whatever is none.

    To Python `True` is 1, "1_000" is 1000, and digits of any script are digits: here they are
    none, nor is a number too large for a float. Infinities are only numbers if not `finite`.
    """
    if isinstance(value, str):
        text = value.strip()
        if _INFINITY.fullmatch(text):
            return math.nan if finite else float(text)
        number = float(text) if _DECIMAL.fullmatch(text) else math.nan
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    elif not finite and isinstance(value, float):
        return value
    else:
        number = float(value) if abs(value) < _TOO_LARGE else math.nan
    return number if math.isfinite(number) else math.nan


def whole_number_of(value: object) -> int | None:
    """Return a number without a fraction, or that of its text; None for whatever is none."""
    number = number_of(value)
    return int(number) if number.is_integer() else None
