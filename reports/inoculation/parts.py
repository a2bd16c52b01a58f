"""The table of an inoculation part by part: data sets of the original task, parts of the probe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from metrics.intervals import wilson
from reports.inoculation.facts import Inoculation, inoculations
from reports.inoculation.tables import cost_cell, setting_cell, setting_record, what_cell
from reports.kit.layout import (
    INTERVAL,
    Cell,
    Column,
    Table,
    accuracy_cell,
    count,
    size_cell,
)
from reports.zero_shot.facts import against
from results.load import Results, Row

ORIGINAL = "original task"
WHOLES = (
    ("probe", "probe_accuracy_before", "probe_accuracy"),
    ("whole clusters", "strict_cluster_accuracy_before", "strict_cluster_accuracy"),
    (ORIGINAL, "original_accuracy_before", "original_accuracy_after"),
)
POOLED_FROM = 5  # larger clusters are few, so a row of their own would say nothing
POOLED = f"clusters of {POOLED_FROM} or more"
Part = Mapping[str, Row]


def inoculation_parts_table(results: Results) -> Table | None:
    """Before and after for parts of the probe and each data set of the original task."""
    cells = [cell for cell in inoculations(results) if cell.parts]
    if not cells:
        return None
    heads = [Column("probe", "left"), Column("k"), Column("setting", "left")]
    heads += [Column("of", "left"), Column("part", "left")]
    heads += [Column(label) for label in ("before %", "after %", "n", "cost, points")]
    return Table(
        "inoculation_parts",
        "Inoculation, part by part",
        f"{INTERVAL}. Parts are named by the runs: data sets of the original task, items without "
        "a relative in the training files, and groups of as many questions about one "
        f"concept, with every one right (those of {POOLED_FROM} and more together; the csv file "
        "has each size). The cost of a data set is read if it was above its own chance before.",
        tuple(heads),
        tuple(row for cell in cells for row in _rows(cell)),
        tuple(_record(cell, name) for cell in cells for name in cell.parts),
    )


def _rows(cell: Inoculation) -> Iterable[tuple[Cell, ...]]:
    for name, part in _shown(cell.parts).items():
        for whole, before, after in WHOLES:
            if after not in part:
                continue
            cost = part.get("inoculation_cost") if whole == ORIGINAL else None
            yield (
                what_cell(cell.series),
                Cell(count(cell.dose)),
                setting_cell(cell),
                Cell(whole),
                Cell(name),
                accuracy_cell(part.get(before)),
                accuracy_cell(part[after]),
                size_cell(part[after]),
                cost_cell(cost, cost is None or _interpretable(cell, part)),
            )


def _interpretable(cell: Inoculation, part: Part) -> bool:
    """Whether a data set's cost can be read; by the whole task where its chance is unknown."""
    before, chance = part.get("original_accuracy_before"), part.get("chance_original")
    if before is None or chance is None:
        return cell.interpretable
    return against(before, chance.value) in ("above", "unknown")


def _shown(parts: Mapping[str, Part]) -> dict[str, Part]:
    """The parts with the large clusters put together, in the place of the first of them."""
    large = {name: part for name, part in parts.items() if (_size(name) or 0) >= POOLED_FROM}
    shown: dict[str, Part] = {}
    for name, part in parts.items():
        if name in large:
            shown.setdefault(POOLED, _pooled(list(large.values())))
        else:
            shown[name] = part
    return shown


def _size(name: str) -> int | None:
    """The number of questions in each cluster of a part, None for other parts."""
    found = re.fullmatch(r"clusters of (\d+)", name)
    return int(found[1]) if found else None


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
    return replace(
        rows[0], value=whole / number, ci_low=low, ci_high=high, num_items=number, subset=POOLED
    )


def _record(cell: Inoculation, name: str) -> dict[str, object]:
    part = cell.parts[name]
    record = {**setting_record(cell), "part": name}
    if "original_accuracy_after" in part:
        record["cost_interpretable"] = _interpretable(cell, part)
    record |= {metric: row.value for metric, row in part.items()}
    return record | {f"{metric}_num_items": row.num_items for metric, row in part.items()}
