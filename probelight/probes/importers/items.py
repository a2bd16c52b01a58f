"""Where items are: a file, dicts or data frames in memory, the Hugging Face Hub.

A table has an item in each row below the header:

    sentence,gold,choices
    A whale is [MASK] than a mouse.,larger,larger|smaller

In .tsv a quotation mark is a part of its cell. Minimal pairs may lack the header: then
there are two columns, the right sentence and the wrong one.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from probelight.io.atomic import write_bytes_atomic
from probelight.io.documents import json_object
from probelight.io.download import ADVICE, DownloadError, is_offline
from probelight.io.errors import ConfigError, RecordError, UsageError
from probelight.io.escaping import json_text, listed
from probelight.io.files import DataFile
from probelight.probes.catalog import HubSource, ProbeConfig
from probelight.probes.importers.columns import BAD, GOOD, JUDGEMENTS, field_of, letter_words
from probelight.probes.importers.formats import data_file, rows_of, rows_of_file
from probelight.probes.importers.rows import ItemFile, Options, RowReader, lines_of
from probelight.probes.record import Record, Setup, validate

if TYPE_CHECKING:
    import datasets
    import pandas as pd

Items: TypeAlias = "Sequence[Mapping[str, Any]] | datasets.Dataset | pd.DataFrame"
ProbeLike: TypeAlias = "str | Path | Items"  # a name, `name:split`, a file of items, or items
ONE_LINE = "each item is one JSON object on one line"
EXAMPLE = '{"sentence": "...", "choices": ["...", "..."], "gold": "..."}'


def read_file(path: str | Path, setup: Setup | None = None, **options: Unpack[Options]) -> ItemFile:
    """Read one file of items; its name decides the format.

    Args:
        path: A file in one of `formats.FORMATS`, with the columns of `probes.importers.rows`.
        setup: The setup that each item must fit; None allows any.
        **options: See `probelight.probes.importers.rows.Options`.

    Raises:
        RecordError: If a line is malformed, an id repeats, golds can be read in two ways, or the
            file is empty, damaged or not UTF-8; the message names file and line.
        FileNotFoundError: If there is no such file.
    """
    path = Path(path)
    options.setdefault("name", path.name.partition(".")[0])
    reader = RowReader(str(path), setup, **options)
    table = ItemTable(setup == "minimal_pair")
    blank: list[int] = []
    for number, row in rows_of_file(path):
        if not row or (isinstance(row, str) and not row.strip()):
            blank.append(number)
        elif number in reader.leave_out:
            continue
        elif isinstance(row, list):
            table.add(number, row, reader)
        else:
            with reader.errors_at(number):
                row = _json_row(row) if isinstance(row, str) else row
            reader.add(number, [*row], [*row.values()])
    item_file = reader.item_file()
    notices = table.notices(item_file)
    if blank:
        notices += (f"{len(blank)} blank lines skipped ({lines_of(blank)})",)
    file = data_file(path, len(item_file.records))
    return replace(item_file, files=(file, *item_file.files), notices=item_file.notices + notices)


def _json_row(text: str) -> dict[str, Any]:
    """Parse the JSON object of a line; RecordError if it is none or repeats a key."""
    line = text.strip()
    hint = f"; {ONE_LINE}, such as {EXAMPLE}"
    if line.startswith("{"):
        hint = "" if line.endswith("}") else f"; {ONE_LINE}, or of an array [...] of all items"
    elif re.search(r"[,;\t]", line):
        hint = f"; this looks like CSV: {ONE_LINE}, such as {EXAMPLE}"
    row = json_object(text, "an object with a question is needed", hint)
    if len(row) == 1:
        [(key, items)] = row.items()
        if isinstance(items, list) and items and isinstance(items[0], dict):
            raise RecordError(f"all items are in {key!r}; keep this array alone in the file")
    if row and all(isinstance(cell, dict) and "0" in cell for cell in row.values()):
        raise RecordError(
            "columns of a DataFrame, not items; write them with "
            "to_json('items.jsonl', orient='records', lines=True)"
        )
    return row


def write_ai2(path: str | Path, records: Iterable[Record], setup: Setup | None = None) -> None:
    """Write records in the AI2 format, so that `read_file` gives them back; meta goes to `notes`.

    Labels are letters, or numbers from 1 where an item has more than 26 choices. Equal records
    make equal bytes, also when the name ends in .gz (no time stamp inside).

    Raises:
        RecordError: If `read_file` would refuse one of them.
    """
    content = bytearray()  # of large files one copy is enough
    for record in records:
        numbers = [str(n) for n, _ in enumerate(validate(record, setup).choices, start=1)]
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


_HEADER_WORDS = {*JUDGEMENTS, "sentence", "sentences", "version", "form", "target"}


class ItemTable:
    """The rows of a table, which are given to a reader of rows; the first may be the header."""

    def __init__(self, are_pairs: bool) -> None:
        self._are_pairs = are_pairs
        self._columns: Sequence[str] = ()
        self._has_header = True

    def add(self, line: int, cells: Sequence[Any], reader: RowReader) -> None:
        """Read a row; RecordError names file and line."""
        with reader.errors_at(line):
            if not self._columns:
                self._start(["" if cell is None else str(cell) for cell in cells], reader)
                if self._has_header:
                    return
            if len(cells) != len(self._columns):
                advice = ' (put a cell with a comma in "..." in .csv)'
                if self._are_pairs:
                    advice += f"; several wrong sentences need a header ({GOOD}, {BAD}, {BAD})"
                raise RecordError(
                    f"{len(cells)} cell(s), but the header has {len(self._columns)} columns{advice}"
                )
        reader.add(line, self._columns, [None if cell == "" else cell for cell in cells])

    def _start(self, cells: Sequence[str], reader: RowReader) -> None:
        """Take the first line as the header, unless it can only be a pair of sentences."""
        if len(cells) == 1 and "," in cells[0]:
            raise RecordError("this line has commas between its cells, not tabs: save it as .csv")
        if self._are_pairs and not {GOOD, BAD} & {field_of(cell) for cell in cells}:
            self._columns, self._has_header = (GOOD, BAD), False
        else:
            self._columns = cells
            reader.layout(cells)

    def notices(self, item_file: ItemFile) -> tuple[str, ...]:
        """Return how the first line was read; RecordError if it may be names of columns."""
        if self._has_header:
            return ()
        first, *later = [record.choices for record in item_file.records]
        if first and _may_be_names(first, later):
            raise RecordError(
                f"{item_file.records[0].where}: {listed(first)}: are these sentences or names of "
                f"columns? In either case, write a first line with the names {GOOD} and {BAD}"
            )
        return ("the file has no header: its first column is read as the right sentences",)


def _may_be_names(first: Sequence[str], later: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line of a table of pairs is unlike the sentences below it."""
    lengths = [len(text.split()) for texts in later for text in texts]
    endings = {bool(re.search(r"\W$", text)) for texts in later for text in texts} or {True}
    ends = [bool(re.search(r"\W$", text)) for text in first]
    longest = max(len(text.split()) for text in first)
    words = {word for text in first for word in letter_words(text)}
    return (
        (endings == {True} and not all(ends))
        or longest < min(lengths, default=0)
        or (longest < 5 and not all(ends) and bool(words & _HEADER_WORDS))
        or all(text.isascii() and text.isidentifier() for text in first)
    )


