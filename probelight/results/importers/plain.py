"""Candidates with their scores, as anybody can write them: JSON lines, or a table.

    {"id": "1", "text": "A cat is an", "scores": {"animal": 0.9, "plant": 0.1}, "gold": "animal"}
    {"id": "1", "candidates": ["animal", "plant"], "scores": [0.9, 0.1], "gold_index": 0}

A table (.csv, .tsv) has a row for each candidate with the columns id, candidate, score; or a row
for each item with a column for each candidate, empty where the item does not have it, or with
`candidates` and `scores` in columns that `--columns` names. An item is named by `id` or by `text`
or both; `gold` is the text of the right candidate. The columns of
candidates are those that are named, or else begin alike (score_animal, score_plant), or else all
whose names are not of something else that tables have (`OF_ITEMS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probelight.io.documents import kind_of, whole_number_of
from probelight.io.errors import RecordError, nearest
from probelight.io.files import DataFile, content_sha256, delimiter_of, read_table
from probelight.probes.importers.cells import begins_list, list_in
from probelight.results.importers.answers import Gold, Imported, at, imported, known_columns, plain
from probelight.results.importers.columns import UNREAD, Columns, named_rows, renamed, watched

if TYPE_CHECKING:
    import pandas as pd

NAMES = {"id": ("id",), "text": ("text", "question"), "gold": ("gold",)}
OF_ITEMS = frozenset(  # columns that are no candidates unless they are named
    "item index uid pairid label answer target correct acc accuracy margin gap confidence entropy "
    "rank prediction predicted pred group cluster subset split template source model seed "
    "num_choices length num_tokens".split()
)
KEYS = ("scores", "candidates", "gold_index")  # of a JSON object, beside its names
OF_LINES = frozenset({*NAMES, "question", *KEYS})
SCORE_OF = re.compile(
    r"((?:score|prob|probability|log_?prob|log_?likelihood|logit)[_:. ])(.+)", re.I
)
CANDIDATES = {**NAMES, "choice": ("candidate",), "score": ("score",)}


def read(
    path: Path,
    candidates: Collection[str] = (),
    choices: Collection[str] = (),
    columns: Columns | None = None,
) -> Imported:
    """Read one file.

    `candidates` name a table's columns of candidates, `choices` are those of known items, and
    `columns` has the names of the file's columns or keys by ours.

    Raises:
        RecordError: If a line is not as above; the message names file and line.
    """
    notices: tuple[str, ...] = ()
    columns = columns or {}
    if not delimiter_of(path) or {*KEYS} & columns.keys():
        unread_keys = set[str]()
        frame = _lines(path, partial(_candidates, unread_keys), columns)
        unread = ", ".join(sorted(unread_keys))
        notices = (f"keys ignored: {unread}",) if unread else ()
    else:
        table = renamed(path, read_table(path, watched=watched), columns)
        if {"candidate", "score"}.intersection(map(str.lower, table.columns)):
            frame, notices = known_columns(path, table, CANDIDATES, ("choice", "score"))
        else:  # a column for each candidate
            frame, _ = known_columns(path, table, NAMES, ())
            named = sum(NAMES.values(), ())
            free_columns = [
                name
                for name in table.columns
                if name.lower() not in named and not name.endswith(UNREAD)
            ]
            by_column = _candidate_columns(path, free_columns, candidates, choices)
            notices = (f"candidates: {', '.join(by_column.values())}",)
            unread = ", ".join(name for name in free_columns if name not in by_column)
            notices += (f"columns ignored: {unread}",) if unread else ()
            columns_by_text = {text: name for name, text in by_column.items()}
            texts = [*columns_by_text]
            scores = table[[*columns_by_text.values()]].to_numpy().tolist()
            del table  # cells of a million items that nobody reads
            frame["choice"] = [texts if all(row) else [*compress(texts, row)] for row in scores]
            frame["score"] = [row if all(row) else [*filter(None, row)] for row in scores]
    names = frame.reindex(columns=["id", "text"]).astype(object).fillna("")
    if (unnamed := names.eq("").all(axis="columns")).any():
        raise RecordError(f"{unnamed.idxmax()}: the item has neither `id` nor `text`")
    if not isinstance(frame["choice"].iloc[0], list):
        frame["item"] = [f"{of}\n{plain(text)}" for of, text in names.to_numpy()]
    return imported(path, content_sha256(path), frame, notices)


def _candidate_columns(
    path: Path, columns: Sequence[str], candidates: Collection[str], choices: Collection[str]
) -> dict[str, str]:
    """Return the candidate of each column that has scores; RecordError if it is not clear."""
    if missing := [name for name in candidates if name not in columns]:
        raise RecordError(f"{path}:1: no column {missing[0]!r}{nearest(missing[0], columns)}")
    free = [name for name in columns if choices or name.lower() not in OF_ITEMS]
    by_name = {name: name for name in candidates or free}
    by_prefix: dict[str, dict[str, str]] = {}
    for name in by_name:
        if (match := SCORE_OF.fullmatch(name)) and match[2].lower() not in OF_ITEMS:
            by_prefix.setdefault(match[1].lower(), {})[name] = match[2]
    alike = [of_prefix for of_prefix in by_prefix.values() if len(of_prefix) > 1]
    readings = [by_name, *alike] if choices else alike or [by_name]
    if choices:
        texts = {*map(plain, choices)}
        readings = [{n: t for n, t in names.items() if plain(t) in texts} for names in readings]
    readings = [names for names in readings if len(names) > 1]
    if len(readings) != 1:
        either = " or ".join(map(", ".join, readings)) or ", ".join(columns)
        raise RecordError(
            f"{path}:1: which columns are candidates, {either}? Name them as --candidates a,b"
        )
    return readings[0]


def read_gold(path: Path) -> Gold:
    """Return the right candidates of a second file, by id or text, with file and line.

    Raises:
        RecordError: If a line names no item or no gold, or an item has two.
    """
    if delimiter_of(path):
        frame, _ = known_columns(path, read_table(path), NAMES, ())
    else:
        frame = _lines(path, names_of, {})
    gold_by_key: dict[str, tuple[str, str]] = {}
    for row in frame.reindex(columns=[*NAMES]).astype(object).fillna("").itertuples():
        key = row.id or plain(row.text)
        if not key or not row.gold:
            raise RecordError(
                f"{row.Index}: `{'gold' if key else 'id` or `text'}` is missing or empty"
            )
        gold, earlier = gold_by_key.setdefault(key, (row.gold, row.Index))
        if plain(gold) != plain(row.gold):
            raise RecordError(f"{row.Index}: {key!r} has another gold, {gold!r}, at {earlier}")
    return Gold((DataFile(str(path), content_sha256(path), len(gold_by_key)),), gold_by_key)


def _lines(
    path: Path, parse: Callable[[Mapping[str, Any]], dict[str, object]], columns: Columns
) -> pd.DataFrame:
    """Return a row for each JSON object of a file, or row of a table, called by file and line."""
    import pandas as pd  # not above: --help is quick

    rows = dict[str, dict[str, object]]()
    for where, row in named_rows(path, columns):
        with at(where):
            rows[where] = parse(row)
    if not rows:
        raise RecordError(f"{path}:1: the file is empty; it has no items")
    return pd.DataFrame([*rows.values()], index=[*rows], dtype=object)


def names_of(row: Mapping[str, Any]) -> dict[str, object]:
    """Return the id, text and gold of a JSON object, those that it has."""
    texts: dict[str, object] = {}
    for ours, aliases in NAMES.items():
        for alias in aliases:
            value = row.get(alias)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise RecordError(f"`{alias}` is {kind_of(value)}; a text is needed")
            if ours in texts:
                raise RecordError(f"{' and '.join(aliases)} mean the same; give one of them")
            texts[ours] = str(value)
    return texts


def _candidates(unread_keys: set[str], row: Mapping[str, Any]) -> dict[str, object]:
    """Return the names of a row, its candidates and their scores; note its other keys."""
    if "scores" not in row:
        raise RecordError(f"`scores` is missing{nearest('scores', list(row))}")
    scores, choices = (  # a table has its lists as texts
        list_in(cell) if isinstance(cell, str) and begins_list(cell) else cell
        for cell in (row["scores"], row.get("candidates"))
    )
    if isinstance(scores, dict) and choices is None:
        choices, scores = list(scores), list(scores.values())
    if not isinstance(scores, list) or not isinstance(choices, list):
        raise RecordError(
            f"`scores` is {kind_of(scores)} and `candidates` {kind_of(choices)}; give an object "
            "of scores by candidate, or two lists"
        )
    if len(scores) != len(choices):
        raise RecordError(f"{len(choices)} candidates, but {len(scores)} scores")
    if strange := [choice for choice in choices if not isinstance(choice, str)]:
        raise RecordError(f"a candidate is {kind_of(strange[0])}; a text is needed")
    unread_keys |= row.keys() - OF_LINES
    names = with_gold_text(names_of(row), row, choices)
    if "" in choices:  # of columns that an item lacks
        pairs = [pair for pair in zip(choices, scores, strict=True) if pair != ("", "")]
        choices, scores = ([*cells] for cells in zip(*pairs, strict=True)) if pairs else ([], [])
    return {**names, "choice": choices, "score": scores}


def with_gold_text(
    names: Mapping[str, object], row: Mapping[str, Any], choices: Sequence[str]
) -> dict[str, object]:
    """Return the names of a row with its gold, whether that is there as a text or as an index."""
    if (cell := row.get("gold_index")) is None:
        return {**names}
    if "gold" in names:
        raise RecordError("`gold` and `gold_index` both say which is right; give one of them")
    index = whole_number_of(cell)
    if index is None or not 0 <= index < len(choices):
        raise RecordError(
            f"`gold_index` is {cell!r}; a number from 0 to {len(choices) - 1} is needed"
        )
    return {**names, "gold": choices[index]}
