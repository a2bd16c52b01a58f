"""Reading a file of items, one a line, whatever a line looks like, with notices of oddities."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from probelight.io.errors import RecordError
from probelight.io.files import MAX_ITEMS, content_sha256, read_lines
from probelight.probes.record import Record, RepeatedSentenceError

# A line and its number as a record (with an empty id where it has none), or None for a header.
Parse = Callable[[str, int], Record | None]


@dataclass(frozen=True)
class ItemFile:
    """What one file holds.

    Attributes:
        path: Where it was read.
        records: The items, in the order of the file.
        sha256: Of the decompressed bytes, so that plain and gzipped copies agree.
        notices: Facts a reader of the results should know ("505 ids repeat").
        choices: Those of every item, where they were told and do not stand in the file.
    """

    path: Path
    records: tuple[Record, ...]
    sha256: str
    notices: tuple[str, ...]
    choices: tuple[str, ...] = ()


def read_items(
    path: str | Path,
    parse: Parse,
    *,
    name: str | None = None,
    leave_out: Collection[int] = (),
    ids_repeat: bool = False,
) -> ItemFile:
    """Read a whole file; the first malformed line is an error that names file and line.

    Args:
        path: The file, as it is or compressed.
        parse: Makes an item of a line.
        name: Items without an id become `<name>-<line>`; by default the name of the file.
        leave_out: Lines not to read, for a released file with rows that cannot be used.
        ids_repeat: Whether ids may repeat, as in some released files; they are counted.

    Raises:
        RecordError: If a line is malformed, an id repeats, or the file is empty, damaged or not
            UTF-8.
        FileNotFoundError: If there is no such file.
    """
    path = Path(path)
    name = name or path.name.partition(".")[0]
    records = list[Record]()
    blank, unnamed, same = list[int](), list[int](), list[int]()
    for line, text in read_lines(path):
        if line > MAX_ITEMS:
            raise RecordError(f"{path}:{line}: more than {MAX_ITEMS:,} lines, the most of one file")
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
            f"{path}:{same[0]}: the same sentence twice, of which neither can be the right one"
            + (f" ({_lines(same, 50)})" if len(same) > 1 else "")
            + ". Correct it, or write in a probe's config `leave_out: {<split>: "
            f"[{', '.join(map(str, same[:50]))}]}}`"
        )
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
    return ItemFile(path, tuple(records), content_sha256(path), notices)


def refuse_repeated_ids(records: Iterable[Record]) -> None:
    """Refuse two items of one id: a copy, or a mistake that results could not show.

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
    """Describe what is odd about items that are read all the same: repeated ids, distractors."""
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
