"""Reading a file with an item on each line, in any form, and the AI2 format."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from probelight.io.atomic import write_bytes_atomic
from probelight.io.documents import json_object, kind_of
from probelight.io.errors import RecordError
from probelight.io.files import MAX_ITEMS, DataFile, content_sha256, read_lines
from probelight.probes.record import META_FIELDS, Record, RepeatedSentenceError, Setup, validate

# A line and its number as a record (with an empty id where it has none), or None for a header.
Parse = Callable[[str, int], Record | None]


@dataclass(frozen=True)
class ItemFile:
    """The content of one file."""

    records: tuple[Record, ...]  # in the order of the file
    files: tuple[DataFile, ...]  # the file, and the choices that the user gave for all items
    notices: tuple[str, ...]  # for a reader of the results ("505 ids repeat")


class Options(TypedDict, total=False):
    """How a file of items is read."""

    name: str  # items without an id become `<name>-<line>`; by default the name of the file
    leave_out: Collection[int]  # lines not to read: rows of a released file that cannot be used
    ids_repeat: bool  # whether ids may repeat, as in some released files; they are counted


def read_items(path: str | Path, parse: Parse, **options: Unpack[Options]) -> ItemFile:
    """Read a whole file, plain or compressed, with `parse` for each line.

    Raises:
        RecordError: If a line is malformed, an id repeats, or the file is empty, damaged or not
            UTF-8; the message names file and line.
        FileNotFoundError: If there is no such file.
    """
    path = Path(path)
    name = options.get("name") or path.name.partition(".")[0]
    leave_out = options.get("leave_out", ())
    records = list[Record]()
    blank, unnamed, same = list[int](), list[int](), list[int]()
    for line, text in read_lines(path):
        if line > MAX_ITEMS:
            raise RecordError(f"{path}:{line}: a file can have at most {MAX_ITEMS:,} lines")
        if not text.strip():
            blank.append(line)
            continue
        if line in leave_out:
            continue
        try:
            record = parse(text, line)
        except RepeatedSentenceError:
            same.append(line)  # released files have some: all are named at once
            continue
        except RecordError as error:
            raise RecordError(f"{path}:{line}: {error}") from None
        if record is None:
            continue
        if not record.id:
            unnamed.append(line)
        records.append(replace(record, id=record.id or f"{name}-{line}", file=str(path)))
    if same:
        raise RecordError(
            f"{path}:{same[0]}: the same sentence twice, so neither can be the right one"
            + (f" ({_lines(same, 50)})" if len(same) > 1 else "")
            + ". Correct it, or write in the probe's config `leave_out: {<split>: "
            f"[{', '.join(map(str, same[:50]))}]}}`"
        )
    if not records:
        raise RecordError(f"{path}:1: the file is empty; it has no items")
    if not options.get("ids_repeat"):
        refuse_repeated_ids(records)
    notices = notices_of(records)
    if unnamed:
        notices += (f"{len(unnamed)} rows have no id and are named by their line numbers",)
    if blank:
        notices += (f"{len(blank)} blank lines skipped ({_lines(blank)})",)
    if leave_out:
        notices += (f"{len(leave_out)} rows left out by the config ({_lines(sorted(leave_out))})",)
    file = DataFile(str(path), content_sha256(path), len(records))
    return ItemFile(tuple(records), (file,), notices)


def refuse_repeated_ids(records: Iterable[Record]) -> None:
    """Raise a RecordError that names both places if an id repeats."""
    first: dict[str, Record] = {}
    for record in records:
        if (other := first.setdefault(record.id, record)) is not record:
            raise RecordError(
                f"{record.where}: line {other.position} has the id {record.id!r} too; give each "
                "item an id of its own, or none (then its line number is its name). If this is a "
                "released file, write `ids_repeat: true` in the probe's config"
            )


def notices_of(records: Sequence[Record]) -> tuple[str, ...]:
    """Return notices of repeated ids and of repeated wrong choices."""
    notices = []
    if repeated := len(records) - len({record.id for record in records}):
        notices.append(f"{repeated} ids repeat")
    twice = [r.position for r in records if len({c.strip() for c in r.choices}) < len(r.choices)]
    if twice:
        rows = f"{len(twice)} rows repeat" if len(twice) > 1 else "1 row repeats"
        notices.append(f"{rows} a choice that is not the gold one ({_lines(twice)})")
    return tuple(notices)


def _lines(numbers: Sequence[int], shown: int = 10) -> str:
    more = f" and {len(numbers) - shown} more" if len(numbers) > shown else ""
    return f"lines {', '.join(map(str, numbers[:shown]))}{more}"


MAX_CHOICES = 5
LABELS = "ABCDE"
ONE_LINE = "each item is one JSON object on one line"
QUESTION = '"question": {"stem": "...", "choices": [{"label": "A", "text": "..."}, ...]}'
EXAMPLE = f'{{"id": "1", {QUESTION}, "answerKey": "A"}}'


def parse_row(text: str) -> dict[str, Any]:
    """Parse the JSON object of one line; a RecordError says that it is none, or repeats a key."""
    line = text.strip()
    hint = f"; {ONE_LINE}, such as {EXAMPLE}"
    if line.startswith("["):
        hint = f"; this looks like a JSON array: {ONE_LINE}, with no bracket or comma around it"
    elif line.startswith("{"):
        hint = "" if line.endswith("}") else f"; {ONE_LINE}"
    elif re.search(r"[,;\t]", line):
        hint = f"; this looks like CSV: {ONE_LINE}, such as {EXAMPLE}"
    return json_object(text, "an object with a question is needed", hint)


def ai2_row(
    stem: str, texts: Sequence[str], key: object, labels: Sequence[str] = LABELS
) -> dict[str, Any]:
    """Return a row of the AI2 format, without id and notes."""
    choices = [{"label": label, "text": text} for label, text in zip(labels, texts, strict=False)]
    return {"question": {"stem": stem, "choices": choices}, "answerKey": key}


def record_from_row(
    row: Mapping[str, Any], setup: Setup | None, *, position: int, default_id: str = ""
) -> Record:
    """Make a validated record of one parsed row; a RecordError does not say where."""
    question = row.get("question")
    if not isinstance(question, dict):
        raise RecordError(f"`question` is {kind_of(question)}; an object is needed{_row_hint(row)}")
    stem = _text(question.get("stem"), "`question.stem`")
    labels, texts = _choices(question.get("choices"), _row_hint(row))
    key = row.get("answerKey")
    if key is None:
        problem = "null" if "answerKey" in row else "missing"
        raise RecordError(f"no gold: `answerKey` is {problem}")
    if isinstance(key, list):
        raise RecordError(f"{len(key)} golds: `answerKey` is a list; one label is needed")
    label = label_text(key, "`answerKey`")
    if label not in labels:
        raise RecordError(f"no gold: `answerKey` {label!r} is not one of {', '.join(labels)}")
    identifier = row.get("id")
    record = Record(
        id=default_id if identifier is None else label_text(identifier, "`id`"),
        stem=stem,
        choices=texts,
        answer=labels.index(label),
        meta=meta_of(row.get("notes")),
        position=position,
    )
    return validate(record, setup)


def _choices(choices: object, hint: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not isinstance(choices, list):
        raise RecordError(f"`question.choices` is {kind_of(choices)}; a list is needed{hint}")
    if not 2 <= len(choices) <= MAX_CHOICES:
        raise RecordError(f"{len(choices)} choice(s); 2 to {MAX_CHOICES} are needed")
    labels, texts = [], []
    for number, choice in enumerate(choices, start=1):
        if not isinstance(choice, dict):
            raise RecordError(f"choice {number} is {kind_of(choice)}; an object is needed")
        labels.append(label_text(choice.get("label"), f"the label of choice {number}"))
        texts.append(_text(choice.get("text"), f"the text of choice {number}"))
    repeated = [label for label, count in Counter(labels).items() if count > 1]
    if repeated:
        raise RecordError(f"duplicate label {repeated[0]!r}")
    return tuple(labels), tuple(texts)


def meta_of(notes: object) -> dict[str, Any]:
    """Return the notes of a row with the fields that follow from them, such as the cluster."""
    if notes is None:
        return {}
    if not isinstance(notes, dict):
        raise RecordError(f"`notes` is {kind_of(notes)}; an object is needed")
    meta = dict(notes)
    for name in ("hops", "distractor_hops"):  # as tables sort them
        try:
            int(0 if meta.get(name) is None else meta[name])
        except (TypeError, ValueError, OverflowError):
            problem = f"`{name}` in `notes` is {meta[name]!r}; a whole number is needed"
            raise RecordError(problem) from None
    for name in META_FIELDS:  # groups and parts of a set are called by them
        is_list = name == "arguments"
        if not isinstance(meta.get(name), (str | list if is_list else str | int | float) | None):
            needed = "a list" if is_list else "a text or a number"
            raise RecordError(f"`{name}` in `notes` is {kind_of(meta[name])}; {needed} is needed")
    if meta.get("word") and "gold_synset" in meta:  # DictionaryQA asks for the sense of a word
        meta.setdefault("cluster", meta["word"])
        meta.setdefault("sense", meta["gold_synset"])
    elif meta.get("gold_synset"):
        meta.setdefault("cluster", meta["gold_synset"])
    return meta


def label_text(value: object, what: str) -> str:
    """Return a string or an integer as a string: `3` and `"3"` are the same label."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise RecordError(f"{what} is {kind_of(value)}; a string or an integer is needed")
    text = _text(str(value), what)
    if not text.strip():
        raise RecordError(f"{what} is empty")
    return text


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise RecordError(f"{what} is {kind_of(value)}; a string is needed")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RecordError(
            f"{what} has half of a surrogate pair, which is not a character"
        ) from None
    return value


