"""What a file holds as a typed value: pydantic checks it, one line says what is wrong and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from probelight.io.errors import nearest

if TYPE_CHECKING:  # it takes a tenth of a second, which commands that read no file do without
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

T = TypeVar("T")
# What a dataclass that is read declares as its `__pydantic_config__`; those inside it follow.
STRICT = {"strict": True, "extra": "forbid"}
_MEANT = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping of keys to values",
}


def typed(kind: type[T], value: object, place: str, error_type: type[Exception] = ValueError) -> T:
    """A parsed JSON or YAML value as a dataclass that declares `STRICT`.

    Args:
        kind: The dataclass.
        value: What the file holds.
        place: How messages call the file.
        error_type: What is raised.

    Raises:
        Exception: If a key is unknown or missing, or a value is of another type; the message names
            the key and what it must be.
    """
    from pydantic import ValidationError
    from pydantic_core import PydanticSerializationError, to_json

    try:  # only of JSON does it strictly make a tuple of a list and a dataclass of a mapping
        adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]  # classes are hashable
        return adapter.validate_json(to_json(value))
    except PydanticSerializationError as error:  # half of a character
        raise error_type(f"{place}: {error}") from None
    except ValidationError as errors:
        found = errors.errors(include_url=False)
        # A mistyped key is what leaves a needed one missing.
        first = min(found, key=lambda one: one["type"] != "unexpected_keyword_argument")
        raise error_type(f"{place}: {_said(kind, first)}") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _said(kind: type, error: ErrorDetails) -> str:
    *outer, last = error["loc"] or [""]
    key = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in error["loc"])
    key = f"`{key.removeprefix('.')}`" if key else "it"
    match error["type"]:
        case "missing":
            return f"{key} is missing"
        case "unexpected_keyword_argument":
            return f"{key} is no key{nearest(last, _keys(kind, outer))}"
        case "value_error":
            return f"{key} {error['ctx']['error']}"
    meant = _MEANT.get(error["type"]) or error["msg"].removeprefix("Input should be ")
    value = repr(error["input"])
    shown = value if len(value) <= 80 else f"{value[:80]}..."
    near = nearest(error["input"], meant.split("'")[1::2])
    return f"{key} must be {meant}, not {shown}{near}"


def _keys(kind: Any, place: Sequence[object]) -> list[str]:
    """The keys of the dataclass at a place inside another one."""
    for part in place:
        kind = _dataclass_in(get_type_hints(kind).get(str(part))) or kind
    return [field.name for field in fields(kind)]


def _dataclass_in(hint: Any) -> Any:
    if is_dataclass(hint):
        return hint
    return next(filter(None, map(_dataclass_in, get_args(hint))), None)
