"""Log-probabilities of labels, of choices listed in one or several orders: JSON lines, or a table.

    {"id": "1", "text": "A cat is an", "order": ["animal", "plant"], "scores": {"A": -0.1, "B": -2},
     "gold": "animal"}
    {"id": "1", "text": "A cat is an", "order": ["plant", "animal"], "scores": {"A": -1, "B": -0.6}}

A line is an item in one order of its choices: `order` has their texts as the labels named them, and
`scores` a number for each label: A, B, ... or 1, 2, ..., in any order, as an API may have them by
size; or a list in the order of `order`, whatever the labels. `reversed` may have the scores of the
labels where the choices were listed the other way round. An item is named by `id`, or by its text
and choices; its first line has the order of the file. `gold` is the text of the right choice, or
`gold_index` its number in `order`, on any of its lines. The columns of a table are named by
`--columns`, such as order=choice_a+choice_b.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from probelight.io.documents import kind_of
from probelight.io.errors import RecordError, nearest
from probelight.io.files import MAX_ROWS, DataFile, content_sha256
from probelight.results.importers.answers import (
    Answer,
    Imported,
    Labelled,
    at,
    index_of,
    plain,
    score_of,
)
from probelight.results.importers.columns import Columns, named_rows
from probelight.results.importers.plain import names_of, with_gold_text

KEYS = ("id", "text", "question", "gold", "gold_index", "order", "scores", "reversed")


def read(path: Path, columns: Columns | None = None) -> Imported:
    """Read one file; `columns` has the names of its columns or keys by ours.

    Raises:
        RecordError: If a line is not as above, or two lines of an item contradict each other; the
            message names file and line.
    """
    answers: dict[tuple[str, ...], Answer] = {}
    unread: set[str] = set()
    for where, row in named_rows(path, columns or {}, MAX_ROWS):  # one for each order, or two
        with at(where):
            answer = _answer(row, where)
            unread |= row.keys() - {*KEYS}
            key = (answer.id,) if answer.id else (*answer.texts, *_sorted(answer.choices))
            answers[key] = _with_orders(answers[key], answer) if key in answers else answer
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
    for key in ("order", "scores"):
        if key not in row:
            raise RecordError(
                f"`{key}` is missing{nearest(key, list(row))}; in a table, name its columns as "
                f"--columns {key}=THEIRS+THEIRS"
            )
    order = row["order"]
    if not isinstance(order, list):
        raise RecordError(f"`order` is {kind_of(order)}; a list of the choices is needed")
    if strange := [text for text in order if not isinstance(text, str)]:
        raise RecordError(f"a choice is {kind_of(strange[0])}; a text is needed")
    if len(order) < 2:
        raise RecordError(f"{len(order)} choice(s) in `order`; at least 2 are needed")
    if len({*map(plain, order)}) < len(order):
        raise RecordError("two choices in `order` are the same")
    labelled = [Labelled(tuple(order), _scores(row, "scores"))]
    if "reversed" in row:
        labelled.append(Labelled(tuple(order[::-1]), _scores(row, "reversed")))
    names = with_gold_text(names_of(row), row, order)
    text, name, gold = (str(names.get(key, "")) for key in ("text", "id", "gold"))
    if not text and not name:
        raise RecordError("the item has neither `id` nor `text`")
    return Answer(
        where=where,
        id=name,
        texts=(text,) if "text" in names else (),
        choices=tuple(order),
        scores=labelled[0].scores,
        gold=index_of(gold, tuple(order)) if gold else None,
        labelled=tuple(labelled),
    )


def _scores(row: Mapping[str, Any], key: str) -> tuple[float, ...]:
    """Return the scores of the labels, from the first label on."""
    order, raw = row["order"], row[key]
    if not isinstance(raw, list | dict):
        raise RecordError(f"`{key}` is {kind_of(raw)}; an object of numbers by label is needed")
    if len(order) != len(raw):
        raise RecordError(f"{len(order)} choices in `order`, but {len(raw)} labels in `{key}`")
    by_label = _in_order(raw) if isinstance(raw, dict) else enumerate(raw, start=1)
    return tuple(score_of(score, f"the score of {name!r}") for name, score in by_label)


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


def _with_orders(first: Answer, line: Answer) -> Answer:
    """Return an item with the orders of another line of it added."""
    if _sorted(first.choices) != _sorted(line.choices):
        raise RecordError(f"the same item has other choices at {first.where}")
    if first.texts and line.texts and plain(first.texts[0]) != plain(line.texts[0]):
        raise RecordError(f"the same item has another text at {first.where}")
    orders = [[*map(plain, earlier.order)] for earlier in first.labelled]
    if any([*map(plain, added.order)] in orders for added in line.labelled):
        raise RecordError(f"the item that begins at {first.where} already has this order")
    gold = first.gold
    if line.gold is not None:
        index = index_of(line.choices[line.gold], first.choices)
        if gold not in (None, index):
            raise RecordError(f"the same item has another gold at {first.where}")
        gold = index
    labelled = (*first.labelled, *line.labelled)
    return replace(first, gold=gold, texts=first.texts or line.texts, labelled=labelled)


def _sorted(choices: tuple[str, ...]) -> list[str]:
    return sorted(map(plain, choices))
