"""Files whose columns, or keys of JSON lines, have other names than ours: `--columns`.

OURS=THEIRS reads their column as ours, OURS=THEIRS+THEIRS a list from several (`LISTS`), and OURS=7
the same number in each row (`NUMBERS`). {model} in THEIRS is the model's name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, TypeVar

from probelight.io.documents import json_object, number_of, whole_number_of
from probelight.io.errors import RecordError, UsageError, nearest
from probelight.io.files import MAX_ITEMS, MIB, delimiter_of, item_lines, read_table
from probelight.io.settings import STRICT, hints_of, typed
from probelight.results.importers.answers import at

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, str]  # what is read for each of our columns
Source = str | int | tuple[str, ...]  # a column, a number, or columns of a list
UNREAD = " (not read)"
LISTS = ("candidates", "scores", "order", "reversed")
NUMBERS = ("gold_index", "num_choices", "epochs", "dose")


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A row of a table without choices; a column with a default may be missing, or empty."""

    __pydantic_config__: ClassVar = STRICT
    identity: ClassVar[tuple[str, ...]] = ("id",)  # columns that tell rows apart


R = TypeVar("R", bound=TableRow)


def needed_columns(kind: type[TableRow]) -> list[str]:
    """Return the columns that a kind of table cannot do without."""
    return [column.name for column in fields(kind) if column.default is MISSING]


def typed_rows(
    path: Path, columns: Columns, kinds: Sequence[type[R]], most: int = MAX_ITEMS
) -> Iterator[tuple[str, R]]:
    """Yield file and line, and each row as the one kind of several that fits best.

    Raises:
        RecordError: If there are no rows, a column is missing, a cell is not of its type, or two
            rows are of the same thing; the message names file and line.
    """
    wheres = dict[tuple[Any, ...], str]()
    needed = [*map(needed_columns, kinds)]
    for where, row in named_rows(path, columns, most):
        missing_by_kind = [[name for name in names if name not in row] for names in needed]
        if missing_by_kind.count([]) > 1:
            lists = " and ".join(map(", ".join, needed))
            raise RecordError(f"{where}: there are {lists}; leave one of them out")
        missing = min(missing_by_kind, key=len)
        if missing:
            constant = ", or a number for all rows" if missing[0] in NUMBERS else ""
            raise RecordError(
                f"{where}: {missing[0]!r} is missing{nearest(missing[0], [*row])}; name it as "
                f"--columns {missing[0]}=THEIRS{constant}. The columns are {', '.join(row)}"
            )
        kind = kinds[missing_by_kind.index(missing)]
        typed_row = _typed_row(kind, row, where)
        key = tuple(getattr(typed_row, name) for name in kind.identity)
        earlier = wheres.setdefault(key if any(key) else (where,), where)
        if earlier != where:
            names = ", ".join(f"{n} {v}" for n, v in zip(kind.identity, key, strict=True) if v)
            columns_read = [column.name for column in fields(kind)]
            unread = ", ".join(name for name in row if name not in columns_read) or "none"
            raise RecordError(
                f"{where}: {names} is already at {earlier}; columns not read: {unread}"
            )
        yield where, typed_row
    if not wheres:
        raise RecordError(f"{path}: no items")


def _typed_row(kind: Any, row: Mapping[str, Any], where: str) -> Any:
    """Return a row as its kind has it: cells of a table are texts, ids in JSON may be numbers."""
    cells = {}
    for column in fields(kind):
        cell = row.get(column.name)
        if hints_of(kind)[column.name] is str:
            is_number = isinstance(cell, int) and not isinstance(cell, bool)
            cell = str(cell) if is_number else cell
        elif not math.isnan(number := number_of(cell)):
            cell = int(number) if number.is_integer() else number
        if cell not in (None, ""):
            cells[column.name] = cell
    return typed(kind, cells, where, RecordError)


def for_model(columns: Columns, model: str) -> dict[str, str]:
    """Return the columns of one of several models in a table: {model} is its name."""
    if not model and any("{model}" in theirs for theirs in columns.values()):
        raise UsageError("{model} in --columns is the name of a file's model; give FILE=MODEL")
    return {ours: theirs.replace("{model}", model) for ours, theirs in columns.items()}


def named_rows(
    path: Path, columns: Columns, most: int = MAX_ITEMS
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield file and line, and the cells by our names, of each row of a table or of JSON lines."""
    names, sources = list[str](), dict[str, Source]()
    if not delimiter_of(path):
        for where, text in item_lines(path, most, watched=watched):
            with at(where):
                row = json_object(text)
                if columns and (keys := [*row]) != names:  # which are mostly those of the row above
                    names, sources = keys, sources_of(keys, columns)
            yield where, _cells(row, sources) if columns else row
        return
    table = read_table(path, any_case=not columns, watched=watched)
    if len(table) > most:
        raise RecordError(f"{path}: {len(table):,} rows; such a file can have at most {most:,}")
    names = [*table.columns]
    sources = sources_of(names, columns, f"{path}:1: ")
    for where, cells in zip(table.index, table.itertuples(index=False, name=None), strict=True):
        yield where, _cells(dict(zip(names, cells, strict=True)), sources)


def _cells(row: Mapping[str, Any], sources: Mapping[str, Source]) -> dict[str, Any]:
    return {
        ours: [row[name] for name in source]
        if isinstance(source, tuple)
        else row.get(str(source), source)
        for ours, source in sources.items()
    }


def renamed(path: Path, table: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """Return a table whose columns have our names; none is made of several."""
    sources = sources_of([*table.columns], columns, f"{path}:1: ")
    return table[[*sources.values()]].set_axis([*sources], axis="columns")


def sources_of(names: Sequence[str], columns: Columns, where: str = "") -> dict[str, Source]:
    """Return what is read for each of our names: a column, several, or the number itself.

    A column that has our name already, but is not the one that was named, is not read.
    """
    sources: dict[str, Source] = {}
    used = set[str]()
    for ours, theirs in columns.items():
        listed = (*map(str.strip, theirs.split("+")),) if ours in LISTS else (theirs,)
        number = whole_number_of(theirs) if ours in NUMBERS else None
        if theirs in names:
            sources[ours] = theirs
        elif number is not None:
            sources[ours] = number
        elif missing := [name for name in listed if name not in names]:
            raise RecordError(
                f"{where}no column {missing[0]!r}{nearest(missing[0], names)}, which --columns "
                f"names. The columns are {', '.join(names)}"
            )
        else:
            sources[ours] = listed
        used |= {theirs, *listed}
    unread = {name: f"{name}{UNREAD}" for name in columns}
    return sources | {unread.get(name, name): name for name in names if name not in used}


def watched(path: Path) -> AbstractContextManager[IO[bytes]]:
    """Open a file, showing on stderr how much of it was read if that takes seconds."""
    from probelight.io.progress import watched_file  # not above: --help is quick

    is_large = path.stat().st_size > MIB
    return watched_file(path, f"reading {path.name}") if is_large else path.open("rb")
