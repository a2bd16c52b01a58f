"""The rows of items, of whatever format: tables, JSON, Parquet, Excel, objects in memory."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from probelight.io.errors import RecordError
from probelight.io.escaping import listed
from probelight.io.files import (
    ITEMS,
    MAX_ITEMS,
    MIB,
    NO_TEXT,
    DataFile,
    Meter,
    content_sha256,
    read_blocks,
    read_lines,
    regular_file,
    table_rows,
)

_BATCH_BYTES = 32 * MIB  # at most, of a table
_MAX_CELLS = 20_000_000  # of a sheet, with the empty ones before others
_MAX_SHEET_ROWS = 2**20  # Excel's own
FORMATS = ("jsonl", "json", "csv", "tsv", "parquet", "xlsx")  # endings of the names of files
_ENDING = re.compile(rf"\.({'|'.join(FORMATS)})(\.(gz|bz2|zip))?$", re.IGNORECASE)
# Cells below a header, an object by its keys, or the text of a JSON object.
FileRow = list[Any] | dict[str, Any] | str


def is_item_file(path: object) -> bool:
    """Return whether a name is that of a file of items, if only of one that cannot be read."""
    return bool(_ENDING.search(str(path))) or Path(str(path)).suffix.lower() in NO_TEXT


def name_without_ending(path: Path) -> str:
    """Return what a file of items is called."""
    return _ENDING.sub("", path.name)


def rows_of_file(path: Path) -> Iterator[tuple[int, FileRow]]:
    """Yield the rows of a file of items with their numbers, in the format that its name says.

    A row's number is that of its line, or counts objects from 1. Empty rows of a table are empty
    lists. Files of other names are JSON lines.

    Raises:
        RecordError: If the format cannot be read, or the file is damaged or too large.
        FileNotFoundError: If there is no such file.
    """
    match = _ENDING.search(path.name)
    form, packed = (match[1].lower(), match[2]) if match else ("jsonl", None)
    if packed and form in {"parquet", "xlsx"}:
        raise RecordError(f"{path}: .{form} is packed already; give the unpacked file")
    readers: dict[str, Callable[[Path], Iterator[tuple[int, FileRow]]]] = {
        "csv": _csv_rows,
        "tsv": lambda path: table_rows(path, "\t", quoted=False),
        "parquet": _parquet_rows,
        "xlsx": _excel_rows,
    }
    yield from readers.get(form, _json_texts)(path)


def data_file(path: Path, num_items: int) -> DataFile:
    """Return a file of items with the checksum of its content, unpacked where that is a text."""
    return DataFile(str(path), content_sha256(path), num_items)


def _json_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line of JSON lines, or each element of a JSON array, unread."""
    start = next(read_blocks(path, ITEMS), b"").removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"["):
        yield from read_lines(path)
        return
    try:
        text = b"".join(read_blocks(path, ITEMS)).decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: not UTF-8 ({error}); save the file as UTF-8") from None
    decode, number, index = json.JSONDecoder().raw_decode, 0, _after_space(text, 1)
    while text[index : index + 1] != "]":
        number += 1
        try:
            _, end = decode(text, index)
        except (ValueError, RecursionError) as error:
            raise RecordError(
                f"{path}:{number}: no JSON in this item of the array: {error}"
            ) from None
        yield number, text[index:end]
        index = _after_space(text, end)
        if text[index : index + 1] == ",":
            index = _after_space(text, index + 1)
        elif text[index : index + 1] != "]":
            break
    if index != len(text) - 1:
        raise RecordError(
            f"{path}:{number}: behind this item of the array a comma or the ] at the end of the "
            f"file is needed, not {text[index : index + 20]!r}"
        )


