"""Reads and writes the AI2 multiple-choice format: one JSON object a line, plain, .gz or .zip.

    {"id", "question": {"stem", "choices": [{"label", "text"}, ...]}, "answerKey", "notes"}

All released files of the three papers have it, with differences that are read as they are: labels
and keys are strings or integers, ids are missing or (where a config says so) repeat, `notes` is
there or not.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable
from pathlib import Path

from probelight.io.atomic import write_bytes_atomic
from probelight.io.errors import RecordError
from probelight.probes.importers.ai2_row import LABELS, MAX_CHOICES, parse_row, record_from_row
from probelight.probes.importers.items import ItemFile, read_items
from probelight.probes.record import Record, Setup, validate


def read_ai2(
    path: str | Path,
    setup: Setup | None = None,
    *,
    name: str | None = None,
    leave_out: Collection[int] = (),
    ids_repeat: bool = False,
) -> ItemFile:
    """Reads a whole file; the first malformed row is an error that names file and line.

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
    """Writes records so that `read_ai2` gives them back; meta goes to `notes`.

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
