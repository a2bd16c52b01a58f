"""results.csv: the one long table that every protocol writes and everything downstream reads."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from storage.escaping import as_cell, from_cell
from storage.files import write_text_atomic

RESULT_COLUMNS: tuple[str, ...] = (
    "protocol",
    "model",
    "probe",
    "control",
    "mode",
    "num_train",
    "dose",
    "extra",
    "learning_rate",
    "epoch",
    "seed",
    "split",
    "subset",
    "perturbation",
    "metric",
    "value",
    "ci_low",
    "ci_high",
    "num_items",
    "num_groups",
    "run_dir",
)


class ResultRow(TypedDict, total=False):
    """One measured number and what it was measured on.

    A column that is left out or None does not apply and is written empty. Accuracies, shares and
    costs are fractions (0.612), never per cent.
    """

    protocol: str
    model: str
    probe: str
    control: str
    mode: str
    num_train: int | None
    dose: int | None
    extra: str
    learning_rate: float | None
    epoch: int | None
    seed: int | None
    split: str
    subset: str
    perturbation: str
    metric: str
    value: float | None
    ci_low: float | None
    ci_high: float | None
    num_items: int | None
    num_groups: int | None
    run_dir: str


def write_results(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Writes results.csv atomically: the contract's columns in its order, floats in full.

    Args:
        path: The csv file to replace.
        rows: `ResultRow`s, or mappings with the same keys.

    Raises:
        ValueError: If a row has a column that the contract does not know, or a number that is
            not finite (leave a number out, or give None, where it does not apply).
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(RESULT_COLUMNS)
    for number, row in enumerate(rows, start=1):
        unknown = sorted(set(row) - set(RESULT_COLUMNS))
        if unknown:
            raise ValueError(
                f"{path}: row {number} has the unknown column(s) {', '.join(unknown)}; "
                f"the columns are {', '.join(RESULT_COLUMNS)}"
            )
        writer.writerow([_cell(row.get(column), path, number, column) for column in RESULT_COLUMNS])
    write_text_atomic(path, text.getvalue())


def read_results(path: Path) -> list[dict[str, str]]:
    """Reads results.csv as text; a column of the contract that the file lacks is read as empty.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is empty, is not utf-8, or a row has not as many cells as the
            header (a file cut short); the message names the file and the line.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, None)
            if not header:
                raise ValueError(f"{path}: the file is empty; a header line is needed")
            return [_named(header, cells, f"{path}:{lines.line_num}") for cells in lines if cells]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: not a readable csv file ({error})") from error


def _cell(value: object, path: Path, number: int, column: str) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(
                f"{path}: row {number}: {column} is {value}; use None where a number does not apply"
            )
        return repr(float(value))  # float() also takes the name of numpy's type out of the text
    return as_cell(value) if isinstance(value, str) else str(value)


def _named(header: list[str], cells: list[str], place: str) -> dict[str, str]:
    if len(cells) != len(header):
        raise ValueError(f"{place}: {len(cells)} cells under a header of {len(header)}")
    row = dict(zip(header, cells, strict=True))
    return {column: from_cell(row.get(column, "")) for column in RESULT_COLUMNS}
