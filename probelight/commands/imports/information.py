"""V-information from another program's probabilities of the right labels, or their entropies."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from probelight.io.escaping import as_cell
from probelight.io.ranges import Limit, Within
from probelight.metrics.intervals import mean_interval
from probelight.results.importers.columns import Columns, TableRow, typed_rows
from probelight.results.row import Row, Subset

ITEMS = "pvi.csv"  # in the run's folder: the bits of each item
Bits = Annotated[float, Within(0, math.inf)]


class LogProbability(Limit):
    """A natural logarithm, but for rounding at most 0."""

    def admits(self, value: Any) -> bool:
        """Return whether a number is one."""
        return bool(value <= 1e-6)

    def __str__(self) -> str:
        return "the natural logarithm of a probability above 0"


Logarithm = Annotated[float, LogProbability()]


@dataclass(frozen=True, kw_only=True)
class ItemLogarithms(TableRow):
    """The log-probabilities of an item's right label with the input and without it."""

    id: str
    label: str
    log_probability: Logarithm
    log_probability_without: Logarithm

    @property
    def bits(self) -> float:
        """Pointwise V-information."""
        return (self.log_probability - self.log_probability_without) / math.log(2)


@dataclass(frozen=True, kw_only=True)
class ItemEntropies(TableRow):
    """What guessing, and the model, leave unknown of an item's right label, in bits."""

    null_entropy: Bits
    conditional_entropy: Bits
    id: str = ""  # by default its line
    label: str = "any"

    @property
    def bits(self) -> float:
        """Pointwise V-information."""
        return self.null_entropy - self.conditional_entropy


def read_bits(path: Path, columns: Columns | None = None) -> list[tuple[str, str, float]]:
    """Return id, label and pointwise V-information in bits of each item of a file.

    Raises:
        RecordError: If a column is missing, or a number is not one; the message names file and
            line.
    """
    kinds: Sequence[type[ItemLogarithms | ItemEntropies]] = (ItemLogarithms, ItemEntropies)
    return [
        (row.id or line.rpartition(":")[2], row.label, round(row.bits, 6))
        for line, row in typed_rows(path, columns or {}, kinds)
    ]


def items_csv(items: Sequence[tuple[str, str, float]]) -> str:
    """Return the bits of each item as a table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    cells = ((as_cell(item), as_cell(label), bits) for item, label, bits in items)
    writer.writerows([("id", "label", "pvi"), *cells])
    return text.getvalue()


def information_rows(items: Sequence[tuple[str, str, float]]) -> list[Row]:
    """Return V-information of all items, and of those of each label where there are several."""
    by_label: dict[str, list[float]] = {}
    for _, label, bits in items:
        by_label.setdefault(label, []).append(bits)
    bits_by_subset: dict[Subset | None, Sequence[float]] = {None: [bits for _, _, bits in items]}
    if 1 < len(by_label) < len(items):
        for label, label_bits in sorted(by_label.items()):
            bits_by_subset[Subset.of("label", f"label={label}", name=label)] = label_bits
    rows, row = [], Row(metric="v_information")
    for subset, subset_bits in bits_by_subset.items():
        interval = mean_interval({0: np.array(subset_bits)})
        row = replace(row, subset=subset, value=interval.value, num_items=len(subset_bits))
        is_known = math.isfinite(interval.high)
        rows.append(replace(row, ci_low=interval.low, ci_high=interval.high) if is_known else row)
    return rows