def _row_hint(row: Mapping[str, Any]) -> str:
    """Return what to write instead of layouts of the Hub's data sets; "" for others."""
    question = row.get("question")
    choices = question.get("choices") if isinstance(question, dict) else row.get("choices")
    in_columns = isinstance(choices, dict) and {"text", "label"} <= choices.keys()
    if "sentence_good" in row:
        return "; this is a minimal pair: use the setup minimal_pair"
    if "question_stem" in row or in_columns or (isinstance(question, str) and choices is not None):
        return (
            f"; this looks like a row of a Hub dataset: write {QUESTION}, or name the dataset "
            "under `hub` in the probe's config"
        )
    return ""


def read_ai2(path: str | Path, setup: Setup | None = None, **options: Unpack[Options]) -> ItemFile:
    """Read a .jsonl file in the AI2 format, with the options and errors of `read_items`."""

    def parse(text: str, line: int) -> Record:
        return record_from_row(parse_row(text), setup, position=line)

    return read_items(path, parse, **options)


def write_ai2(path: str | Path, records: Iterable[Record]) -> None:
    """Write records so that `read_ai2` gives them back; meta goes to `notes`.

    Equal records make equal bytes, also when the name ends in .gz (no time stamp inside).

    Raises:
        RecordError: If `read_ai2` would refuse one of them.
    """
    data = bytearray()  # of large files one copy is enough
    for record in records:
        if len(validate(record).choices) > MAX_CHOICES:
            raise RecordError(f"{record.name}: more than {MAX_CHOICES} choices")
        row = {"id": record.id, **ai2_row(record.stem, record.choices, LABELS[record.answer])}
        if record.meta:
            row["notes"] = dict(record.meta)
        data += json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    packed = Path(path).suffix == ".gz"
    write_bytes_atomic(path, gzip.compress(data, mtime=0) if packed else bytes(data))
