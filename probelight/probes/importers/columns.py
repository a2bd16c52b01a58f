"""The columns of a set of items: what each may be called, in a file, in memory or on the Hub."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from probelight.io.errors import RecordError
from probelight.io.escaping import listed
from probelight.probes.record import META_FIELDS, Setup

GOOD, BAD = "sentence_good", "sentence_bad"
# The names of a column, in lower case with _ between words; messages have the first of each.
_NAMES = {field: (field,) for field in ("id", *META_FIELDS)} | {
    "sentence": ("sentence", "text", "stem", "question", "question_stem", "question.stem"),
    "gold": ("gold", "answer", "label", "answerkey", "correct_answer"),
    "choices": ("choices", "candidates", "options", "question.choices"),
    "context": ("context", "passage", "article", "premise"),
    "notes": ("notes", "meta"),
    "cluster": ("cluster", "group"),
    "UID": ("uid",),
    "pairID": ("pairid",),
}
_FIELDS = {name: field for field, names in _NAMES.items() for name in names}
# RACE has questions about an article.
_RACE = {"article": "article", "question": "sentence", "options": "choices", "answer": "gold"}
_RACE |= {"example_id": "source"}
_SEVERAL = {BAD, "distractor1"}  # which several columns may hold
# What a column of sentences calls them.
JUDGEMENTS = dict.fromkeys(("good", "right", "correct", "grammatical", "acceptable"), GOOD)
JUDGEMENTS |= dict.fromkeys(("bad", "wrong", "incorrect", "ungrammatical", "unacceptable"), BAD)


class ColumnError(RecordError):
    """The columns hold no items, or can be read in two ways."""


class Layout(NamedTuple):
    """What the columns of a row hold."""

    columns: Sequence[str]  # as they are called
    fields: Sequence[str]  # what each holds; "" for one that is not read

    def name(self, field: str) -> str:
        """Return what the column of a field is called, for messages."""
        return f"`{self.columns[self.fields.index(field)]}`"

    def cells_by_field(self, cells: Sequence[Any]) -> dict[str, Any]:
        """Return the cell of each field; a list where several columns may hold it."""
        row: dict[str, Any] = {}
        for field, cell in zip(self.fields, cells, strict=True):
            if field in _SEVERAL:
                row.setdefault(field, []).extend(cell if isinstance(cell, list) else [cell])
            else:
                row[field] = cell
        return row


def without_nested(
    columns: Sequence[str], cells: Sequence[Any]
) -> tuple[Sequence[str], Sequence[Any]]:
    """Return a row whose nested `question`, if it has one, is columns such as question.stem."""
    nested = [isinstance(cell, Mapping) and "stem" in cell for cell in cells]
    if not any(nested):
        return columns, cells
    index = nested.index(True)
    inner_cells = {f"{columns[index]}.{key}": cell for key, cell in cells[index].items()}
    names = [*columns[:index], *inner_cells, *columns[index + 1 :]]
    return names, [*cells[:index], *inner_cells.values(), *cells[index + 1 :]]


def layout_of(columns: Sequence[str], setup: Setup | None, has_candidates: bool) -> Layout:
    """Return what the columns of a row hold; `has_candidates` says that none needs to hold choices.

    Raises:
        ColumnError: If a column is missing, or two can be read as the same.
    """
    columns = [column.strip() or f"column {number}" for number, column in enumerate(columns, 1)]
    fields = [field_of(column) for column in columns]
    if {column.lower() for column in columns} >= _RACE.keys() - {"example_id"}:
        fields = [_RACE.get(c.lower(), f) for c, f in zip(columns, fields, strict=True)]

    def refuse_several(why: str, *names: str) -> None:
        several = [c for c, field in zip(columns, fields, strict=True) if field in names]
        if len(several) > 1:
            raise ColumnError(f"{' and '.join(several)} {why}")

    are_sentences = {GOOD, BAD} <= {*fields} and not {"sentence", "choices"} & {*fields}
    is_pair = "choices" not in fields if setup == "minimal_pair" else not setup and are_sentences
    if is_pair:
        if not {GOOD, BAD} <= {*fields}:
            raise ColumnError(
                f"minimal pairs need a column {GOOD} and one or more {BAD}, but the columns are "
                f"{listed(columns)}"
            )
        why = "cannot be columns of one minimal pair; keep the sentences alone"
        refuse_several(why, GOOD, "sentence", "gold", "choices", "context")
        refuse_several("both name the paradigm; keep one of them", "UID", "paradigm")
    elif are_sentences:
        raise ColumnError(
            "these are columns of minimal pairs, whole sentences; use the setup minimal_pair"
        )
    else:
        has_choices = has_candidates or "distractor1" in fields
        for field in ("sentence", "gold", *([] if has_choices else ["choices"])):
            if field not in fields:
                for_all = ", or give --data.choices a,b for all items" if field == "choices" else ""
                raise ColumnError(
                    f"no column for the {field}: call it {' or '.join(_NAMES[field][:3])} (in a "
                    f"table, on the first line){for_all}. There are {listed(columns)}"
                )
        why = "are two texts; write them in one column, as they are to be read"
        refuse_several(why, "sentence", "context")
        if "choices" in fields:
            refuse_several("both hold choices; keep one of them", "choices", "distractor1")
        fields = ["" if field in {GOOD, BAD, "UID", "pairID"} else field for field in fields]
    for field in {*fields} - _SEVERAL - {""}:
        refuse_several(f"both name the {field}; keep one of them", field)
    return Layout(columns, fields)


def field_of(column: str) -> str:
    """Return what a column holds by its name, "" where the name is not known."""
    name = re.sub(r"[\s-]+", "_", column.lower())
    if re.fullmatch(r"distractor_?\d+", name):
        return "distractor1"
    words = letter_words(name) - {"sentence", "sentences"}
    judged = JUDGEMENTS.get(words.pop(), "") if len(words) == 1 else ""
    # Wrong sentences may be numbered: bad_1, bad_2.
    return _FIELDS.get(name) or (judged if judged == BAD or not name[-1:].isdecimal() else "")


def letter_words(text: str) -> set[str]:
    """Return the words of a text in lower case, without numbers and marks."""
    return {*re.findall(r"[^\W\d_]+", text.lower())}