def as_list(argument: Any) -> list[Any]:
    """Return one thing, or several, as a list; items in memory are one thing."""
    if argument is None:
        return []
    if isinstance(argument, str | Path | Mapping) or is_items(argument):
        return [argument]
    if not isinstance(argument, Iterable):
        raise UsageError(f"probes: {argument!r} is not a name, a file or a list of dicts")
    elements = list(argument)
    return [elements] if is_items(elements) else elements


def is_items(argument: Any) -> bool:
    """Return whether this is a Dataset, a DataFrame or a list of dicts."""
    if hasattr(argument, "column_names") or hasattr(argument, "columns"):
        return True
    return isinstance(argument, Sequence) and bool(argument) and isinstance(argument[0], Mapping)


def read_items(items: Any, setup: Setup | None = None, **options: Unpack[Options]) -> ItemFile:
    """Read items in memory, with the columns of `probes.importers.rows` and options of `read_file`.

    Raises:
        RecordError: As of a file; the message has the number of the row, from 1.
    """
    options.setdefault("name", "items")
    return _read_rows(RowReader("items", setup, **options), items, "items")


def _read_rows(reader: RowReader, rows: Any, name: str) -> ItemFile:
    """Read rows that are not from a file as a file of a name, with a checksum of all records."""
    for number, row in rows_of(rows):
        if number not in reader.leave_out:
            reader.add(number, [*row], [*row.values()])
    item_file = reader.item_file()
    content = [[r.id, r.stem, r.choices, r.answer] for r in item_file.records]
    sha256 = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    file = DataFile(name, sha256, len(item_file.records))
    return replace(item_file, files=(file, *item_file.files))


