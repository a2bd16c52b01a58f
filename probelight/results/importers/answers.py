"""The scores of items in another program's file, whatever its format, without a probe of ours.

`imported` takes one frame whose rows are called by file and line: a row for each choice, or, if
there is no column `item`, one for each item, with lists of what its choices differ in. Columns that
a file does not have are left out:

    item              equal in the rows of one item
    id, text          of the item; its question, "" where there is none before the choices
    choice, score     the text of the choice, and its number or text
    gold or right     the text of the item's right choice, or whether this one is right
    paradigm          what a minimal pair is a pair of
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from probelight.io.documents import number_of
from probelight.io.errors import RecordError, nearest
from probelight.io.files import MAX_ITEMS, DataFile
from probelight.probes.record import with_mask

if TYPE_CHECKING:
    import pandas as pd

IMPORTED = "imported"  # how choices got their scores, and the kind of the model


@dataclass(frozen=True)
class Labelled:
    """The scores of labels, with the choices listed in one order."""

    order: tuple[str, ...]  # the text of the choice at each label
    scores: tuple[float, ...]  # of the labels


class _FileRow(NamedTuple):
    """What a file says of a choice and its item, or of an item, with lists for its choices."""

    where: str
    id: str
    text: object
    choice: Any
    score: Any
    gold: str
    right: Any
    paradigm: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The scores of one item.

    A question is "" where there is none before the choices; a file without any has no texts.
    """

    where: str  # file and line
    id: str = ""  # the item's; empty where the file has none
    texts: tuple[str, ...] = ()  # as the model saw its question, then other names of it
    choices: tuple[str, ...] = ()  # in the order of the file; none where only their number is known
    scores: tuple[float, ...]  # one per choice, higher is better; -inf is the lowest
    gold: int | None = None  # index of the right choice; None where the file does not tell it
    paradigm: str = ""  # what a minimal pair is a pair of
    labelled: tuple[Labelled, ...] = ()  # where labels were asked for: in each order


@dataclass(frozen=True)
class Imported:
    """The content of a file of another program."""

    files: tuple[DataFile, ...]  # the file alone
    answers: tuple[Answer, ...]  # in the order of the file
    name: str  # how it calls its set of items
    model: str = ""  # empty where the file does not tell it
    notices: tuple[str, ...] = ()  # how it was read


@dataclass(frozen=True)
class Gold:
    """The right choices of a second file: by id or question, their text, and its file and line."""

    files: tuple[DataFile, ...]
    right: Mapping[str, tuple[str, str]]


def plain(text: str) -> str:
    """Return a text with single spaces between its words: how texts of files are compared."""
    return " ".join(text.split())


def _are_same(cell: object, first: object) -> bool:
    return cell == first or plain(str(cell)) == plain(str(first))


def score_of(value: object, name: str = "the score") -> float:
    """Return the number, or that of its text; a RecordError if it is none.

    -inf is one: the log-probability of what a model holds impossible.
    """
    number = number_of(value, finite=False)
    if math.isnan(number) or number == math.inf:
        raise RecordError(f"{name} is {value!r}; a number is needed, higher is better")
    return number


@lru_cache  # of a million items most ask for one of a few
def index_of(text: str, choices: tuple[str, ...]) -> int:
    """Return the index of a choice by its text, white space aside; there must be just one."""
    gold = plain(text)
    indices = [index for index, choice in enumerate(choices) if plain(choice) == gold]
    if len(indices) != 1:
        raise RecordError(
            f"the gold {text!r} {'matches several' if indices else 'is not one'} of the candidates "
            f"{', '.join(map(repr, choices))}"
        )
    return indices[0]


def with_gold(answers: Sequence[Answer], gold: Gold) -> tuple[Answer, ...]:
    """Return the answers with the right choices that a second file gives.

    Raises:
        RecordError: If an item has none, another one than in its file of scores, or one that is
            none of its candidates, or a line of the second file belongs to no item.
    """
    right = {with_mask(name): choice for name, choice in gold.right.items()}
    complete, used = [], set()
    for answer in answers:
        names = (with_mask(plain(name)) for name in (answer.id, *answer.texts))
        key = next((name for name in names if name and name in right), None)
        if key is None:
            raise RecordError(f"{answer.where}: the file of --gold has no line for this item")
        text, where = right[key]
        with at(where):
            index = index_of(text, answer.choices)
        if answer.gold not in (None, index):
            listed = answer.choices[answer.gold or 0]
            raise RecordError(f"{where}: the gold is {text!r}, but {answer.where} has {listed!r}")
        used.add(key)
        complete.append(replace(answer, gold=index))
    if unused := [where for key, (_, where) in right.items() if key not in used]:
        raise RecordError(f"{unused[0]}: this gold belongs to an item that has no scores")
    return tuple(complete)


