"""The columns of a set of items: what each may be called, and what its cells hold."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from probelight.io.documents import json_object, kind_of
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


def text_of(cell: object, subject: str) -> str:
    """Return a cell that must be a text."""
    if not isinstance(cell, str):
        raise RecordError(f"{subject} is {kind_of(cell)}; a string is needed")
    if re.search("[\ud800-\udfff]", cell):
        raise RecordError(f"{subject} has half of a surrogate pair, which is not a character")
    return cell


def label_of(cell: object, subject: str) -> str:
    """Return a string or an integer as a string: `3` and `"3"` are the same label."""
    if isinstance(cell, bool) or not isinstance(cell, (str, int)):
        raise RecordError(f"{subject} is {kind_of(cell)}; a string or an integer is needed")
    text = text_of(str(cell), subject)
    if not text.strip():
        raise RecordError(f"{subject} is empty")
    return text


def choices_of(cell: object, subject: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels, none if they have none, and the texts of choices."""
    if isinstance(cell, str):
        cell = _separated(cell)
    if isinstance(cell, Mapping) and {"text", "label"} <= cell.keys():
        texts, names = cell["text"], cell["label"]
        if not (isinstance(texts, list) and isinstance(names, list) and len(texts) == len(names)):
            raise RecordError(f"{subject}: `text` and `label` must be two lists of the same length")
        cell = [{"label": name, "text": text} for name, text in zip(names, texts, strict=True)]
    if not isinstance(cell, list):
        raise RecordError(f"{subject} is {kind_of(cell)}; a list is needed")
    if not any(isinstance(choice, Mapping) for choice in cell):
        return (), tuple(text_of(text, f"choice {n}") for n, text in enumerate(cell, start=1))
    labels: list[str] = []
    texts = []
    for number, choice in enumerate(cell, start=1):
        if not isinstance(choice, Mapping):
            raise RecordError(f"choice {number} is {kind_of(choice)}; an object is needed")
        labels.append(label_of(choice.get("label"), f"the label of choice {number}"))
        texts.append(text_of(choice.get("text"), f"the text of choice {number}"))
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        raise RecordError(f"duplicate label {repeated[0]!r}")
    return tuple(labels), tuple(texts)


def _separated(text: str) -> Any:
    """Return the choices of one text: a JSON value, or texts separated by | or ;."""
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"the choices {text[:60]!r} are not a JSON list: {error}") from None
    if "|" in text and ";" in text:
        raise RecordError(f"the choices {text[:60]!r} have both | and ; between them; use one")
    choices = [choice.strip() for choice in text.split("|" if "|" in text else ";")]
    if len(choices) < 2:
        raise RecordError(
            f"{text[:60]!r} is read as 1 choice(s), but at least 2 are needed; separate them with "
            "| or ;, or write a JSON list"
        )
    return choices


def meta_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a row, in its notes or in columns, and those that follow from them.

    `row` has the cells by field.
    """
    notes = {} if row.get("notes") is None else row["notes"]
    if isinstance(notes, str):
        notes = json_object(notes) if notes.startswith("{") else {"notes": notes}
    if not isinstance(notes, Mapping):
        raise RecordError(f"`notes` is {kind_of(notes)}; an object is needed")
    meta = {name: fact for name, fact in notes.items() if fact is not None}
    columns = {name: row[name] for name in META_FIELDS if row.get(name) not in (None, "")}
    if row.get("UID") not in (None, ""):
        columns["paradigm"] = label_of(row["UID"], "`UID`")
    for name, fact in columns.items():
        if meta.setdefault(name, fact) != fact:
            raise RecordError(f"`{name}` is {fact!r}, but {meta[name]!r} in `notes`")
    for name in {"hops", "distractor_hops"} & meta.keys():  # as tables sort them
        if not re.fullmatch(r"-?[0-9]{1,9}(\.0)?", str(meta[name])):
            raise RecordError(f"`{name}` is {meta[name]!r}; a whole number is needed")
        meta[name] = int(float(meta[name]))
    if isinstance(arguments := meta.get("arguments"), str):
        is_json = arguments.startswith("[")
        meta["arguments"] = _separated(arguments) if is_json else re.split(r"\s*[|;]\s*", arguments)
    for name in META_FIELDS:  # groups and parts of a set are called by them
        is_list = name == "arguments"
        if not isinstance(meta.get(name), (list if is_list else str | int | float) | None):
            needed = "a list" if is_list else "a text or a number"
            raise RecordError(f"`{name}` is {kind_of(meta[name])}; {needed} is needed")
    if meta.get("word") and "gold_synset" in meta:  # DictionaryQA asks for the sense of a word
        meta.setdefault("cluster", meta["word"])
        meta.setdefault("sense", meta["gold_synset"])
    elif meta.get("gold_synset"):
        meta.setdefault("cluster", meta["gold_synset"])
    return meta
