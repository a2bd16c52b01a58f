"""One frame of the scores that a file holds, a row for each choice of each item.

Rows are called by file and line. Columns that a file does not have are left out:

    item              what the rows of one item share
    id, text          of the item; its question, "" where there is none before the choices
    choice, score     the text of the choice, and its number or text
    gold or right     the text of the item's right choice, or whether this one is right
    paradigm          what a minimal pair is a pair of
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probelight.io.errors import RecordError, nearest
from probelight.io.files import DataFile
from probelight.results.importers.answers import Answer, Imported, at, place_of, plain, score_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ["item", "id", "text", "choice", "score", "gold", "right", "paradigm"]
_ITEM = attrgetter("item")


def known_columns(
    path: Path, table: pd.DataFrame, known: Mapping[str, Sequence[str]], needed: Collection[str]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a table's known columns by our names, and a notice of those that are not read.

    Args:
        path: The file.
        table: Its cells.
        known: Our name of each column, with those that a header may give it, in lower case.
        needed: Our names of those that must be there.

    Raises:
        RecordError: If one of these is not there, or two columns are the same.
    """
    ours_of = {name: ours for ours, names in known.items() for name in names}
    found: dict[str, str] = {}
    for name in table.columns:
        if ours := ours_of.get(name.lower()):
            if ours in found:
                both = f"{found[ours]} and {name}"
                raise RecordError(f"{path}:1: the columns {both} are both the {ours}")
            found[ours] = name
    if lacking := [ours for ours in needed if ours not in found]:
        names = known[lacking[0]]
        near = nearest(names[0], list(table.columns))
        if len(table.columns) == 1:
            near += " (cells are parted by commas in .csv, by tabs in .tsv)"
        raise RecordError(
            f"{path}:1: no column for the {lacking[0]}{near}; it is called "
            f"{' or '.join(names)}, and here are {', '.join(table.columns)}"
        )
    unread = [name for name in table.columns if name not in found.values()]
    notices = (f"columns that are not read: {', '.join(unread)}",) if unread else ()
    return table[[*found.values()]].set_axis([*found], axis="columns"), notices


def imported(
    path: Path, sha256: str, frame: pd.DataFrame, notices: tuple[str, ...] = (), *, sign: int = 1
) -> Imported:
    """Return the answers of a file, in the order in which its items begin.

    Args:
        path: The file.
        sha256: Of its content.
        frame: The scores of choices.
        notices: How they were read.
        sign: -1 where a lower score is better.

    Raises:
        RecordError: If a score is no number, rows of an item contradict each other, or it has fewer
            than two choices or not one right choice; the message names file and line.
    """
    import pandas as pd  # not above: --help is quick

    rows = frame.reindex(columns=COLUMNS).astype(object).rename_axis("where").reset_index()
    rows = rows.fillna({"id": "", "gold": "", "paradigm": ""})
    rows["item"] = pd.factorize(rows["item"])[0]
    answers = []
    for _, group in groupby(rows.sort_values("item", kind="stable").itertuples(), _ITEM):
        first, *others = item = list(group)
        choices = tuple(row.choice for row in item if isinstance(row.choice, str))
        right = [place for place, row in enumerate(item) if row.right is True]
        shared, scores, wheres = _shared(first), list[float](), dict[str, str]()
        for row in item:
            with at(row.where):
                if not others:
                    raise RecordError(f"{len(choices)} candidate(s); at least 2 are needed")
                if _shared(row) != shared:
                    raise RecordError(f"its item has another text or gold at {first.where}")
                if (other := wheres.setdefault(plain(str(row.choice)), row.where)) != row.where:
                    raise RecordError(f"its item has this choice at {other} too")
                what = f"the score of {row.choice!r}" if choices else "the score"
                scores.append(sign * score_of(row.score, what))
        with at(first.where):
            if isinstance(first.right, bool) and len(right) != 1:
                raise RecordError(f"{len(right)} right choices of the item; one is needed")
            gold = place_of(first.gold, choices) if first.gold else next(iter(right), None)
        texts = (first.text,) if isinstance(first.text, str) else ()
        answers.append(
            Answer(
                where=first.where,
                id=first.id,
                texts=texts,
                choices=choices,
                scores=tuple(scores),
                gold=gold,
                paradigm=first.paradigm,
            )
        )
    file = DataFile(str(path), sha256, len(answers))
    return Imported(file, tuple(answers), path.name.partition(".")[0], notices=notices)


def _shared(row: Any) -> tuple[str, str]:
    """Return what rows of one item have in common."""
    return plain(str(row.text)), plain(row.gold)
