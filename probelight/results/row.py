"""A row: one number and what it was measured on; and results.csv, the table of all rows."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from probelight.io.atomic import write_text_atomic
from probelight.io.documents import STRICT
from probelight.io.escaping import as_cell
from probelight.io.package import current_model
from probelight.metrics.scoring_rules import RULES

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
        """Return the kind and the fields, and the text unless it follows from them."""
        value = {"kind": self.kind, **dict(self.fields)}
        if self.kind in TEXTS and _text_of_kind(self.kind, dict(self.fields)) == self.text:
            return value
        return {**value, "text": self.text}

    @staticmethod
    def from_json(value: object) -> Subset:
        """Read the part that `to_json` wrote.

        Raises:
            ValueError: If the value is not a part.
        """
        if isinstance(value, dict) and isinstance(kind := value.get("kind"), str):
            fields = {
                name: tuple(found) if isinstance(found, list) else found
                for name, found in value.items()
                if name not in ("kind", "text")
            }
            if kind == "statements":
                fields.setdefault("naturalness", "")
            if all(map(_is_field, fields.values())):
                text = value["text"] if "text" in value else _text_of_kind(kind, fields)
                if isinstance(text, str):
                    return Subset.of(kind, text, **fields)
        raise ValueError(f"is {value!r}, which is not a part of a set")

    @classmethod
    def __get_pydantic_core_schema__(cls, kind: object, handler: object) -> CoreSchema:
        from pydantic_core.core_schema import no_info_plain_validator_function

        return no_info_plain_validator_function(Subset.from_json)


# Parts whose text result.json does not hold, as their kinds are older than `Subset.text`. A new
# kind is written with its text and is not added here.
TEXTS: Mapping[str, tuple[str, Mapping[str, type]]] = {
    "template": ("template={name}", {"name": str}),
    "choices": ("pair={words}", {"words": tuple}),
    "untouched": ("group not in train", {}),
    "clusters": ("clusters of {size}", {"size": int}),
    "difficulty": (
        "hops={hops} distractors={distractor_type}:{distractor_hops}",
        {"hops": int, "distractor_type": str, "distractor_hops": int},
    ),
    "paradigm": ("UID={name}", {"name": str}),
    "source_set": ("{name}", {"name": str}),
    "answered": ("{answer}", {"answer": str}),
    "wording": ("wording={name}", {"name": str}),
    "nearer_distractor": ("{exists}", {"exists": bool}),
    "model": ("{label}", {"label": str}),
    "versus": ("{first} − {second}", {"first": str, "second": str}),
    "constraint": ("{level} constraint", {"level": str}),
    "cloze": ("cloze <={upper}", {"upper": float}),
    "statements": ("{polarity} {naturalness}", {"polarity": str, "naturalness": str}),
    "article": ("behind {word}", {"word": str}),
    "answer_part": ("{of}={part}", {"of": str, "part": str}),
}


def _text_of_kind(kind: str, fields: Mapping[str, Any]) -> str | None:
    """Return the text of a part that is written without it; None where its fields do not fit."""
    template, types = TEXTS.get(kind, ("", None))
    if types is None or fields.keys() != types.keys():
        return None
    for name, type_ in types.items():
        found = type(fields[name])
        if found is not type_ and (found, type_) != (int, float):
            return None
    shown = {name: "/".join(v) if isinstance(v, tuple) else v for name, v in fields.items()}
    if kind == "nearer_distractor":
        shown["exists"] = "with a nearer distractor" if fields["exists"] else "without"
    if kind == "cloze":
        shown["upper"] = f"{fields['upper']:.2f}".removeprefix("0")
    return template.format(**shown).strip()


def _is_field(value: object) -> bool:
    """Return whether JSON gives the value back as it is: no object, and a finite number."""
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
    def kept(self) -> str:
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


def with_scoring(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Bring the rows of an older run up to date: scoring rules move from `mode` to `scoring`.

    In a zero-shot run these rows get the mode of the accuracy by the model's own score. The bundled
    model gets its current name.
    """
    modes = (row.mode for row in rows if row.metric == "accuracy" and row.mode not in RULES)
    mode_of_run = next(modes, "")
    found = []
    for row in rows:
        if row.protocol == "zero_shot" and row.mode in RULES:
            row = replace(row, mode=mode_of_run, scoring=row.mode)
        elif row.protocol == "audit" and not row.kind and row.mode:
            row = replace(row, mode="", scoring=row.mode)
        if (model := current_model(row.model)) != row.model:
            row = replace(row, model=model)
        found.append(row)
    return tuple(found)


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
