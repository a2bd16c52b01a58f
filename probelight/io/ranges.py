"""Ranges of settings, declared with their types and checked by pydantic.

    epochs: NumEpochs = 4                                # an int to the type checker
    report_share: Share = 0.2
    sizes: Annotated[list[NumItems], Distinct(1)] = ...

`checked` checks values by the hints of a function, a class or a dataclass: those of a command line
or a YAML file, and those from Python to `Settings` or to a command's function. The upper bounds
are far above what is of use; they tell a slip from a wish. pydantic is imported when the first
value is checked: a command's help does without, and takes half as long.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from probelight.io.documents import MEANT, STRICT, typed
from probelight.io.errors import ProbelightError

# Which of several types pydantic tried.
_UNION_TAG = re.compile(r"int|float|bool|str|none|[A-Z]\w*|.*[\[(].*")


class RangeError(ProbelightError, ValueError):
    """A setting's value is out of its range; the message names both."""


class Limit:
    """A condition on a value in addition to its type; its text says what to give."""

    def admits(self, value: Any) -> bool:
        """Return whether a value of the type is allowed."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core.core_schema import no_info_wrap_validator_function

        def check(value: Any, convert: Callable[[Any], Any]) -> Any:
            # To pydantic true is the number 1, and infinity is of no type.
            is_number = isinstance(value, int | float)
            if isinstance(value, bool) or not self.admits(value if is_number else convert(value)):
                raise ValueError(f"give {self}")
            return convert(value)

        return no_info_wrap_validator_function(check, handler(source))


@dataclass(frozen=True)
class Within(Limit):
    """The numbers from `low` to `high`.

    Args:
        low: The smallest.
        high: The largest.
        above: `low` itself is too small.
        below: `high` itself is too large.
        also: Numbers outside that have a meaning, with that meaning.
    """

    low: float
    high: float
    above: bool = False
    below: bool = False
    also: tuple[tuple[float, str], ...] = ()

    def admits(self, value: Any) -> bool:
        """Return whether a number is in the range, or has a meaning outside of it."""
        if any(value == number for number, _ in self.also):
            return True
        low = self.low < value if self.above else self.low <= value
        high = value < self.high if self.below else value <= self.high
        return bool(low and high)  # false for nan

    def __str__(self) -> str:
        if self.above or self.below:
            low = f"{'more than' if self.above else 'at least'} {self.low}"
            range_ = f"{low} and {'less than' if self.below else 'at most'} {self.high}"
        else:
            range_ = f"from {self.low} to {self.high}"
        also = [f"{number} ({meaning})" for number, meaning in self.also]
        return " or ".join([*also, f"a number {range_}"])


@dataclass(frozen=True)
class Distinct(Limit):
    """A list of `least` elements or more, in which nothing is repeated."""

    least: int = 0

    def admits(self, value: Any) -> bool:
        """Return whether it has enough elements, which all differ."""
        if isinstance(value, int | float):
            return True  # it is of no type that a list has, which is said then
        return len(value) >= self.least and len({*map(repr, value)}) == len(value)

    def __str__(self) -> str:
        return f"{'at least one value, and ' if self.least else ''}each value only once"


@dataclass(frozen=True)
class NotBlank(Limit):
    """A path that must be given: an empty one would silently be the current folder."""

    def admits(self, value: Any) -> bool:
        """Return whether the text is more than white space."""
        return bool(value.strip())

    def __str__(self) -> str:
        return "a path (. is the current folder)"


@dataclass(frozen=True)
class OneOf(Limit):
    """One of the `names`, later additions included, or `also`."""

    names: Collection[str]
    also: str | None = None

    def admits(self, value: Any) -> bool:
        """Return whether it is one of them."""
        return bool(value == self.also or value in self.names)

    def __str__(self) -> str:
        return f"one of {', '.join([*self.names, *filter(None, [self.also])])}"


@dataclass(frozen=True)
class FolderOrUrl(Limit):
    """A folder, or an address that files can be fetched from."""

    def admits(self, value: Any) -> bool:
        """Return whether the address, if it is one, is of a kind that is fetched from."""
        scheme = re.match(r"([a-zA-Z][\w+.-]*)://", value)
        return scheme is None or scheme[1].lower() in ("file", "http", "https")

    def __str__(self) -> str:
        return "a folder, or an address that starts with file://, http:// or https://"


Seed = Annotated[int, Within(0, 2**32 - 1)]  # what numpy and torch both take
NumItems = Annotated[int, Within(1, 10_000_000)]
NumEpochs = Annotated[int, Within(1, 10_000)]
NumShots = Annotated[int, Within(0, 1_000)]
NumSteps = Annotated[int, Within(1, 10_000_000)]
BatchSize = Annotated[int, Within(1, 65_536)]
NumChoices = Annotated[int, Within(2, 1_000)]
NumTokens = Annotated[int, Within(1, 100_000_000)]
# [CLS] question [SEP] answer [SEP] with a piece each is 5; shorter cuts every text to nothing.
MaxLength = Annotated[int, Within(8, 131_072)]
NumDevices = Annotated[int, Within(1, 4_096, also=((-1, "all"),))]
NumProcesses = Annotated[int, Within(0, 1_024)]
NumThreads = Annotated[int, Within(1, 1_024)]
Width = Annotated[int, Within(1, 100_000)]
LearningRate = Annotated[float, Within(0, 1, above=True)]
WeightDecay = Annotated[float, Within(0, 10)]
GradNorm = Annotated[float, Within(0, 1_000_000, above=True)]
Share = Annotated[float, Within(0, 1, above=True, below=True)]
ShareOrNone = Annotated[float, Within(0, 1, below=True)]
ShareOrAll = Annotated[float, Within(0, 1)]
NumShuffles = Annotated[int, Within(0, 10_000)]
Seconds = Annotated[float, Within(0, 10_000_000, above=True)]
PathText = Annotated[str, NotBlank()]
Mirror = Annotated[str, FolderOrUrl()]
Minutes = Annotated[float, Within(0, 100_000)]
WeightsDtype = Literal["auto", "float32", "bfloat16", "float16"]
HeadMode = Literal["mlp", "linear"]  # what is trained on a frozen encoder
# How the choices of a causal or encoder-decoder model get their scores.
Scoring = Literal["auto", "sum", "mean_token", "mean_char", "letter", "last_token"]


S = TypeVar("S", bound="Settings")


class ByCommas:
    """A list that may be given as one text with commas."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core.core_schema import no_info_before_validator_function

        def split(value: Any) -> Any:
            if not isinstance(value, str):
                if not isinstance(value, Sequence):
                    raise ValueError("give a list of names")
                return value
            if not (names := [name.strip() for name in value.split(",") if name.strip()]):
                raise ValueError("give at least one name, or leave it out")
            return names

        return no_info_before_validator_function(split, handler(source))


