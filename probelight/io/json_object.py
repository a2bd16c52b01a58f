"""JSON that was written elsewhere: what is wrong with it, said before anything is made of it."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, NoReturn

from probelight.io.errors import RecordError
from probelight.io.limits import MAX_INTEGER, MAX_JSON_DEPTH


def json_object(text: str, needed: str = "an object is needed", hint: str = "") -> dict[str, Any]:
    """The JSON object of one line.

    Args:
        text: The line.
        needed: What is said where it is another value.
        hint: What is said behind that, and behind invalid JSON.

    Raises:
        RecordError: If it is none, or gives a key twice; the message does not say where.
    """
    try:
        row = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise RecordError(f"invalid JSON: {error.msg} at character {error.pos + 1}{hint}") from None
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, a thousand brackets
        raise RecordError(f"invalid JSON: {error}") from None
    try:
        json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:  # "\\ud800": no file can hold it, no tokenizer takes it
        half = error.object[error.start]
        raise RecordError(f"\\u{ord(half):04x} is half of a character; write the whole") from None
    if not isinstance(row, dict):
        raise RecordError(f"{kind_of(row)}, where {needed}{hint}")
    return row


def finite_json(text: str) -> Any:
    """The JSON value that this program wrote: no number is infinite, NaN or of over 64 bits.

    Raises:
        ValueError: If it is no JSON, holds such a number, or values within values without end.
    """
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, parse_int=_of_64_bits
        )
        if isinstance(value, dict | list):
            _check_depth(value, MAX_JSON_DEPTH)
    except RecursionError:
        raise _too_deep() from None
    return value


def kind_of(value: object) -> str:
    """What a JSON value is, for messages."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    names |= {int: "a number", float: "a number", type(None): "missing or null"}
    return names.get(type(value), f"a {type(value).__name__}")


def _finite(digits: str) -> float:
    if math.isinf(value := float(digits)):
        raise RecordError(f"the number {digits[:40]} is too large")
    return value


def _of_64_bits(digits: str) -> int:
    if len(digits) > len(str(MAX_INTEGER)) + 1 or abs(value := int(digits)) > MAX_INTEGER:
        raise RecordError(f"a number of {len(digits):,} digits is too large: {digits[:40]}...")
    return value


def _check_depth(value: dict[str, Any] | list[Any], left: int) -> None:
    if not left:
        raise _too_deep()
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, dict | list):
            _check_depth(item, left - 1)


def _too_deep() -> RecordError:
    return RecordError(f"values within values more than {MAX_JSON_DEPTH} times")


def _no_constant(constant: str) -> NoReturn:
    raise RecordError(f"invalid JSON: {constant} is not a JSON value")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses a key given twice, where JSON would silently keep the last: two golds, say."""
    row = dict(pairs)
    if len(row) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise RecordError(f"the key {key!r} is given twice in one object")
    return row
