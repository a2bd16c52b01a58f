"""The one door for values into settings: pydantic checks them, and every mistake is one line.

`typed` takes what a file says, `checked` the arguments of a function or a class, from a command
line or from Python. pydantic is imported when the first value is checked: a command's help does
without, and takes half as long.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from probelight.io.errors import ProbelightError, UsageError, nearest

T = TypeVar("T")
# As pydantic_core's, which jsonargparse would import even where only types are checked: --help of
# each command would wait for it.
ErrorDetails = Mapping[str, Any]
# What a dataclass that is read declares as its `__pydantic_config__`; those inside it follow.
STRICT = {"strict": True, "extra": "forbid"}
STRANGE = "unexpected_keyword_argument"  # pydantic's error of an unknown key
# Which of several types pydantic tried.
_UNION_TAG = re.compile(r"int|float|bool|str|none|[A-Z]\w*|.*[\[(].*")
# By pydantic's errors of types, what is needed.
MEANT = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping of keys to values",
}

_NO_TEXT = {"int_type", "float_type", "bool_type"}


class RangeError(ProbelightError, ValueError):
    """A setting's value is out of its range; the message names both."""


def typed(
    kind: type[T],
    value: object,
    location: str,
    error_type: type[Exception] = ValueError,
    within: str = "",
) -> T:
    """Return a parsed JSON or YAML value as a dataclass that declares `STRICT`.

    Raise `error_type` if a key is unknown or missing, or a value is of another type; the message
    names the file (`location`), the key (below the key `within`) and what it must be.
    """

    def name_of(key: str) -> str:
        return f"{location}: {f'`{key}`' if key else 'it'}"

    return cast(T, validated(kind, value, within, name_of, error_type, of_file=location))


def as_settings(kind: type[T], settings: T | Mapping[str, Any], name: str) -> T:
    """Return settings of a kind, made of a mapping where they are none; UsageError names a key."""
    if isinstance(settings, Mapping):
        return typed(kind, dict(settings), name, UsageError)
    if not isinstance(settings, kind):
        raise UsageError(f"{name} {settings!r}: give {kind.__name__} or a mapping of its fields")
    return settings


def checked(
    declared: Callable[..., Any], values: Mapping[str, Any], name_of: Callable[[str], str]
) -> dict[str, Any]:
    """Return values converted by the types of a function's or class's arguments; others unchanged.

    Args:
        declared: The function or class.
        values: Its arguments by name: parsed and plain, or objects.
        name_of: Returns a setting's name in messages, such as "--epochs" for "epochs".

    Raises:
        RangeError: At the first value that is not allowed.
    """
    converted = dict(values)
    if not values:  # defaults are made while modules are imported
        return converted
    for name, hint in hints_of(declared).items():
        if name in values:
            converted[name] = validated(hint, values[name], name, name_of, RangeError)
    return converted