def items_text(items: Any) -> str:
    """Return items as the text of a .jsonl file, a row on each line; RecordError as `rows_of`."""
    return "".join(f"{json_text(row)}\n" for _, row in rows_of(items))


def read_hub(
    config: ProbeConfig,
    split: str,
    *,
    cache_dir: str | Path | None = None,
    offline: bool | None = None,
) -> ItemFile:
    """Read one split of a probe from the Hub; rows without an id get `<name>-<row>`, from 1.

    `split` is our name of it; `offline` uses only the cache of `datasets`. A ConfigError says that
    the Hub has no such split, a DownloadError that it cannot be had, a RecordError that a row is
    malformed or an id repeats.
    """
    source = config.hub
    if source is None or split not in source.splits:
        raise ConfigError(f"{config.name}: it has no {split!r} split on the Hub; use --mirror")
    rows = _hub_rows(source, split, cache_dir, is_offline(offline))
    config_name = source.config if isinstance(source.config, str) else None
    name = f"{source.repo} {config_name or ''}".strip() + f", split {source.splits[split]}"
    advice = f"To leave it out, write in the probe's config `leave_out: {{{{{split}: [{{row}}]}}}}`"
    reader = RowReader(name, config.setup, advice, **config.reading(split))
    name = "/".join(filter(None, ["hub:" + source.repo, config_name, source.splits[split]]))
    return _read_rows(reader, rows, name)


def _hub_rows(source: HubSource, split: str, cache_dir: str | Path | None, offline: bool) -> Any:
    # Any, and imported here: `datasets` takes a second to import and most probes do not need it.
    import datasets.config
    import huggingface_hub.constants

    # HF_HUB_OFFLINE=1 is read once by both, when they are imported.
    modules: tuple[Any, ...] = (datasets.config, huggingface_hub.constants)
    offline_flags = [module.HF_HUB_OFFLINE for module in modules]
    try:
        for module in modules if offline else ():
            module.HF_HUB_OFFLINE = True
        loaded = [
            datasets.load_dataset(
                source.repo,
                config_name,
                split=source.splits[split],
                revision=source.revision,
                cache_dir=str(cache_dir) if cache_dir else None,
            )
            for config_name in source.configs
        ]
        return chain.from_iterable(loaded)
    except Exception as error:  # whatever it raises (there are many), the user needs the same help
        state = "from the local cache (offline mode is on)" if offline else "from the Hub"
        raise DownloadError(
            f"{source.repo}: could not be loaded {state}: {type(error).__name__}: {error}. {ADVICE}"
        ) from error
    finally:
        for module, flag in zip(modules, offline_flags, strict=True):
            module.HF_HUB_OFFLINE = flag
