"""Scores as users of minicons write them: a table, as minicons has no file format of its own.

One row a choice, the rows of an item with one `item`:

    item,prefix,continuation,score,gold
    1,A cat is an,animal,-2.1,1
    1,A cat is an,plant,-7.9,0

or one row a minimal pair, in BLiMP's words:

    item,UID,sentence_good,sentence_bad,score_good,score_bad

`surprisal` in place of `score` is taken with its sign turned: lower is better there.
"""

from __future__ import annotations

from pathlib import Path

from probelight.io.errors import RecordError
from probelight.io.files import DataFile, content_sha256
from probelight.io.tables import Table, read_table
from probelight.results.importers.answers import Answer, Imported, at, plain, score_of

ITEM, SCORE = ("item", "id"), ("score", "surprisal")
LONG = {
    "item": ITEM,
    "prefix": ("prefix", "question"),
    "choice": ("sentence", "stimulus", "continuation", "choice"),
    "score": SCORE,
    "gold": ("gold", "condition", "label"),
}
PAIRS = {
    "item": (*ITEM, "pairid"),
    "paradigm": ("uid",),
    "right sentence": ("sentence_good", "good"),
    "wrong sentence": ("sentence_bad", "bad"),
    "right score": ("score_good", "good_score"),
    "wrong score": ("score_bad", "bad_score"),
}
RIGHT = ("1", "true", "yes", "good", "grammatical", "acceptable", "correct")
WRONG = ("0", "false", "no", "bad", "ungrammatical", "unacceptable", "incorrect")


def read(path: Path) -> Imported:
    """Read one table.

    Raises:
        RecordError: If a column is missing, a score is no number, or an item has not one right
            choice; the message names file and line.
    """
    table = read_table(path)
    if "right sentence" in (places := table.places(PAIRS)):
        answers = _pairs(table, places)
    else:
        answers = _choices(table, places := table.places(LONG))
    notices = table.unread(places)
    if "surprisal" in {table.header[place].lower() for place in places.values()}:
        notices += ("scores are the file's surprisals with their sign turned",)
    file = DataFile(str(path), content_sha256(path), len(answers))
    return Imported(file, answers, path.name.partition(".")[0], notices=notices)


def _pairs(table: Table, places: dict[str, int]) -> tuple[Answer, ...]:
    for what, names in PAIRS.items():
        if what not in (*places, "item", "paradigm"):
            raise table.lacking(what, names)
    answers = []
    for line, cells in table.rows:
        own = {what: cells[place] for what, place in places.items()}
        where = f"{table.path}:{line}"
        with at(where):
            scores = tuple(score_of(own[f"{side} score"]) for side in ("right", "wrong"))
        answers.append(
            Answer(
                where=where,
                id=own.get("item", ""),
                texts=("",),
                choices=(own["right sentence"], own["wrong sentence"]),
                scores=scores,
                gold=0,
                paradigm=own.get("paradigm", ""),
            )
        )
    return tuple(answers)


def _choices(table: Table, places: dict[str, int]) -> tuple[Answer, ...]:
    for what in ("item", "choice", "score"):
        if what not in places:
            raise table.lacking(what, LONG[what])
    sign = -1 if table.header[places["score"]].lower() == "surprisal" else 1
    rows: dict[str, list[tuple[str, dict[str, str]]]] = {}
    for line, cells in table.rows:
        own = {what: cells[place] for what, place in places.items()}
        where = f"{table.path}:{line}"
        earlier = rows.setdefault(own["item"], [])
        for place, other in earlier:
            if plain(other["choice"]) == plain(own["choice"]):
                raise RecordError(f"{where}: item {own['item']!r} has this choice at {place} too")
            if plain(other.get("prefix", "")) != plain(own.get("prefix", "")):
                raise RecordError(f"{where}: item {own['item']!r} has another prefix at {place}")
        earlier.append((where, own))
    return tuple(_item(item, own, sign) for item, own in rows.items())


def _item(item: str, rows: list[tuple[str, dict[str, str]]], sign: int) -> Answer:
    scores, right = [], []
    for where, own in rows:
        with at(where):
            scores.append(sign * score_of(own["score"]))
            right += [_is_right(own["gold"])] if "gold" in own else []
    if not item:
        raise RecordError(f"{rows[0][0]}: the item is empty")
    if right and right.count(True) != 1:
        raise RecordError(
            f"{rows[0][0]}: item {item!r} has {right.count(True)} right choices; one is needed"
        )
    return Answer(
        where=rows[0][0],
        id=item,
        texts=(rows[0][1].get("prefix", ""),),
        choices=tuple(own["choice"] for _, own in rows),
        scores=tuple(scores),
        gold=right.index(True) if right else None,
    )


def _is_right(text: str) -> bool:
    if text.lower() not in RIGHT + WRONG:
        raise RecordError(
            f"{text!r} does not say whether the choice is right; write {', '.join(RIGHT)} or "
            f"{', '.join(WRONG)}"
        )
    return text.lower() in RIGHT
