"""Items in memory, dicts or the rows of a table, as a file that all readers take."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from probelight.io.atomic import write_text_atomic
from probelight.io.errors import RecordError
from probelight.io.escaping import json_text
from probelight.probes.importers.hub import adapter_of
from probelight.probes.importers.items import LABELS, MAX_CHOICES, ai2_row
from probelight.probes.record import MASK, META_FIELDS, OTHER_MASK, Setup, with_mask

STEMS = ("question", "sentence", "stem", "text")
GOLDS = ("answer", "gold", "label", "answerKey")
_PLAIN = '{"question": "...", "choices": ["...", "..."], "answer": "..."}'


def write_items(path: Path, items: Any) -> Setup:
    """Write items as a file, whole, and return their setup; see `items_text`."""
    text, setup = items_text(items)
    write_text_atomic(path, text)
    return setup


def items_text(items: Any) -> tuple[str, Setup]:
    """Return items as the text of a .jsonl file in the AI2 format, or of minimal pairs.

    Args:
        items: Dicts, a `datasets.Dataset` or a DataFrame: rows in the AI2 format, of the layouts
            that data sets of the Hub have, of minimal pairs, or plain ones: a question (or a
            sentence with a mask), the texts of its choices, and the answer as a text, a label or
            its number from 0. An id and facts such as `cluster` may be given too.

    Returns:
        The text, and the setup that all items have.

    Raises:
        RecordError: If a row has none of these forms; the message has its number, from 1.
    """
    if isinstance(items, Mapping):
        kind = type(items).__name__
        raise RecordError(f"{kind} is not a list of items; give a list or a split of a DatasetDict")
    if hasattr(items, "to_dict") and hasattr(items, "columns"):  # a DataFrame
        items = items.to_dict("records")
    lines: list[str] = []
    first: Setup | None = None
    for number, item in enumerate(items, start=1):
        try:
            row = _row(item)
            setup = setup_of_row(row)
            first = first or setup
            if setup != first:
                raise RecordError(f"it is {setup}, but item 1 is {first}; make them two probes")
        except RecordError as error:
            raise RecordError(f"item {number}: {error}") from None
        lines.append(json_text(row) + "\n")
    if first is None:
        raise RecordError("no items were given")
    return "".join(lines), first


def setup_of_row(row: Mapping[str, Any]) -> Setup:
    """Return the setup of a row in the AI2 format or of minimal pairs, by its mask."""
    if "sentence_good" in row:
        return "minimal_pair"
    question = row.get("question")
    stem = str(question.get("stem", "")) if isinstance(question, Mapping) else ""
    if not stem.strip():
        return "minimal_pair"
    return "mc_mlm" if MASK in stem else "mc_qa"


def _row(item: object) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise RecordError(f"it is a {type(item).__name__}, not a dict such as {_PLAIN}")
    # numpy's lists and numbers, of a table that was read from a file
    row = {key: v.tolist() if hasattr(v, "tolist") else v for key, v in item.items()}
    if isinstance(row.get("question"), Mapping) or "sentence_good" in row:
        return row
    choices = row.get("choices")
    adapter = None if isinstance(choices, list | tuple) else adapter_of(row.keys())
    if adapter:
        try:
            return adapter(row)
        except (KeyError, TypeError, IndexError) as error:
            raise RecordError(f"{type(error).__name__}: {error}; write it as {_PLAIN}") from error
    stem = next((row[name] for name in STEMS if name in row), None)
    gold = next((row[name] for name in GOLDS if name in row), None)
    if not (isinstance(stem, str) and isinstance(choices, list | tuple)) or gold is None:
        raise RecordError(f"its keys are {', '.join(map(str, row))}; write it as {_PLAIN}")
    if len(choices) > MAX_CHOICES:
        raise RecordError(f"{len(choices)} choices; 2 to {MAX_CHOICES} are needed")
    labels = [*LABELS[: len(choices)]]
    if isinstance(gold, int) and not isinstance(gold, bool) and 0 <= gold < len(choices):
        gold = labels[gold]
    elif gold in choices:
        gold = labels[list(choices).index(gold)]
    if gold not in labels:
        last = len(choices) - 1
        raise RecordError(f"its answer {gold!r} is not one of its choices, nor 0 to {last}")
    if OTHER_MASK.search(stem):
        stem = with_mask(stem)
    made = ai2_row(stem, choices, gold)
    if "id" in row:
        made["id"] = row["id"]
    notes = {name: row[name] for name in META_FIELDS if row.get(name) is not None}
    return made | ({"notes": notes} if notes else {})
