"""Files of items: a table, or a JSON object on each line, plain or compressed."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Unpack

from probelight.io.atomic import write_bytes_atomic
from probelight.io.documents import json_object
from probelight.io.files import DataFile, content_sha256, delimiter_of, read_lines, text_path
from probelight.probes.importers.rows import ItemFile, Options, RowReader, lines_of
from probelight.probes.importers.tables import ItemTable
from probelight.probes.record import Record, Setup, validate

ONE_LINE = "each item is one JSON object on one line"
EXAMPLE = '{"sentence": "...", "choices": ["...", "..."], "gold": "..."}'


def read_file(path: str | Path, setup: Setup | None = None, **options: Unpack[Options]) -> ItemFile:
    """Read one file of items; its name decides the format.

    Args:
        path: A .csv or .tsv table (`probes.importers.tables`) or JSON lines, with the columns of
            `probes.importers.rows`; plain or compressed.
        setup: The setup that each item must fit; None allows any.
        **options: See `probelight.probes.importers.rows.Options`.

    Raises:
        RecordError: If a line is malformed, an id repeats, golds can be read in two ways, or the
            file is empty, damaged or not UTF-8; the message names file and line.
        FileNotFoundError: If there is no such file.
    """
    path = text_path(path)
    options.setdefault("name", path.name.partition(".")[0])
    reader = RowReader(str(path), setup, **options)
    delimiter = delimiter_of(path)
    table = ItemTable(delimiter, setup == "minimal_pair") if delimiter else None
    blank: list[int] = []
    for line, text in read_lines(path):
        if not text.strip():
            blank.append(line)
        elif line in reader.leave_out:
            continue
        elif table:
            table.add(line, text, reader)
        else:
            with reader.errors_at(line):
                row = _json_row(text)
            reader.add(line, [*row], [*row.values()])
    item_file = reader.item_file()
    notices = table.notices(item_file) if table else ()
    if blank:
        notices += (f"{len(blank)} blank lines skipped ({lines_of(blank)})",)
    file = DataFile(str(path), content_sha256(path), len(item_file.records))
    return replace(item_file, files=(file, *item_file.files), notices=item_file.notices + notices)


def _json_row(text: str) -> dict[str, Any]:
    """Parse the JSON object of a line; RecordError if it is none or repeats a key."""
    line = text.strip()
    hint = f"; {ONE_LINE}, such as {EXAMPLE}"
    if line.startswith("["):
        hint = f"; this looks like a JSON array: {ONE_LINE}, with no bracket or comma around it"
    elif line.startswith("{"):
        hint = "" if line.endswith("}") else f"; {ONE_LINE}"
    elif re.search(r"[,;\t]", line):
        hint = f"; this looks like CSV: {ONE_LINE}, such as {EXAMPLE}"
    return json_object(text, "an object with a question is needed", hint)


def write_ai2(path: str | Path, records: Iterable[Record]) -> None:
    """Write records in the AI2 format, so that `read_file` gives them back; meta goes to `notes`.

    Labels are letters, or numbers from 1 where an item has more than 26 choices. Equal records
    make equal bytes, also when the name ends in .gz (no time stamp inside).

    Raises:
        RecordError: If `read_file` would refuse one of them.
    """
    content = bytearray()  # of large files one copy is enough
    for record in records:
        numbers = [str(number) for number, _ in enumerate(validate(record).choices, start=1)]
        labels = ascii_uppercase[: len(numbers)] if len(numbers) <= 26 else numbers
        choices = [
            {"label": n, "text": text} for n, text in zip(labels, record.choices, strict=True)
        ]
        question = {"stem": record.stem, "choices": choices}
        row = {"id": record.id, "question": question, "answerKey": labels[record.answer]}
        if record.meta:
            row["notes"] = dict(record.meta)
        content += json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    packed = Path(path).suffix == ".gz"
    write_bytes_atomic(path, gzip.compress(content, mtime=0) if packed else bytes(content))
