"""What another program's file has of items, whatever its format; it knows no probe of ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from probelight.io.errors import RecordError
from probelight.io.files import DataFile
from probelight.probes.record import with_mask


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The scores of one item.

    Attributes:
        where: File and line.
        id: The item's; empty where the file names none.
        texts: What its question may be called by, the first one as the model was given it; "" where
            there is no question before the choices, and none at all where the file has none.
        choices: In the order of the file; none where only their number is known.
        scores: One a choice, higher is better; -inf is the lowest.
        gold: Index of the right choice; None where the file does not tell it.
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
class OneFile:
    """What was read from a file."""

    file: DataFile

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The file alone."""
        return (self.file,)


@dataclass(frozen=True)
class Imported(OneFile):
    """What a file of another program holds.

    Attributes:
        file: The file.
        answers: One an item, in the order of the file.
        name: What it calls its set of items.
        model: The model; empty where the file does not tell it.
        notices: How it was read.
    """

    answers: tuple[Answer, ...]
    name: str
    model: str = ""
    notices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gold(OneFile):
    """The right choices that a second file gives.

    Attributes:
        file: The file.
        right: By id or question, the text of the right choice, and its file and line.
    """

    right: Mapping[str, tuple[str, str]]


def plain(text: str) -> str:
    """Return a text with single spaces between its words: how texts of files are compared."""
    return " ".join(text.split())


def score_of(value: object, what: str = "the score") -> float:
    """Return a score, of a number or its text.

    Raises:
        RecordError: If it is none.
    """
    number = math.nan
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            number = float(value)
    if math.isnan(number) or number == math.inf:
        raise RecordError(f"{what} is {value!r}; a number is needed, higher is better")
    return number


def place_of(text: str, choices: Sequence[str]) -> int:
    """Return the index of a choice by its text, white space aside.

    Raises:
        RecordError: If it is none of them, or several.
    """
    found = [place for place, choice in enumerate(choices) if plain(choice) == plain(text)]
    if len(found) != 1:
        raise RecordError(
            f"the gold {text!r} is {'several' if found else 'none'} of the candidates "
            f"{', '.join(map(repr, choices))}"
        )
    return found[0]


def with_gold(answers: Sequence[Answer], gold: Gold) -> tuple[Answer, ...]:
    """Return the answers with the right choices that a second file gives.

    Raises:
        RecordError: If an item has none, another one than in its file of scores, or one that is
            none of its candidates, or a line of the second file belongs to no item.
    """
    right = {with_mask(name): choice for name, choice in gold.right.items()}
    found, used = [], set()
    for answer in answers:
        names = (with_mask(plain(name)) for name in (answer.id, *answer.texts))
        key = next((name for name in names if name and name in right), None)
        if key is None:
            raise RecordError(f"{answer.where}: the file of --gold has no line for this item")
        text, where = right[key]
        with at(where):
            place = place_of(text, answer.choices)
        if answer.gold not in (None, place):
            other = answer.choices[answer.gold or 0]
            raise RecordError(f"{where}: the gold is {text!r}, but {answer.where} says {other!r}")
        used.add(key)
        found.append(replace(answer, gold=place))
    if unused := [where for key, (_, where) in right.items() if key not in used]:
        raise RecordError(f"{unused[0]}: a gold of an item that the scores do not have")
    return tuple(found)


@contextmanager
def at(where: str) -> Iterator[None]:
    """Let errors about what is read inside begin with its file and line."""
    try:
        yield
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from None
