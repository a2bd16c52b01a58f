"""Reads and writes the AI2 multiple-choice format: one JSON object a line, plain, .gz or .zip.

    {"id", "question": {"stem", "choices": [{"label", "text"}, ...]}, "answerKey", "notes"}

All released files of the three papers have it, with differences that are read as they are: labels
and keys are strings or integers, ids are missing or (where a config says so) repeat, `notes` is
there or not.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from probes.importers.ai2_row import LABELS, MAX_CHOICES, parse_row, record_from_row
from probes.record import Record, Setup, validate
from storage.errors import RecordError
from storage.files import content_sha256, read_lines, write_bytes_atomic
from storage.limits import MAX_ITEMS


@dataclass(frozen=True)
class AI2File:
    """What one file holds.

    Attributes:
        path: Where it was read.
        records: The items, in the order of the file.
        sha256: Of the decompressed bytes, so that plain and gzipped copies agree.
        notices: Facts a reader of the results should know ("505 ids repeat").
    """

    path: Path
    records: tuple[Record, ...]
    sha256: str
    notices: tuple[str, ...]


def read_ai2(
    path: str | Path,
    setup: Setup | None = None,
    *,
    name: str | None = None,
    leave_out: Collection[int] = (),
    ids_repeat: bool = False,
) -> AI2File:
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
    path = Path(path)
    name = name or path.name.partition(".")[0]
    records = list[Record]()
    blank, unnamed = list[int](), list[int]()
    for line, text in read_lines(path):
        if line > MAX_ITEMS:
            raise RecordError(f"{path}:{line}: more than {MAX_ITEMS:,} lines, the most of one file")
        if not text.strip():
            blank.append(line)
            continue
        if line in leave_out:
            continue
        try:
            row = parse_row(text)
            if row.get("id") is None:
                unnamed.append(line)
            record = record_from_row(row, setup, default_id=f"{name}-{line}", position=line)
            records.append(replace(record, file=str(path)))
        except RecordError as error:
            raise RecordError(f"{path}:{line}: {error}") from None
    if not records:
        raise RecordError(f"{path}:1: the file is empty; it holds no item")
    if not ids_repeat:
        refuse_repeated_ids(records)
    notices = notices_of(records)
    if unnamed:
        notices += (f"{len(unnamed)} rows have no id and are named by their line",)
    if blank:
        notices += (f"{len(blank)} blank lines skipped ({_lines(blank)})",)
    if leave_out:
        notices += (f"{len(leave_out)} rows left out by the config ({_lines(sorted(leave_out))})",)
    return AI2File(path, tuple(records), content_sha256(path), notices)


def write_ai2(path: str | Path, records: Iterable[Record]) -> None:
    """Writes records so that `read_ai2` gives them back; meta goes to `notes`.

    Equal records make equal bytes, also when the name ends in .gz (no time stamp inside).

    Raises:
        RecordError: If `read_ai2` would refuse one of them.
    """
    lines = []
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
        lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
    data = "".join(lines).encode()
    write_bytes_atomic(path, gzip.compress(data, mtime=0) if Path(path).suffix == ".gz" else data)


def refuse_repeated_ids(records: Iterable[Record]) -> None:
    """Two items of one name are a copy, or a mistake that results could not tell apart.

    Raises:
        RecordError: If an id repeats; the message names both places.
    """
    first: dict[str, Record] = {}
    for record in records:
        if (other := first.setdefault(record.id, record)) is not record:
            raise RecordError(
                f"{record.where}: the id {record.id!r} is that of line {other.position} too; give "
                "each item an id of its own, or none (then it is named by its line). For a "
                "released file that is so, write `ids_repeat: true` in the probe's config"
            )


def notices_of(records: Sequence[Record]) -> tuple[str, ...]:
    """What is odd about the items and read all the same: repeated ids and distractors."""
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
