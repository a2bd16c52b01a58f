"""Items in memory: dicts, a `datasets.Dataset` or a DataFrame."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from probelight.io.errors import RecordError
from probelight.io.escaping import json_text
from probelight.io.files import DataFile
from probelight.probes.importers.rows import ItemFile, Options, RowReader
from probelight.probes.record import Record, Setup

_EXAMPLE = '{"question": "...", "choices": ["...", "..."], "answer": "..."}'


def read_items(items: Any, setup: Setup | None = None, **options: Unpack[Options]) -> ItemFile:
    """Read items in memory, with the columns of `probes.importers.rows` and options of `read_file`.

    Raises:
        RecordError: As of a file; the message has the number of the row, from 1.
    """
    options.setdefault("name", "items")
    reader = RowReader("items", setup, **options)
    for number, row in rows_of(items):
        reader.add(number, [*row], [*row.values()])
    item_file = reader.item_file()
    return replace(item_file, files=(data_file("items", item_file.records), *item_file.files))


def data_file(name: str, records: Sequence[Record]) -> DataFile:
    """Return records that are not from a file as a file of a name, with a checksum of all."""
    content = [[r.id, r.stem, r.choices, r.answer] for r in records]
    return DataFile(name, hashlib.sha256(json.dumps(content).encode()).hexdigest(), len(records))


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
            raise RecordError(f"items:{number}: it is a {kind}, not a dict such as {_EXAMPLE}")
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
