"""One row of the AI2 format as a record, and what is wrong with it if it is none."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from probelight.io.atomic import write_bytes_atomic
from probelight.io.documents import json_object, kind_of
from probelight.io.errors import RecordError
from probelight.probes.importers.items import ItemFile, read_items
from probelight.probes.record import Record, Setup, validate

MAX_CHOICES = 5
LABELS = "ABCDE"
ONE_LINE = "each item is one JSON object on one line"
QUESTION = '"question": {"stem": "...", "choices": [{"label": "A", "text": "..."}, ...]}'
EXAMPLE = f'{{"id": "1", {QUESTION}, "answerKey": "A"}}'


def parse_row(text: str) -> dict[str, Any]:
    """Parse the JSON object of one line.

    Raises:
        RecordError: If it is none, or gives a key twice.
    """
    return json_object(text, "an object with a question is needed", _line_hint(text))


def record_from_row(
    row: Mapping[str, Any], setup: Setup | None, *, position: int, default_id: str = ""
) -> Record:
    """Make a validated record of one parsed row.

    Raises:
        RecordError: If it is malformed; the message says what is wrong, not where.
    """
    question = row.get("question")
    if not isinstance(question, dict):
        raise RecordError(f"`question` is {kind_of(question)}; an object is needed{_row_hint(row)}")
    stem = _text(question.get("stem"), "`question.stem`")
    labels, texts = _choices(question.get("choices"), _row_hint(row))
    answer = _answer(row, labels)
    identifier = row.get("id")
    record = Record(
        id=default_id if identifier is None else label_text(identifier, "`id`"),
        stem=stem,
        choices=texts,
        answer=answer,
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


def _answer(row: Mapping[str, Any], labels: Sequence[str]) -> int:
    key = row.get("answerKey")
    if key is None:
        raise RecordError(
            "no gold: `answerKey` is " + ("null" if "answerKey" in row else "missing")
        )
    if isinstance(key, list):
        raise RecordError(f"{len(key)} golds: `answerKey` is a list; one label is needed")
    label = label_text(key, "`answerKey`")
    if label not in labels:
        raise RecordError(f"no gold: `answerKey` {label!r} is not one of {', '.join(labels)}")
    return labels.index(label)


def meta_of(notes: object) -> dict[str, Any]:
    """Return `notes` under its own names, with the named fields that follow from it.

    Raises:
        RecordError: If they are no object, or a number of hops is none.
    """
    if notes is None:
        return {}
    if not isinstance(notes, dict):
        raise RecordError(f"`notes` is {kind_of(notes)}; an object is needed")
    meta = dict(notes)
    for name in ("hops", "distractor_hops"):  # as tables sort them
        try:
            int(0 if meta.get(name) is None else meta[name])
        except (TypeError, ValueError, OverflowError):
            said = f"`{name}` in `notes` is {meta[name]!r}; a whole number is needed"
            raise RecordError(said) from None
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
        raise RecordError(f"{what} holds half of a surrogate pair, which is no character") from None
    return value


def _line_hint(text: str) -> str:
    """Say what a line that is no JSON object may be; "" where nothing can be told."""
    text = text.strip()
    if text.startswith("["):
        return f"; this looks like a JSON array: {ONE_LINE}, with no bracket or comma around it"
    if text.startswith("{"):
        return "" if text.endswith("}") else f"; {ONE_LINE}"
    if re.search(r"[,;\t]", text):
        return f"; this looks like CSV: {ONE_LINE}, such as {EXAMPLE}"
    return f"; {ONE_LINE}, such as {EXAMPLE}"


def _row_hint(row: Mapping[str, Any]) -> str:
    """Say what to write in place of the layouts of data sets of the Hub; "" for others."""
    question = row.get("question")
    choices = question.get("choices") if isinstance(question, dict) else row.get("choices")
    in_columns = isinstance(choices, dict) and {"text", "label"} <= choices.keys()
    if "sentence_good" in row:
        return "; this is a minimal pair: give it as one, with the setup minimal_pair"
    if "question_stem" in row or in_columns or (isinstance(question, str) and choices is not None):
        return (
            f"; this is a row as data sets of the Hub have it: write {QUESTION}, or name the data "
            "set under `hub` in a probe's config"
        )
    return ""


def read_ai2(
    path: str | Path,
    setup: Setup | None = None,
    *,
    name: str | None = None,
    leave_out: Collection[int] = (),
    ids_repeat: bool = False,
) -> ItemFile:
    """Read a whole file; the first malformed row is an error that names file and line.

    Args:
        path: A .jsonl file, as it is or compressed.
        setup: "mc_mlm" also asks for exactly one `[MASK]` in every stem.
        name: Rows without an id become `<name>-<line>`; by default the name of the file.
        leave_out: Lines not to read, for a released file with rows that cannot be used.
        ids_repeat: Whether ids may repeat, as in some released files; they are counted.

    Raises:
        RecordError: If a row is malformed, an id repeats, or the file is empty, damaged or not
            UTF-8.
        FileNotFoundError: If there is no such file.
    """

    def parse(text: str, line: int) -> Record:
        return record_from_row(parse_row(text), setup, position=line)

    return read_items(path, parse, name=name, leave_out=leave_out, ids_repeat=ids_repeat)


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
        labels = LABELS[: len(record.choices)]
        row = {
            "id": record.id,
            "question": {
                "stem": record.stem,
                "choices": [
                    {"label": label, "text": text}
                    for label, text in zip(labels, record.choices, strict=True)
                ],
            },
            "answerKey": labels[record.answer],
        }
        if record.meta:
            row["notes"] = dict(record.meta)
        data += json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    packed = Path(path).suffix == ".gz"
    write_bytes_atomic(path, gzip.compress(data, mtime=0) if packed else bytes(data))
