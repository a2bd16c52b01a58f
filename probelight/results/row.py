"""A measured number with what it was measured on, and results.csv, the one long table of them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from probelight.io.atomic import write_text_atomic
from probelight.io.escaping import as_cell
from probelight.io.typed import STRICT
from probelight.results.subset import Subset

Role = Literal["", "model", "baseline", "control"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured number, and what it was measured on.

    A column that does not apply is "" (text) or None. Accuracies, shares and costs are fractions
    (0.612), never per cent. Writers begin with the columns that their rows share and
    `dataclasses.replace` the others.

    Attributes:
        subset: The part of the set; None for the whole.
        role: What the model is there for: a "model", a "baseline" it must be better than, or its
            own architecture with random weights as a "control"; empty where two are compared.
        kind: The kind of model, such as "transformer" or "esim"; empty where two are compared.
        run_dir: Folder of the run below the command's; known when the run is finished.
    """

    # The default of `value` is none that may be read: a row without one is refused.
    __pydantic_config__: ClassVar = {**STRICT, "allow_inf_nan": False, "validate_default": True}

    protocol: str = ""
    model: str = ""
    probe: str = ""
    control: str = ""
    mode: str = ""
    num_train: int | None = None
    dose: int | None = None
    extra: str = ""
    learning_rate: float | None = None
    epoch: int | None = None
    seed: int | None = None
    split: str = ""
    subset: Subset | None = None
    perturbation: str = ""
    metric: str = ""
    value: float = math.nan
    ci_low: float | None = None
    ci_high: float | None = None
    num_items: int | None = None
    num_groups: int | None = None
    role: Role = ""
    kind: str = ""
    run_dir: str = ""

    @property
    def subset_text(self) -> str:
        """How results.csv calls the part; empty for the whole set."""
        return "" if self.subset is None else self.subset.text

    def to_json(self) -> dict[str, Any]:
        """The columns that apply, for result.json."""
        cells = {column: getattr(self, column) for column in RESULT_COLUMNS}
        cells["subset"] = None if self.subset is None else self.subset.to_json()
        return {column: value for column, value in cells.items() if value not in (None, "")}


RESULT_COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(Row))


def write_results(path: Path, rows: Iterable[Row]) -> None:
    """Writes results.csv atomically: the contract's columns in its order, floats in full.

    Args:
        path: The csv file to replace.
        rows: The rows.

    Raises:
        ValueError: If a row has a number that is not finite: where one does not apply, a row has
            None, or is left out.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(RESULT_COLUMNS)
    for number, row in enumerate(rows, start=1):
        place = f"{path}: row {number}"
        writer.writerow([_cell(getattr(row, name), name, place) for name in RESULT_COLUMNS])
    write_text_atomic(path, text.getvalue())


def _cell(value: object, column: str, place: str) -> str:
    if value is None:
        return ""
    if isinstance(value, Subset):
        return as_cell(value.text)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{place}: {column} is {value}; leave out what does not apply")
        return repr(float(value))  # float() also takes the name of numpy's type out of the text
    return as_cell(value) if isinstance(value, str) else str(value)