Texts = Annotated[Sequence[str], ByCommas()]
Names = Annotated[Texts, Distinct()]


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
        field.name: field.default
        if field.default_factory is dataclasses.MISSING
        else field.default_factory()
        for field in dataclasses.fields(kind)
    }


def settings_from(kind: type[S], config: Mapping[str, Any]) -> S:
    """Make settings from the values of `dataclasses.asdict`; RangeError names the first bad one."""
    return typed(kind, config, kind.__name__, RangeError)


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
    if not converted:
        return converted
    from pydantic import ValidationError

    for name in converted.keys() & hints_of(declared).keys():
        try:
            converted[name] = _adapter(declared, name).validate_python(values[name], strict=False)
        except ValidationError as errors:
            # A mistyped key is what leaves a needed one missing.
            first = min(errors.errors(), key=lambda error: error["type"] == "missing")
            raise RangeError(_problem(name, first, name_of)) from None
    return converted


@cache
def hints_of(declared: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotated types of a function's or a class's arguments."""
    is_plain_class = isinstance(declared, type) and not dataclasses.is_dataclass(declared)
    return get_type_hints(declared.__init__ if is_plain_class else declared, include_extras=True)


def lists_of(declared: Callable[..., Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of the arguments that are lists, those of nested settings too."""
    for name, hint in hints_of(declared).items():
        is_annotated = get_origin(hint) is Annotated
        hint = get_args(hint)[0] if is_annotated else hint
        for member in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
            if dataclasses.is_dataclass(member):
                yield from lists_of(member, f"{prefix}{name}.")  # type: ignore[arg-type]
            elif name != "return" and get_origin(member) in (list, tuple, Sequence):
                yield f"{prefix}{name}"


@cache
def _adapter(declared: Callable[..., Any], name: str) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    hint = hints_of(declared)[name]
    if dataclasses.is_dataclass(hint):
        return TypeAdapter(hint)
    return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))


def _problem(name: str, error: Mapping[str, Any], name_of: Callable[[str], str]) -> str:
    """Return which value is wrong, and what to give instead."""
    for step in error["loc"]:
        if isinstance(step, int):
            name += f"[{step}]"
        elif not _UNION_TAG.fullmatch(step):
            name += f".{step}"
    name = name_of(name)
    match error["type"]:
        case "missing":
            return f"{name} is missing"
        case "unexpected_keyword_argument":
            return f"{name}: there is no such setting"
        case "value_error":
            # The error of a whole section names its key itself.
            is_section = isinstance(error["input"], Mapping)
            value = "" if is_section else f" {as_given(error['input'])}"
            return f"{name}{value}: {error['ctx']['error']}"
        case "dataclass_type":
            needed = f"{error['ctx']['class_name']} or a mapping of its fields"
        case kind:
            needed = MEANT.get(kind) or error["msg"].removeprefix("Input should be ")
    return f"{name} {as_given(error['input'])}: give {needed}"


def as_given(value: Any) -> str:
    """Return a value for messages as it is typed: shortened, and in quotes where it is blank."""
    if value and isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    text = str(value) if str(value).strip() else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
