"""What the cells of a row hold: texts, labels, lists of choices, facts about an item."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from probelight.io.documents import json_object, kind_of
from probelight.io.errors import RecordError
from probelight.probes.record import META_FIELDS


def text_of(cell: object, subject: str) -> str:
    """Return a cell that must be a text."""
    if not isinstance(cell, str):
        raise RecordError(f"{subject} is {kind_of(cell)}; a string is needed")
    if not cell.isascii() and re.search("[\ud800-\udfff]", cell):
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


def mapping_of(cell: object, subject: str) -> Mapping[Any, Any]:
    """Return an object, or that which a text holds as JSON or Python writes it."""
    if isinstance(cell, str):
        cell = list_in(cell)
    if not isinstance(cell, Mapping):
        raise RecordError(f"{subject} is {kind_of(cell)}; an object is needed")
    return cell


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
    """Return the choices of one text: a list as programs write it, or texts with | or ; between."""
    if begins_list(text):
        return list_in(text)
    if "|" in text and ";" in text:
        raise RecordError(f"the choices {text[:60]!r} have both | and ; between them; use one")
    choices = [choice.strip() for choice in text.split("|" if "|" in text else ";")]
    if len(choices) < 2:
        raise RecordError(
            f"{text[:60]!r} is read as 1 choice(s), but at least 2 are needed; separate them with "
            "| or ;, or write a JSON list"
        )
    return choices


def begins_list(text: str) -> bool:
    """Return whether a text begins as a list or an object does: `list_in` reads it."""
    return text.startswith(("[", "{", "array("))


def list_in(text: str) -> Any:
    """Return the list or object that a text is, as JSON, Python or numpy writes it.

    numpy puts no commas between the texts of an array, which Python would join to one. Another text
    is a `RecordError`.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        if re.fullmatch(r"\[[-+.\deE\s]+\]", text):  # numbers as numpy writes them
            return [float(number) for number in text[1:-1].split()]
        tokens = [
            token
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)
        ]
        types = [token.type for token in tokens]
        if (tokenize.STRING, tokenize.STRING) in pairwise(types):
            strings = [token.string for token in tokens if token.type == tokenize.STRING]
            if [t.string for t in tokens] != ["[", *strings, "]"]:
                raise ValueError  # "..." stands for texts that were not printed
            text = f"[{','.join(strings)}]"
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, tokenize.TokenError, ValueError, RecursionError, MemoryError):
        raise RecordError(
            f"{text[:60]!r} is not a list or an object as JSON, Python or numpy writes it"
        ) from None


def _value(node: ast.expr) -> Any:
    """Return a constant of Python's syntax; an array of numpy is a list."""
    if isinstance(node, ast.List):
        return [_value(element) for element in node.elts]
    if isinstance(node, ast.Dict):
        return {
            str(ast.literal_eval(key or node)): _value(cell)
            for key, cell in zip(node.keys, node.values, strict=True)
        }
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "array":
        return _value(node.args[0])
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int):
        return node.value
    raise ValueError(node)


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
    if isinstance(row.get("support"), str):
        columns["support"] = row["support"]
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
