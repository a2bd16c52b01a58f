"""Candidates with their scores, as anybody can write them: JSON lines, or a table.

    {"id": "1", "text": "A cat is an", "scores": {"animal": 0.9, "plant": 0.1}, "gold": "animal"}
    {"id": "1", "candidates": ["animal", "plant"], "scores": [0.9, 0.1]}

A table (.csv, .tsv) has a row a candidate in the columns id, candidate, score; or a row an item,
and a column for each candidate that is called as it is, empty where an item does not have it. An
item is named by `id` or by `text` or both; `gold` is the text of the right candidate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from probelight.io.documents import json_object, kind_of
from probelight.io.errors import RecordError, nearest
from probelight.io.files import DataFile, content_sha256, delimiter_of, read_lines
from probelight.io.tables import Table, read_table
from probelight.results.importers.answers import (
    Answer,
    Gold,
    Imported,
    at,
    place_of,
    plain,
    score_of,
)

NAMED = {"id": ("id",), "text": ("text", "question"), "gold": ("gold",)}
LONG = {**NAMED, "candidate": ("candidate",), "score": ("score",)}


def read(path: Path) -> Imported:
    """Read one file.

    Raises:
        RecordError: If a line is not as above; the message names file and line.
    """
    notices: tuple[str, ...] = ()
    if delimiter_of(path):
        table = read_table(path)
        places = table.places(LONG)
        if {"candidate", "score"} & places.keys():
            answers = _long(table, places)
            notices = table.unread(places)
        else:
            answers = _wide(table, table.places(NAMED))
    else:
        answers, notices = _lines(path)
    file = DataFile(str(path), content_sha256(path), len(answers))
    return Imported(file, answers, path.name.partition(".")[0], notices=notices)


def read_gold(path: Path) -> Gold:
    """The right candidates of a second file, by id or text, and where each stands.

    Raises:
        RecordError: If a line names no item or no gold, or an item has two.
    """
    found: dict[str, tuple[str, str]] = {}
    for where, row in _named(path):
        key = row.get("id") or plain(row.get("text", ""))
        if not key or not row.get("gold"):
            raise RecordError(f"{where}: `{'gold' if key else 'id` or `text'}` is missing or empty")
        gold, earlier = found.setdefault(key, (row["gold"], where))
        if plain(gold) != plain(row["gold"]):
            raise RecordError(f"{where}: {key!r} has another gold, {gold!r}, at {earlier}")
    if not found:
        raise RecordError(f"{path}:1: the file is empty; it holds no gold")
    return Gold(DataFile(str(path), content_sha256(path), len(found)), found)


def _named(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """What names the items of a file, and their gold."""
    if delimiter_of(path):
        table = read_table(path)
        places = table.places(NAMED)
        for line, cells in table.rows:
            yield f"{path}:{line}", {what: cells[place] for what, place in places.items()}
        return
    for number, text in read_lines(path):
        if text.strip():
            where = f"{path}:{number}"
            with at(where):
                own = _texts(json_object(text))
            yield where, own


def _lines(path: Path) -> tuple[tuple[Answer, ...], tuple[str, ...]]:
    answers, unread = [], dict[str, None]()
    for number, text in read_lines(path):
        if not text.strip():
            continue
        where = f"{path}:{number}"
        with at(where):
            row = json_object(text)
            answers.append(_answer(where, _texts(row), *_scored(row)))
        unread |= dict.fromkeys(row.keys() - {*NAMED, "question", "scores", "candidates"})
    if not answers:
        raise RecordError(f"{path}:1: the file is empty; it holds no item")
    names = ", ".join(sorted(unread))
    return tuple(answers), (f"keys that are not read: {names}",) if names else ()


def _scored(row: Mapping[str, Any]) -> tuple[list[str], list[object]]:
    """The candidates of a JSON object, and their scores."""
    if "scores" not in row:
        raise RecordError(f"`scores` is missing{nearest('scores', list(row))}")
    scores, candidates = row["scores"], row.get("candidates")
    if isinstance(scores, dict) and candidates is None:
        return list(scores), list(scores.values())
    if not isinstance(scores, list) or not isinstance(candidates, list):
        raise RecordError(
            f"`scores` is {kind_of(scores)} and `candidates` {kind_of(candidates)}; give an object "
            "of scores by candidate, or two lists"
        )
    if len(scores) != len(candidates):
        raise RecordError(f"{len(candidates)} candidates, but {len(scores)} scores")
    if strange := [one for one in candidates if not isinstance(one, str)]:
        raise RecordError(f"a candidate is {kind_of(strange[0])}; a text is needed")
    return candidates, scores


def _texts(row: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for what, names in NAMED.items():
        for name in names:
            if row.get(name) is None:
                continue
            value = row[name]
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise RecordError(f"`{name}` is {kind_of(value)}; a text is needed")
            if what in found:
                raise RecordError(f"{' and '.join(names)} are the same; give one of them")
            found[what] = str(value)
    return found


def _long(table: Table, places: dict[str, int]) -> tuple[Answer, ...]:
    for what in ("candidate", "score"):
        if what not in places:
            raise table.lacking(what, LONG[what])
    rows: dict[tuple[str, str], list[tuple[str, dict[str, str]]]] = {}
    for line, cells in table.rows:
        own = {what: cells[place] for what, place in places.items()}
        where = f"{table.path}:{line}"
        earlier = rows.setdefault((own.get("id", ""), plain(own.get("text", ""))), [])
        for place, other in earlier:
            if plain(other["candidate"]) == plain(own["candidate"]):
                raise RecordError(f"{where}: this candidate of this item stands at {place} too")
            if other.get("gold") != own.get("gold"):
                raise RecordError(f"{where}: another gold of this item stands at {place}")
        earlier.append((where, own))
    answers = []
    for item in rows.values():
        where, first = item[0]
        candidates, scores = ([row[what] for _, row in item] for what in ("candidate", "score"))
        with at(where):
            answers.append(_answer(where, first, candidates, scores))
    return tuple(answers)


def _wide(table: Table, places: dict[str, int]) -> tuple[Answer, ...]:
    candidates = {i: name for i, name in enumerate(table.header) if i not in places.values()}
    if len(set(candidates.values())) < len(candidates):
        raise RecordError(f"{table.path}:1: two columns are called the same")
    answers = []
    for line, cells in table.rows:
        own = {what: cells[place] for what, place in places.items()}
        given = {name: cells[i] for i, name in candidates.items() if cells[i]}
        with at(where := f"{table.path}:{line}"):
            answers.append(_answer(where, own, list(given), list(given.values())))
    return tuple(answers)


def _answer(
    where: str, own: Mapping[str, str], candidates: Sequence[str], scores: Sequence[object]
) -> Answer:
    if not (own.get("id") or own.get("text")):
        raise RecordError("neither `id` nor `text` names the item")
    if len(candidates) < 2:
        raise RecordError(f"{len(candidates)} candidate(s); at least 2 are needed")
    pairs = zip(candidates, scores, strict=True)
    numbers = tuple(score_of(score, f"the score of {one!r}") for one, score in pairs)
    gold = place_of(own["gold"], candidates) if own.get("gold") else None
    return Answer(
        where=where,
        id=own.get("id", ""),
        texts=(own["text"],) if "text" in own else (),
        choices=tuple(candidates),
        scores=numbers,
        gold=gold,
    )
