"""Ranges of numbers and kinds of texts, declared with the types of settings.

    epochs: NumEpochs = 4                                # an int to the type checker
    report_share: Share = 0.2
    sizes: Annotated[list[NumItems], Distinct(1)] = ...

The upper bounds are far above what is of use; they tell a slip from a wish. `settings` checks them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal


class Limit:
    """A condition on a value in addition to its type; its text says what to give."""

    def admits(self, value: Any) -> bool:
        """Return whether a value of the type is allowed."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import PydanticKnownError
        from pydantic_core.core_schema import no_info_wrap_validator_function

        schema = handler(source)

        def check(value: Any, convert: Callable[[Any], Any]) -> Any:
            if hasattr(value, "dtype") and not value.shape:  # numpy's
                return check(value.item(), convert)
            # To pydantic true is the number 1, and infinity is of no type.
            is_number = isinstance(value, int | float)
            number_type = {"int": int, "float": int | float}.get(schema["type"])
            is_endless = is_number and not math.isfinite(value)
            if number_type and not isinstance(value, number_type) and not is_endless:
                # As of files: no text, and no 1.0 for 1.
                raise PydanticKnownError("int_type" if number_type is int else "float_type")
            if isinstance(value, bool) or not self.admits(value if is_number else convert(value)):
                raise ValueError(f"give {self}")
            return convert(value)

        return no_info_wrap_validator_function(check, schema)


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


@dataclass(frozen=True, eq=False)
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
class Matching(Limit):
    """A text that a regular expression matches from its beginning."""

    pattern: str
    needed: str

    def admits(self, value: Any) -> bool:
        """Return whether it is a text that matches."""
        return isinstance(value, str) and re.match(self.pattern, value) is not None

    def __str__(self) -> str:
        return self.needed


# An empty path would silently be the current folder.
NOT_BLANK = Matching(r"\s*\S", "a path (. is the current folder)")
FOLDER_OR_URL = Matching(
    r"(?i:file|https?)://|(?![a-zA-Z][\w+.-]*://)",
    "a folder, or an address that starts with file://, http:// or https://",
)

Seed = Annotated[int, Within(0, 2**32 - 1)]  # what numpy and torch both take
MAX_COUNT = 10_000_000
NumItems = Annotated[int, Within(1, MAX_COUNT)]
NumEpochs = Annotated[int, Within(1, 10_000)]
NumShots = Annotated[int, Within(0, 1_000)]
NumSteps = Annotated[int, Within(1, 10_000_000)]
BatchSize = Annotated[int, Within(1, 65_536)]
MAX_CHOICES, MAX_LENGTH = 1_000, 131_072
NumChoices = Annotated[int, Within(2, MAX_CHOICES)]
NumTokens = Annotated[int, Within(1, 100_000_000)]
# [CLS] question [SEP] answer [SEP] with a piece each is 5; shorter cuts every text to nothing.
MaxLength = Annotated[int, Within(8, MAX_LENGTH)]
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
Points = Annotated[float, Within(0, 100, above=True, below=True)]  # percentage points
Seconds = Annotated[float, Within(0, 10_000_000, above=True)]
PathText = Annotated[str, NOT_BLANK]
Mirror = Annotated[str, FOLDER_OR_URL]
Minutes = Annotated[float, Within(0, 100_000)]
WeightsDtype = Literal["auto", "float32", "bfloat16", "float16"]
HeadMode = Literal["mlp", "linear"]  # what is trained on a frozen encoder
# How the choices of a causal or encoder-decoder model get their scores.
Scoring = Literal["auto", "sum", "mean_token", "mean_char", "letter", "last_token"]


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
