"""A row: one number and what it was measured on; and results.csv, the table of all rows."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from probelight.io.atomic import write_text_atomic
from probelight.io.escaping import as_cell
from probelight.io.settings import STRICT

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

Role = Literal["", "model", "baseline", "control"]


@dataclass(frozen=True)
class Subset:
    """A part of the items that a run measured, or one of the things that it counted on them.

    Attributes:
        kind: The kind of part, such as "template".
        text: How results.csv and tables, which people read, name the part.
        fields: What distinguishes it from other parts of its kind, for programs; result.json has
            these and the kind.
    """

    kind: str
    text: str
    fields: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, kind: str, text: str, **fields: str | float | bool | tuple[str, ...]) -> Subset:
        """Make a part with its fields given by name."""
        return cls(kind, text, tuple(fields.items()))

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        return dict(self.fields)[name]

    def to_json(self) -> dict[str, Any]:
        """Return the kind, the fields and the text."""
        return {"kind": self.kind, **dict(self.fields), "text": self.text}

    @staticmethod
    def from_json(value: object) -> Subset:
        """Read the part that `to_json` wrote.

        Raises:
            ValueError: If the value is not a part.
        """
        if isinstance(value, dict):
            fields = {
                name: tuple(field) if isinstance(field, list) else field
                for name, field in value.items()
            }
            kind, text = fields.pop("kind", None), fields.pop("text", None)
            if (
                isinstance(kind, str)
                and isinstance(text, str)
                and all(map(_is_field, fields.values()))
            ):
                return Subset.of(kind, text, **fields)
        raise ValueError(f"is {value!r}, which is not a part of a set")

    @classmethod
    def __get_pydantic_core_schema__(cls, kind: object, handler: object) -> CoreSchema:
        from pydantic_core.core_schema import no_info_plain_validator_function

        return no_info_plain_validator_function(Subset.from_json)


def _is_field(value: object) -> bool:
    """Return whether JSON keeps a value: text, truth, finite number or tuple of texts."""
    if isinstance(value, tuple):
        return all(isinstance(word, str) for word in value)
    is_finite = isinstance(value, float) and math.isfinite(value)
    return is_finite or isinstance(value, str | bool | int)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured number, and what it was measured on.

    A column that does not apply is "" (text) or None. Accuracies, shares and costs are fractions
    (0.612), never percentages.

    Attributes:
        protocol: The protocol that measured it, such as "zero_shot", "curve" or "inoculation".
        model: Name of the model.
        probe: Name of the probe, or of the original task if only that was measured.
        control: Version of the probe, such as "standard" or "no_language".
        mode: The head or scorer that answers, such as "mlp", "full", "zero_shot" or
            "pseudo_log_likelihood". If another program answered, "imported" and how its scores
            were used. Empty if no model answers.
        scoring: The rule that chooses the answer, if it is not the model's own score: one of
            `probelight.metrics.scoring_rules.RULES`, or a simple rule of an audit, such as "the
            longest answer".
        num_train: Number of probe examples in training.
        dose: Number k of probe examples of an inoculation.
        extra: Original-task examples for each probe example: "none", "x1" or "x2".
        keeping: Method against forgetting of an inoculation: "replay", "l2_sp", "distillation" or
            the `Tuning.method` of an adapter, such as "lora"; empty if there is none.
        strength: Strength of that method: a share of each batch, a weight of the penalty, or a
            rank.
        learning_rate: Peak learning rate.
        epoch: The epoch that was measured.
        seed: Seed of the training sample, its order and dropout.
        split: The split that was measured.
        subset: The part of the items that was measured; None for all items.
        perturbation: How the contexts of a diagnostic were changed.
        metric: What was measured, such as "accuracy", "chance" or "inoculation_cost".
        value: The number.
        ci_low: Lower end of its 95% interval.
        ci_high: Upper end of its 95% interval.
        num_items: Number of items it was measured on.
        num_groups: Number of groups of items, which the interval does not divide.
        role: "model", "baseline" (which a model must beat) or "control" (the model's architecture
            with random weights); empty in comparisons.
        kind: The model type, such as "transformer" or "esim"; empty in comparisons.
        run_dir: Folder of the run, relative to the command's folder; set when the run is finished.
    """

    # The default of `value` is none that may be read: a row without one is refused.
    __pydantic_config__: ClassVar = {**STRICT, "allow_inf_nan": False, "validate_default": True}

    protocol: str = ""
    model: str = ""
    probe: str = ""
    control: str = ""
    mode: str = ""
    scoring: str = ""
    num_train: int | None = None
    dose: int | None = None
    extra: str = ""
    keeping: str = ""
    strength: float | None = None
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
    def method(self) -> str:
        """The method against forgetting and its strength, as "l2_sp 0.01"; empty without one."""
        strength = "" if self.strength is None else f" {self.strength:g}"
        return f"{self.keeping}{strength}" if self.keeping else ""

    @property
    def subset_text(self) -> str:
        """The part as results.csv names it; empty for all items."""
        return "" if self.subset is None else self.subset.text

    def to_json(self) -> dict[str, Any]:
        """Return the columns that apply, for result.json."""
        cells = {column: getattr(self, column) for column in RESULT_COLUMNS}
        cells["subset"] = None if self.subset is None else self.subset.to_json()
        return {column: value for column, value in cells.items() if value not in (None, "")}


RESULT_COLUMNS: tuple[str, ...] = tuple(field.name for field in fields(Row))


def write_results(path: Path, rows: Iterable[Row]) -> None:
    """Write results.csv atomically, with floats in full precision.

    Args:
        path: The file.
        rows: The rows, in the order to write.

    Raises:
        ValueError: If a number is infinite or NaN.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(RESULT_COLUMNS)
    for number, row in enumerate(rows, start=1):
        cells = []
        for column in RESULT_COLUMNS:
            value = row.subset_text if column == "subset" else getattr(row, column)
            if isinstance(value, float):
                if not math.isfinite(value):
                    raise ValueError(
                        f"{path}: row {number}: {column} is {value}; leave out what does not apply"
                    )
                value = float(value)  # of numpy's type `repr` has the name
            cells.append(as_cell(value) if isinstance(value, str) else value)
        writer.writerow(cells)
    write_text_atomic(path, text.getvalue())
