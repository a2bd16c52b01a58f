"""Scores as users of minicons write them: a table, as minicons has no file format of its own.

A row for each choice, with the same `item` in the rows of an item:

    item,prefix,continuation,score,gold
    1,A cat is an,animal,-2.1,1
    1,A cat is an,plant,-7.9,0

or a row for each minimal pair, with the columns of BLiMP:

    item,UID,sentence_good,sentence_bad,score_good,score_bad

`surprisal` in place of `score` is taken with its sign turned.
"""

from __future__ import annotations

from pathlib import Path

from probelight.io.errors import RecordError
from probelight.io.files import content_sha256, read_table
from probelight.results.importers.answers import Imported, imported, known_columns
from probelight.results.importers.columns import Columns, renamed

CHOICES = {
    "item": ("item", "id"),
    "text": ("prefix", "question"),
    "choice": ("sentence", "stimulus", "continuation", "choice"),
    "score": ("score", "surprisal"),
    "right": ("gold", "condition", "label"),
}
PAIRS = {
    "id": ("item", "id", "pairid"),
    "paradigm": ("uid",),
    "right sentence": ("sentence_good", "good"),
    "wrong sentence": ("sentence_bad", "bad"),
    "right score": ("score_good", "good_score"),
    "wrong score": ("score_bad", "bad_score"),
}
IS_RIGHT = {
    **dict.fromkeys(("1", "true", "yes", "good", "grammatical", "acceptable", "correct"), True),
    **dict.fromkeys(
        ("0", "false", "no", "bad", "ungrammatical", "unacceptable", "incorrect"), False
    ),
}


def read(path: Path, columns: Columns | None = None) -> Imported:
    """Read one table; `columns` has the names of its columns by ours.

    Raises:
        RecordError: If a column is missing, a score is no number, or an item has not one right
            choice; the message names file and line.
    """
    table = renamed(path, read_table(path), columns or {})
    headers = {name.lower() for name in table.columns}
    if headers.intersection(PAIRS["right sentence"]):
        pairs, notices = known_columns(path, table, PAIRS, [*PAIRS][2:])
        both = {
            "choice": pairs[["right sentence", "wrong sentence"]].to_numpy().tolist(),
            "score": pairs[["right score", "wrong score"]].to_numpy().tolist(),
            "right": [[True, False]] * len(pairs),
        }
        frame = pairs.assign(text="", **both)
        return imported(path, content_sha256(path), frame, notices)
    rows, notices = known_columns(path, table, CHOICES, ("item", "choice", "score"))
    if (empty := rows["item"] == "").any():
        raise RecordError(f"{empty.idxmax()}: the item is empty")
    frame = rows.assign(id=rows["item"], text=rows.get("text", ""))
    if "right" in rows:
        frame["right"] = rows["right"].str.lower().map(IS_RIGHT)
        if (unclear := frame["right"].isna()).any():
            raise RecordError(
                f"{unclear.idxmax()}: {rows['right'][unclear].iloc[0]!r} does not say whether the "
                f"choice is right; write one of {', '.join(IS_RIGHT)}"
            )
    if "surprisal" in headers:
        notices += ("scores are the file's surprisals with the sign reversed",)
    sign = -1 if "surprisal" in headers else 1
    return imported(path, content_sha256(path), frame, notices, sign=sign)
