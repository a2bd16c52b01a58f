"""The numbers that a setting may have: declared once, with its type, and checked before any work.

    epochs: NumEpochs = 4                                # an int to the type checker
    report_share: Share = 0.2
    sizes: Annotated[list[NumItems], NotEmpty()] = ...

`check_settings` finds what is declared so in the hints of a function, a class or a dataclass and
holds values against it: those that a command line or a YAML file gave, and, by `Settings`, those
that Python gave. The upper bounds are far above what is of use; they tell a slip from a wish.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, ClassVar, TypeVar, Union, get_args, get_origin, get_type_hints

from probelight.io.documents import STRICT, typed


class RangeError(ValueError):
    """A setting whose value is none that it may have; the message names it and the range."""


@dataclass(frozen=True)
class Within:
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
        """Whether this value may be; what is no number is for its type to refuse."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        if any(value == number for number, _ in self.also):
            return True
        low = self.low < value if self.above else self.low <= value
        high = value < self.high if self.below else value <= self.high
        return low and high  # false for nan

    def __str__(self) -> str:
        if self.above or self.below:
            low = f"{'more than' if self.above else 'at least'} {self.low}"
            range_ = f"{low} and {'less than' if self.below else 'at most'} {self.high}"
        else:
            range_ = f"from {self.low} to {self.high}"
        also = [f"{number} ({meaning})" for number, meaning in self.also]
        return " or ".join([*also, f"a number {range_}"])


@dataclass(frozen=True)
class NotEmpty:
    """A list that must hold something."""

    def admits(self, value: Any) -> bool:
        """Whether there is something in it."""
        return not isinstance(value, list | tuple | dict) or len(value) > 0

    def __str__(self) -> str:
        return "at least one"


@dataclass(frozen=True)
class NotBlank:
    """A path that must be given: an empty one would silently be the current folder."""

    def admits(self, value: Any) -> bool:
        """Whether there is something in it."""
        return not isinstance(value, str) or bool(value.strip())

    def __str__(self) -> str:
        return "a path, which . is too for the current folder"


@dataclass(frozen=True)
class OneOf:
    """A name that must be known.

    Args:
        names: The names; what is added to them later is known too.
        also: One more.
    """

    names: Collection[str]
    also: str | None = None

    def admits(self, value: Any) -> bool:
        """Whether it is one of them."""
        return not isinstance(value, str) or value == self.also or value in self.names

    def __str__(self) -> str:
        return f"one of {', '.join([*self.names, *filter(None, [self.also])])}"


Seed = Annotated[int, Within(0, 2**32 - 1)]  # what numpy and torch both take
NumItems = Annotated[int, Within(1, 10_000_000)]
NumEpochs = Annotated[int, Within(1, 10_000)]
NumSteps = Annotated[int, Within(1, 10_000_000)]
BatchSize = Annotated[int, Within(1, 65_536)]
NumChoices = Annotated[int, Within(2, 1_000)]
NumTokens = Annotated[int, Within(1, 100_000_000)]
# [CLS] question [SEP] answer [SEP] with a piece each is 5; shorter cuts every text to nothing.
MaxLength = Annotated[int, Within(8, 131_072)]
NumDevices = Annotated[int, Within(1, 4_096, also=((-1, "all there are"),))]
NumProcesses = Annotated[int, Within(0, 1_024)]
NumThreads = Annotated[int, Within(1, 1_024)]
Width = Annotated[int, Within(1, 100_000)]
LearningRate = Annotated[float, Within(0, 1)]  # 0: the same steps, and nothing learned
WeightDecay = Annotated[float, Within(0, 10)]
GradNorm = Annotated[float, Within(0, 1_000_000, above=True)]
Share = Annotated[float, Within(0, 1, above=True, below=True)]
ShareOrNone = Annotated[float, Within(0, 1, below=True)]
ShareOrAll = Annotated[float, Within(0, 1)]
NumShuffles = Annotated[int, Within(0, 10_000)]
Seconds = Annotated[float, Within(0, 10_000_000, above=True)]
PathText = Annotated[str, NotBlank()]
Minutes = Annotated[float, Within(0, 100_000)]


S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Settings:
    """A dataclass of settings that checks its own numbers, however it was made.

    It is one itself: the command line takes a dataclass with another parent for a class to choose.
    """

    __pydantic_config__: ClassVar = STRICT

    def __post_init__(self) -> None:
        check_settings(type(self), vars(self), f"{type(self).__name__}.")


def settings_from(kind: type[S], config: Mapping[str, Any]) -> S:
    """Make settings from the plain values that `dataclasses.asdict` made of them.

    Raises:
        RangeError: If a key is unknown or missing, or a value may not be.
    """
    return typed(kind, config, kind.__name__, RangeError)


def check_settings(declared: Callable[..., Any], values: Mapping[str, Any], prefix: str) -> None:
    """Hold values against what a function or a class declares of its arguments.

    Args:
        declared: The function or class.
        values: Its arguments by name: parsed and plain, or objects.
        prefix: What stands before a name in messages, such as "--".

    Raises:
        RangeError: At the first value that may not be.
    """
    hints = hints_of(declared)
    for name, value in values.items():
        if name in hints:
            _check(hints[name], value, f"{prefix}{name}")


@cache
def hints_of(declared: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a function's or a class's arguments, with what is declared of them."""
    made = isinstance(declared, type) and not dataclasses.is_dataclass(declared)
    return get_type_hints(declared.__init__ if made else declared, include_extras=True)


def _check(hint: Any, value: Any, name: str) -> None:
    for limit in getattr(hint, "__metadata__", ()):
        if isinstance(limit, Within | NotEmpty | NotBlank | OneOf) and not limit.admits(value):
            shown = repr(value) if isinstance(limit, NotBlank) else value
            raise RangeError(f"{name} {shown}: give {limit}")
    if isinstance(value, Mapping) and "class_path" in value:  # a class that the user chose
        module, _, kind = str(value["class_path"]).rpartition(".")
        chosen = getattr(importlib.import_module(module), kind)
        check_settings(chosen, value.get("init_args") or {}, f"{name}.")
    elif dataclasses.is_dataclass(hint):
        given = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
        check_settings(hint, given, f"{name}.")  # type: ignore[arg-type]
    else:
        for part in _parts(hint, value, name):
            _check(*part)


def _parts(hint: Any, value: Any, name: str) -> Iterator[tuple[Any, Any, str]]:
    """(type, value, name) of what a list or a mapping holds, or of each type that may be meant."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated or origin in (Union, UnionType):
        yield from ((one, value, name) for one in (inner[:1] if origin is Annotated else inner))
    elif origin in (list, tuple, Sequence) and isinstance(value, list | tuple):
        yield from ((inner[0], one, f"{name}[{place}]") for place, one in enumerate(value))
    elif origin in (dict, Mapping) and isinstance(value, Mapping):
        yield from ((inner[1], one, f"{name}.{key}") for key, one in value.items())