@cache
def hints_of(declared: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotated types of a function's or a class's arguments."""
    is_plain_class = isinstance(declared, type) and not is_dataclass(declared)
    return get_type_hints(declared.__init__ if is_plain_class else declared, include_extras=True)


def lists_of(declared: Callable[..., Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of the arguments that are lists, those of nested settings too."""
    for name, hint in hints_of(declared).items():
        is_annotated = get_origin(hint) is Annotated
        hint = get_args(hint)[0] if is_annotated else hint
        for member in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
            if is_dataclass(member):
                yield from lists_of(member, f"{prefix}{name}.")  # type: ignore[arg-type]
            elif name != "return" and get_origin(member) in (list, tuple, Sequence):
                yield f"{prefix}{name}"


S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Settings:
    """A dataclass of settings that checks its own values, however it was made.

    It is a dataclass itself: jsonargparse takes one with another parent for a class to choose.
    """

    __pydantic_config__: ClassVar = STRICT

    def __post_init__(self) -> None:
        kind: Any = type(self)  # classes are hashable
        changes = {name: v for name, v in vars(self).items() if v != _defaults(kind)[name]}
        for name, value in checked(kind, changes, lambda key: f"{kind.__name__}.{key}").items():
            object.__setattr__(self, name, value)


@cache
def _defaults(kind: type[Any]) -> dict[str, Any]:
    """Return the default of each field."""
    return {
        field.name: field.default if field.default_factory is MISSING else field.default_factory()
        for field in fields(kind)
    }


def settings_from(kind: type[S], config: Mapping[str, Any]) -> S:
    """Make settings from the values of `dataclasses.asdict`; RangeError names the first bad one."""
    return typed(kind, config, kind.__name__, RangeError)


def validated(
    hint: Any,
    value: object,
    within: str,
    name_of: Callable[[str], str],
    error_type: type[Exception],
    *,
    of_file: str = "",
) -> Any:
    """Return a value as a type has it: the one door to settings, whoever gives them.

    Args:
        hint: The type, with its limits; what pydantic does not know must be an instance.
        value: Parsed and plain, or objects.
        within: The key of the value itself.
        name_of: Returns how messages name a key, such as "grid.sizes[1]".
        error_type: Raised at the first mistake.
        of_file: The file that the value is from: of that nothing is converted.
    """
    from pydantic import ValidationError
    from pydantic_core import PydanticSerializationError, to_json

    try:
        if not of_file:
            return _adapter(hint).validate_python(value, strict=hint is bool)
        # Only of JSON does it strictly make a tuple of a list and a dataclass of a mapping.
        return _adapter(hint).validate_json(to_json(value, fallback=_of_numpy))
    except PydanticSerializationError as error:  # half of a character
        raise error_type(f"{of_file}: {error}") from None
    except ValidationError as errors:
        # A mistyped key is what leaves a needed one missing.
        first, *_ = sorted(
            errors.errors(include_url=False),
            key=lambda error: (error["type"] != STRANGE, error["type"] == "missing"),
        )
        key = (within + _key_of(first, value)).removeprefix(".")
        raise error_type(f"{name_of(key)}{_explained(hint, first, bool(of_file))}") from None


def _of_numpy(number: Any) -> Any:
    if not hasattr(number, "tolist"):
        raise ValueError(f"a {type(number).__name__} is no setting; give plain values")
    return number.tolist()


@cache
def _adapter(hint: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    if is_dataclass(hint) or is_typeddict(hint):  # they have a config of their own
        return TypeAdapter(hint)
    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


def _key_of(error: ErrorDetails, value: Any) -> str:
    """Return the wrong key below a value, such as ".sizes[1]"."""
    key = ""
    for step in error["loc"]:
        is_key = isinstance(value, Mapping) and step in value
        if not isinstance(step, int) and not is_key and _UNION_TAG.fullmatch(step):
            continue
        key += f"[{step}]" if isinstance(step, int) else f".{step}"
        with suppress(LookupError, TypeError):
            value = value[step]
    return key


def _explained(hint: Any, error: ErrorDetails, is_of_file: bool) -> str:
    """Return what follows the name of a wrong key: what it is, and what it must be."""
    wrong, needed = error["input"], MEANT.get(error["type"])
    needed = needed or error["msg"].removeprefix("Input should be ")
    reason = str(error["ctx"]["error"]) if error["type"] == "value_error" else ""
    if error["type"] == "missing":
        return " is missing"
    if error["type"] == STRANGE:
        *outer, last = error["loc"]
        declared: Any = _dataclass_in(hint)
        for step in outer:
            declared = _dataclass_in(get_type_hints(declared).get(str(step))) or declared
        return f" is not a known key{nearest(last, [field.name for field in fields(declared)])}"
    if is_of_file and reason:
        return f" is {wrong!r}: {reason}" if reason.startswith("give ") else f" {reason}"
    if is_of_file:
        near = nearest(wrong, needed.split("'")[1::2])
        return f" must be {needed}, not {_shortened(repr(wrong))}{near}"
    if reason and isinstance(wrong, Mapping):  # that of a section names its key itself
        return f": {reason}"
    if error["type"] == "dataclass_type":
        needed = f"{error['ctx']['class_name']} or a mapping of its fields"
    is_quoted = error["type"] in _NO_TEXT and isinstance(wrong, str)
    text = repr(wrong) if is_quoted else _as_typed(wrong)
    return f" {text}: {reason or f'give {needed}'}"


def _dataclass_in(hint: Any) -> Any:
    if is_dataclass(hint):
        return hint
    return next(filter(None, map(_dataclass_in, get_args(hint))), None)


def _as_typed(value: Any) -> str:
    """Return a value for messages as it is typed: shortened, and in quotes where it is blank."""
    if value and isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return _shortened(str(value) if str(value).strip() else repr(value))


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}..."
