"""Where items are: a table, JSON lines, dicts or data frames in memory, the Hugging Face Hub.

A table has an item on each line below the header:

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from probelight.io.atomic import write_bytes_atomic
from probelight.io.documents import json_object
from probelight.io.download import ADVICE, DownloadError, is_offline
from probelight.io.errors import ConfigError, RecordError, UsageError
from probelight.io.escaping import json_text, listed
from probelight.io.files import (
    DataFile,
    cells_of,
    content_sha256,
    delimiter_of,
    read_lines,
    text_path,
)
from probelight.probes.catalog import HubSource, ProbeConfig
from probelight.probes.importers.columns import BAD, GOOD, JUDGEMENTS, field_of, letter_words
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
        path: A .csv or .tsv table or JSON lines, with the columns of
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


_NAMED = {"\t": "tabs", ",": "commas", ";": "semicolons"}
_HEADER_WORDS = {*JUDGEMENTS, "sentence", "sentences", "version", "form", "target"}


class ItemTable:
    """The lines of a table, which are given to a reader of rows; the first may be the header."""

    def __init__(self, delimiter: str, are_pairs: bool) -> None:
        self._delimiter, self._are_pairs = delimiter, are_pairs
        self._columns: Sequence[str] = ()
        self._has_header = True

    def add(self, line: int, text: str, reader: RowReader) -> None:
        """Read a line; RecordError names file and line."""
        with reader.errors_at(line):
            cells = cells_of(text, self._delimiter, "pair" if self._are_pairs else "item")
            if not self._columns:
                self._start(cells, reader)
                if self._has_header:
                    return
            if len(cells) != len(self._columns):
                advice = ' (put a cell with a comma in "...")' if self._delimiter == "," else ""
                if self._are_pairs:
                    advice += f"; several wrong sentences need a header ({GOOD}, {BAD}, {BAD})"
                raise RecordError(
                    f"{len(cells)} cell(s), but the header has {len(self._columns)} columns with "
                    f"{_NAMED[self._delimiter]} between them{advice}"
                )
        reader.add(line, self._columns, [cell or None for cell in cells])

    def _start(self, cells: Sequence[str], reader: RowReader) -> None:
        """Take the first line as the header, unless it can only be a pair of sentences."""
        if len(cells) == 1 and (marks := [mark for mark in _NAMED if mark in cells[0]]):
            raise RecordError(
                f"this line has {_NAMED[marks[0]]} between its cells, but the file's name asks "
                f"for {_NAMED[self._delimiter]}: save it with commas as .csv, or with tabs as .tsv"
            )
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


_DICT_EXAMPLE = '{"question": "...", "choices": ["...", "..."], "answer": "..."}'


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


def rows_of(items: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of items with their numbers, from 1; what JSON does not have becomes {}.

    Raises:
        RecordError: If these are no rows, or two columns are the same.
    """
    if isinstance(items, Mapping):
        kind = type(items).__name__
        raise RecordError(f"{kind} is not a list of items; give a list or a split of a DatasetDict")
    if hasattr(items, "to_dict") and hasattr(items, "columns"):  # a DataFrame
        if not items.columns.is_unique:
            twice = items.columns[items.columns.duplicated()][0]
            raise RecordError(f"two columns are called {twice!r}; rename one of them")
        items = items.to_dict("records")
    number = 0
    for number, row in enumerate(items, start=1):
        if not isinstance(row, Mapping):
            kind = type(row).__name__
            raise RecordError(f"items:{number}: it is a {kind}, not a dict such as {_DICT_EXAMPLE}")
        yield number, {str(column): _plain(cell) for column, cell in row.items()}
    if not number:
        raise RecordError("no items were given")


def _plain(cell: Any) -> Any:
    """Convert a cell of numpy or pandas to a value of JSON."""
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, Mapping):
        return {str(key): _plain(inner) for key, inner in cell.items()}
    if isinstance(cell, list | tuple):
        return [_plain(inner) for inner in cell]
    if isinstance(cell, str | bool | int):
        return cell
    import pandas as pd  # not above: --help is quick

    if pd.isna(cell):
        return None
    return cell if isinstance(cell, float) else {}


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
    name = f"{source.repo} {source.config or ''}".strip() + f", split {source.splits[split]}"
    advice = f"To leave it out, write in the probe's config `leave_out: {{{{{split}: [{{row}}]}}}}`"
    reader = RowReader(name, config.setup, advice, **config.reading(split))
    name = "/".join(filter(None, ["hub:" + source.repo, source.config, source.splits[split]]))
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
        return datasets.load_dataset(
            source.repo,
            source.config,
            split=source.splits[split],
            revision=source.revision,
            cache_dir=str(cache_dir) if cache_dir else None,
        )
    except Exception as error:  # whatever it raises (there are many), the user needs the same help
        state = "from the local cache (offline mode is on)" if offline else "from the Hub"
        raise DownloadError(
            f"{source.repo}: could not be loaded {state}: {type(error).__name__}: {error}. {ADVICE}"
        ) from error
    finally:
        for module, flag in zip(modules, offline_flags, strict=True):
            module.HF_HUB_OFFLINE = flag
