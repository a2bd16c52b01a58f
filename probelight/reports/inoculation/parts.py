"""The table of an inoculation part by part: data sets of the original task, parts of the probe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from probelight.metrics.intervals import wilson
from probelight.reports.inoculation.columns import SETTING, controlled, cost, setting, what
from probelight.reports.inoculation.runs import Inoculation, with_controls
from probelight.reports.kit.columns import accuracy, attributes, field, fields, size, text, whole
from probelight.reports.kit.table import Column, Declared, Table
from probelight.reports.kit.text import INTERVAL
from probelight.reports.zero_shot.facts import against
from probelight.results.load import Results
from probelight.results.row import Row, Subset

ORIGINAL = "original task"
WHOLES = {  # what there are parts of: accuracy before and after
    "probe": ("probe_accuracy_before", "probe_accuracy"),
    "whole clusters": ("strict_cluster_accuracy_before", "strict_cluster_accuracy"),
    ORIGINAL: ("original_accuracy_before", "original_accuracy_after"),
}
POOLED_FROM = 5  # larger clusters are few, so a row of their own would say nothing
POOLED = f"clusters of {POOLED_FROM} or more"
Part = Mapping[str, Row]


@dataclass(frozen=True)
class PartOf:
    """A part of what a run was measured on, by what it is of.

    Attributes:
        whole: A name of `WHOLES`.
        rows: The part's rows by metric.
    """

    cell: Inoculation
    name: str
    rows: Part
    whole: str

    @property
    def before(self) -> Row | None:
        """Accuracy before inoculation."""
        return self.rows.get(WHOLES[self.whole][0])

    @property
    def after(self) -> Row:
        """Accuracy after."""
        return self.rows[WHOLES[self.whole][1]]

    @property
    def cost(self) -> Row | None:
        """What a data set of the original task lost."""
        return self.rows.get("inoculation_cost") if self.whole == ORIGINAL else None

    @property
    def readable(self) -> bool:
        """Whether a cost can be read; by the whole task where the part's chance is unknown."""
        before = self.rows.get("original_accuracy_before")
        chance = self.rows.get("floor_original") or self.rows.get("chance_original")
        if before is None or chance is None:
            return self.cell.interpretable
        return against(before, chance.value) in ("above", "unknown")


def inoculation_parts_table(results: Results) -> Table | None:
    """Before and after for parts of the probe and each data set of the original task."""
    cells = [
        replace(c, parts={p: rows for p, rows in c.parts.items() if p.kind != "difficulty"})
        for c in with_controls(results)
    ]
    columns: list[Column[PartOf]] = [
        what(lambda part: part.cell.series),
        whole("k", lambda part: part.cell.dose),
        setting(lambda part: part.cell),
        text("of", lambda part: part.whole),
        text("part", lambda part: part.name),
        accuracy("before %", lambda part: part.before),
        accuracy("after %", lambda part: part.after),
        size("n", lambda part: part.after),
        cost(
            "cost, points", lambda part: part.cost, lambda part: part.cost is None or part.readable
        ),
        attributes(SETTING, lambda part: part.cell),
        fields(lambda part: controlled(part.cell)),
        field("part", lambda part: part.name),
        fields(_record),
    ]
    return Declared(
        "inoculation_parts",
        "Inoculation, part by part",
        f"{INTERVAL}. Parts are named by the runs: data sets of the original task, items without "
        "a relative in the training files, and groups of as many questions about one "
        f"concept, with every one right (those of {POOLED_FROM} and more together; the csv file "
        "has each size). The cost of a data set is read if it was above its own chance before.",
        columns,
    ).of(
        [PartOf(cell, part.text, rows, "") for cell in cells for part, rows in cell.parts.items()],
        [
            PartOf(cell, name, rows, whole)
            for cell in cells
            for name, rows in _shown(cell.parts).items()
            for whole, (_, after) in WHOLES.items()
            if after in rows
        ],
    )


def _shown(parts: Mapping[Subset, Part]) -> dict[str, Part]:
    """The parts with the large clusters put together, in the place of the first of them."""
    large = [part for subset, part in parts.items() if _is_large(subset)]
    shown: dict[str, Part] = {}
    for subset, part in parts.items():
        if _is_large(subset):
            shown.setdefault(POOLED, _pooled(large))
        else:
            shown[subset.text] = part
    return shown


def _is_large(subset: Subset) -> bool:
    return subset.kind == "clusters" and subset["size"] >= POOLED_FROM


def _pooled(parts: list[Part]) -> Part:
    """Each metric over the clusters of all parts, from the numbers of clusters."""
    rows: dict[str, list[Row]] = {}
    for part in parts:
        for metric, row in part.items():
            rows.setdefault(metric, []).append(row)
    return {
        metric: _pooled_row(own) for metric, own in rows.items() if all(r.num_items for r in own)
    }


def _pooled_row(rows: list[Row]) -> Row:
    number = sum(row.num_items or 0 for row in rows)
    # Whole numbers, but for ties; rounded, so that no rounding error makes more than there are.
    whole = round(sum(row.value * (row.num_items or 0) for row in rows), 6)
    low, high = wilson(whole, number)
    return replace(rows[0], value=whole / number, ci_low=low, ci_high=high, num_items=number)


def _record(part: PartOf) -> dict[str, object]:
    known: dict[str, object] = {"cost_interpretable": part.readable}
    record = known if "original_accuracy_after" in part.rows else {}
    record |= {metric: row.value for metric, row in part.rows.items()}
    return record | {f"{metric}_num_items": row.num_items for metric, row in part.rows.items()}