def _after_space(text: str, index: int) -> int:
    while text[index : index + 1].isspace():
        index += 1
    return index


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of a table; its first line says whether ; or a tab stands for the comma."""
    header = next((text for _, text in read_lines(path) if text.strip()), "")
    marks = [mark for mark in ",;\t" if mark in header]
    return table_rows(path, marks[0] if marks else ",", quoted=True)


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    from pyarrow.parquet import ParquetFile

    regular_file(path)
    with _damage_named(path, "Parquet"), ParquetFile(path) as file:
        if file.metadata.num_rows > MAX_ITEMS:
            raise RecordError(f"{path}: a set can have at most {MAX_ITEMS:,} rows")
        row_groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        Meter(path, ITEMS).count(sum(group.total_byte_size for group in row_groups))
        # A text that is stored once may stand in each row: none is longer than what its column has.
        column_bytes = [
            group.column(i).total_uncompressed_size
            for group in row_groups
            for i in range(group.num_columns)
        ]
        num_rows = _BATCH_BYTES // max([1, *column_bytes])
        first, meter = 1, Meter(path, ITEMS)
        for batch in file.iter_batches(batch_size=min(1000, max(1, num_rows))):
            meter.count(batch.nbytes)
            for number, row in enumerate(batch.to_pylist(), start=first):
                yield number, {column: plain_cell(cell) for column, cell in row.items()}
            first += batch.num_rows


def _excel_rows(path: Path) -> Iterator[tuple[int, list[Any]]]:
    """Yield the cells of the only sheet that has some; what formulas made, as Excel saved it."""
    try:
        import openpyxl
    except ImportError:
        raise RecordError(
            f"{path}: .xlsx needs openpyxl: pip install 'probelight[excel]'; or save the sheet as "
            ".csv in UTF-8"
        ) from None
    regular_file(path)
    with _damage_named(path, "Excel"):
        with zipfile.ZipFile(path) as archive:
            Meter(path, ITEMS).count(sum(member.file_size for member in archive.infolist()))
        with closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book:
            rows_by_sheet = {sheet.title: [*_sheet_rows(path, sheet)] for sheet in book.worksheets}
    sheets = [title for title, rows in rows_by_sheet.items() if rows]
    if len(sheets) > 1:
        raise RecordError(f"{path}: the sheets {listed(sheets)} have rows; keep those of one")
    for title in sheets:
        width = len(rows_by_sheet[title][0][1])  # of the header
        for number, cells in rows_by_sheet[title]:
            yield number, cells + [None] * (width - len(cells))


def _sheet_rows(path: Path, sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows of a sheet that are not empty."""
    num_cells = 0
    for number, row in enumerate(sheet.values, start=1):
        num_cells += len(row)
        if num_cells > _MAX_CELLS or number > _MAX_SHEET_ROWS:
            raise RecordError(
                f"{path}:{number}: the sheet {sheet.title!r} has more than {_MAX_CELLS:,} cells "
                f"or {_MAX_SHEET_ROWS:,} rows, with the empty ones before others; save it as .csv"
            )
        if cells := _without_empty_end([plain_cell(cell) for cell in row]):
            yield number, cells


@contextmanager
def _damage_named(path: Path, form: str) -> Iterator[None]:
    """Turn whatever a library raises of a damaged file (there are many) into a RecordError."""
    try:
        yield
    except RecordError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())
        raise RecordError(f"{path}: not a whole {form} file: {reason}") from None


def _without_empty_end(cells: list[Any]) -> list[Any]:
    while cells and cells[-1] in (None, ""):
        cells.pop()
    return cells


_DICT_EXAMPLE = '{"question": "...", "choices": ["...", "..."], "answer": "..."}'


def rows_of(items: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of items with their numbers, from 1; what JSON does not have becomes {}.

    Raises:
        RecordError: If these are no rows, or two columns are the same.
    """
    if isinstance(items, Mapping) or not isinstance(items, Iterable):
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
        yield number, {str(column): plain_cell(cell) for column, cell in row.items()}
    if not number:
        raise RecordError("no items were given")


def plain_cell(cell: Any) -> Any:
    """Convert a cell of numpy or pandas to a value of JSON."""
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    if isinstance(cell, Mapping):
        return {str(key): plain_cell(inner) for key, inner in cell.items()}
    if isinstance(cell, list | tuple):
        return [plain_cell(inner) for inner in cell]
    if cell is None or isinstance(cell, str | bool | int):
        return cell
    import pandas as pd  # not above: --help is quick

    if pd.isna(cell):
        return None
    return cell if isinstance(cell, float) else {}
