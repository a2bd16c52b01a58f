"""Log-probabilities of labels, of choices listed in one or several orders: JSON lines.

    {"id": "1", "text": "A cat is an", "order": ["animal", "plant"], "scores": {"A": -0.1, "B": -2},
     "gold": "animal"}
    {"id": "1", "text": "A cat is an", "order": ["plant", "animal"], "scores": {"A": -1, "B": -0.6}}

A line is an item in one order of its choices: `order` has their texts as the labels named them, and
`scores` a number for each label: A, B, ... or 1, 2, ..., in any order, as an API may have them by
size; or a list in the order of `order`, whatever the labels. An item is named by `id`, or by its
text and choices; its first line has the order of the file. `gold` is the text of the right choice,
on any of its lines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from probelight.io.documents import json_object, kind_of
from probelight.io.errors import RecordError, nearest
from probelight.io.files import MAX_ROWS, DataFile, content_sha256, item_lines
from probelight.results.importers.answers import (
    Answer,
    Imported,
    Labelled,
    at,
    index_of,
    plain,
    score_of,
)
from probelight.results.importers.plain import names_of


def read(path: Path) -> Imported:
    """Read one file.

    Raises:
        RecordError: If a line is not as above, or two lines of an item contradict each other; the
            message names file and line.
    """
    answers: dict[tuple[str, ...], Answer] = {}
    unread: set[str] = set()
    for where, text in item_lines(path, MAX_ROWS):  # one for each order of an item's choices
        with at(where):
            row = json_object(text)
            answer = _answer(row, where)
            unread |= row.keys() - {"id", "text", "question", "gold", "order", "scores"}
            key = (answer.id,) if answer.id else (*answer.texts, *_sorted(answer.choices))
            answers[key] = _with_order(answers[key], answer) if key in answers else answer
    if not answers:
        raise RecordError(f"{path}:1: the file is empty; it has no items")
    return Imported(
        (DataFile(str(path), content_sha256(path), len(answers)),),
        tuple(answers.values()),
        path.name.partition(".")[0],
        notices=(f"keys ignored: {', '.join(sorted(unread))}",) if unread else (),
    )


def _answer(row: Mapping[str, Any], where: str) -> Answer:
    """Return the answer on one line."""
    needed = {"order": "a list of the choices", "scores": "an object of numbers by label"}
    for key, form in needed.items():
        if key not in row:
            raise RecordError(f"`{key}` is missing{nearest(key, list(row))}")
        if not isinstance(row[key], list | dict if key == "scores" else list):
            raise RecordError(f"`{key}` is {kind_of(row[key])}; {form} is needed")
    order, raw = row["order"], row["scores"]
    if strange := [text for text in order if not isinstance(text, str)]:
        raise RecordError(f"a choice is {kind_of(strange[0])}; a text is needed")
    if len(order) < 2:
        raise RecordError(f"{len(order)} choice(s) in `order`; at least 2 are needed")
    if len(order) != len(raw):
        raise RecordError(f"{len(order)} choices in `order`, but {len(raw)} labels in `scores`")
    if len({*map(plain, order)}) < len(order):
        raise RecordError("two choices in `order` are the same")
    by_label = _in_order(raw) if isinstance(raw, dict) else enumerate(raw, start=1)
    scores = tuple(score_of(score, f"the score of {name!r}") for name, score in by_label)
    names = names_of(row)
    text, name, gold = (str(names.get(key, "")) for key in ("text", "id", "gold"))
    if not text and not name:
        raise RecordError("the item has neither `id` nor `text`")
    return Answer(
        where=where,
        id=name,
        texts=(text,) if "text" in names else (),
        choices=tuple(order),
        scores=scores,
        gold=index_of(gold, tuple(order)) if gold else None,
        labelled=(Labelled(tuple(order), scores),),
    )


def _in_order(scores: Mapping[str, object]) -> list[tuple[str, object]]:
    """Return labels with their scores, from A, a or 1 on."""
    for alphabet in (ascii_uppercase, ascii_lowercase, [str(n + 1) for n in range(len(scores))]):
        labels = [*alphabet[: len(scores)]]
        if {*labels} == {name.strip() for name in scores}:
            by_name = {name.strip(): score for name, score in scores.items()}
            return [(label, by_name[label]) for label in labels]
    raise RecordError(
        f"the labels {', '.join(map(repr, scores))} are neither A, B, ... nor 1, 2, ...; give "
        "`scores` as a list in the order of `order`"
    )


def _with_order(first: Answer, line: Answer) -> Answer:
    """Return an item with the order of another line of it added."""
    if _sorted(first.choices) != _sorted(line.choices):
        raise RecordError(f"the same item has other choices at {first.where}")
    if first.texts and line.texts and plain(first.texts[0]) != plain(line.texts[0]):
        raise RecordError(f"the same item has another text at {first.where}")
    [added] = line.labelled
    orders = [[*map(plain, earlier.order)] for earlier in first.labelled]
    if [*map(plain, added.order)] in orders:
        raise RecordError(f"the item that begins at {first.where} already has this order")
    gold = first.gold
    if line.gold is not None:
        index = index_of(line.choices[line.gold], first.choices)
        if gold not in (None, index):
            raise RecordError(f"the same item has another gold at {first.where}")
        gold = index
    labelled = (*first.labelled, added)
    return replace(first, gold=gold, texts=first.texts or line.texts, labelled=labelled)


def _sorted(choices: tuple[str, ...]) -> list[str]:
    return sorted(map(plain, choices))