class at:
    """Let errors about what is read inside begin with its file and line."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:  # a generator's would take a tenth of an import
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, RecordError):
            raise RecordError(f"{self._where}: {error}") from None


def known_columns(
    path: Path, table: pd.DataFrame, aliases: Mapping[str, Sequence[str]], needed: Collection[str]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a table's known columns by our names, and a notice of those that are not read.

    Args:
        path: The file, for messages.
        table: Its cells.
        aliases: Our name of each column, with those that a header may give it, in lower case.
        needed: Our names of those that must be there.

    Raises:
        RecordError: If one of these is missing, or two columns are the same.
    """
    ours_of = {name: ours for ours, names in aliases.items() for name in names}
    headers: dict[str, str] = {}
    for name in table.columns:
        if ours := ours_of.get(name.lower()):
            if ours in headers:
                both = f"{headers[ours]} and {name}"
                raise RecordError(f"{path}:1: the columns {both} both name the {ours}; keep one")
            headers[ours] = name
    if lacking := [ours for ours in needed if ours not in headers]:
        names = aliases[lacking[0]]
        near = nearest(names[0], list(table.columns))
        if len(table.columns) == 1:
            near += " (cells need commas between them in .csv, tabs in .tsv)"
        raise RecordError(
            f"{path}:1: no column for the {lacking[0]}{near}; call it {' or '.join(names)}. The "
            f"columns are {', '.join(table.columns)}"
        )
    unread = [name for name in table.columns if name not in headers.values()]
    notices = (f"columns ignored: {', '.join(unread)}",) if unread else ()
    return table[[*headers.values()]].set_axis([*headers], axis="columns"), notices


def imported(
    path: Path, sha256: str, frame: pd.DataFrame, notices: tuple[str, ...] = (), *, sign: int = 1
) -> Imported:
    """Return the answers of a file, in the order in which its items begin.

    Args:
        path: The file.
        sha256: Of its content.
        frame: As described at the top of this module.
        notices: How it was read.
        sign: -1 where a lower score is better.

    Raises:
        RecordError: If a score is no number, rows of an item contradict each other, or it has fewer
            than two choices or not one right choice; the message names file and line.
    """
    import pandas as pd  # not above: --help is quick

    from probelight.io.progress import tracked_items

    sizes = [1] * len(frame)
    if has_row_per_choice := "item" in frame:
        frame = frame.assign(item=pd.factorize(frame["item"])[0])
        sizes = frame.groupby("item").size().tolist()
        if not frame["item"].is_monotonic_increasing:
            frame = frame.sort_values("item", kind="stable")
    if len(sizes) > MAX_ITEMS:
        raise RecordError(f"{path}: {len(sizes):,} items; a file can have at most {MAX_ITEMS:,}")
    table = frame.reindex(columns=[*_FileRow._fields[1:]]).astype(object)
    table = table.fillna({"id": "", "gold": "", "paradigm": ""})
    columns = (table[name].tolist() for name in table)
    each_row = map(_FileRow, table.index.tolist(), *columns)
    answers, where = list[Answer](), ""
    try:
        for size in tracked_items(sizes, len(sizes), f"answers in {path.name}"):
            item_rows = [*islice(each_row, size)]
            first, where = item_rows[0], item_rows[0].where
            choices, cells, rights = first.choice, first.score, first.right
            if has_row_per_choice:
                choices = [row.choice for row in item_rows]
                cells, rights = [r.score for r in item_rows], [r.right for r in item_rows]
                wheres = dict[str, str]()
                for row in item_rows:
                    where = row.where
                    if not (_are_same(row.text, first.text) and _are_same(row.gold, first.gold)):
                        raise RecordError(
                            f"the same item has another text or gold at {first.where}"
                        )
                    if (earlier := wheres.setdefault(plain(str(row.choice)), where)) != where:
                        raise RecordError(f"the same item has this choice at {earlier} too")
            choices = tuple(choices) if isinstance(choices, list) else ()
            if answers and choices == answers[-1].choices:
                choices = answers[-1].choices  # one tuple for a million items
            where, scores = first.where, list[float]()
            if len(cells) < 2:
                raise RecordError(f"{len(choices)} candidate(s); at least 2 are needed")
            for index, cell in enumerate(cells):
                if not (score := number_of(cell, finite=False)) < math.inf:
                    where = item_rows[index if has_row_per_choice else 0].where
                    score_of(cell, f"the score of {choices[index]!r}" if choices else "the score")
                scores.append(sign * score)
            rights = rights if isinstance(rights, list) else []
            right = [index for index, is_right in enumerate(rights) if is_right is True]
            if any(isinstance(is_right, bool) for is_right in rights) and len(right) != 1:
                raise RecordError(f"the item has {len(right)} right choices; one is needed")
            gold = index_of(first.gold, choices) if first.gold else next(iter(right), None)
            texts = (first.text,) if isinstance(first.text, str) else ()
            answers.append(
                Answer(
                    where=where,
                    id=first.id,
                    texts=texts,
                    choices=choices,
                    scores=tuple(scores),
                    gold=gold,
                    paradigm=first.paradigm,
                )
            )
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from None
    file = DataFile(str(path), sha256, len(answers))
    return Imported((file,), tuple(answers), path.name.partition(".")[0], notices=notices)
