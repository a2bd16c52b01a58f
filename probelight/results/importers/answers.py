"""What another program's file says of items, whatever its format; it knows no probe of ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from probelight.io.errors import RecordError
from probelight.io.files import DataFile


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a file says of one item.

    Attributes:
        where: File and line.
        id: The item's; empty where the file names none.
        texts: What its question may be called by, the first one as the model was given it; "" where
            there is no question before the choices, and none at all where the file does not say.
        choices: In the order of the file; none where only their number is known.
        scores: One a choice, higher is better; -inf is the lowest.
        gold: Index of the right choice; None where the file does not say.
        paradigm: What a minimal pair is a pair of.
    """

    where: str
    id: str = ""
    texts: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    scores: tuple[float, ...]
    gold: int | None = None
    paradigm: str = ""


@dataclass(frozen=True)
class Imported:
    """What a file of another program holds.

    Attributes:
        file: The file.
        answers: One an item, in the order of the file.
        name: What it calls its set of items.
        model: The model; empty where the file does not say.
        notices: How it was read.
    """

    file: DataFile
    answers: tuple[Answer, ...]
    name: str
    model: str = ""
    notices: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The file alone."""
        return (self.file,)


@dataclass(frozen=True)
class Gold:
    """The right choices that a second file gives.

    Attributes:
        file: The file.
        right: By id or question, the text of the right choice, and where it stands.
    """

    file: DataFile
    right: Mapping[str, tuple[str, str]]

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The file alone."""
        return (self.file,)


def plain(text: str) -> str:
    """A text with single spaces between its words: how texts of files are compared."""
    return " ".join(text.split())


def score_of(value: object, what: str = "the score") -> float:
    """A score, of a number or its text.

    Raises:
        RecordError: If it is none.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        number = float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if math.isnan(number) or number == math.inf:
        raise RecordError(f"{what} is {value!r}; a number is needed, higher is better")
    return number


def place_of(text: str, choices: Sequence[str]) -> int:
    """The index of a choice by its text, white space aside.

    Raises:
        RecordError: If it is none of them, or several.
    """
    own = [plain(choice) for choice in choices]
    if own.count(plain(text)) != 1:
        raise RecordError(
            f"the gold {text!r} is {'none' if plain(text) not in own else 'several'} of the "
            f"candidates {', '.join(map(repr, choices))}"
        )
    return own.index(plain(text))


def with_gold(answers: Sequence[Answer], gold: Gold) -> tuple[Answer, ...]:
    """The answers with the right choices that a second file gives.

    Args:
        answers: What a file says.
        gold: What a second file says.

    Raises:
        RecordError: If an item has none, another one than its own file says, or one that is none of
            its candidates, or a line of the second file belongs to no item.
    """
    found, used = [], set()
    for answer in answers:
        names = (answer.id, *map(plain, answer.texts))
        key = next((name for name in names if name and name in gold.right), None)
        if key is None:
            raise RecordError(f"{answer.where}: the file of --gold has no line for this item")
        text, where = gold.right[key]
        with at(where):
            place = place_of(text, answer.choices)
        if answer.gold not in (None, place):
            said = answer.choices[answer.gold or 0]
            raise RecordError(f"{where}: the gold is {text!r}, but {answer.where} says {said!r}")
        used.add(key)
        found.append(replace(answer, gold=place))
    if unused := [where for key, (_, where) in gold.right.items() if key not in used]:
        raise RecordError(f"{unused[0]}: a gold of an item that the scores do not have")
    return tuple(found)


@contextmanager
def at(where: str) -> Iterator[None]:
    """Say in errors about what is read inside where it stands."""
    try:
        yield
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from None
