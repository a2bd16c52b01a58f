"""The points of learning curves as tables: by number of examples, by template, by pair of words."""

from __future__ import annotations

from collections.abc import Sequence

from reports.curve.facts import STANDARD, Curve, curves
from reports.curve.points import Difference, Point
from reports.kit.layout import (
    ABSENT,
    INTERVAL,
    Cell,
    Column,
    Table,
    between,
    count,
    percent,
    points,
    points_between,
    rate,
)
from results.load import Results


def curve_table(results: Results) -> Table | None:
    """Learning curves: mean over seeds by number of examples, controls, and the difference."""
    found = curves(results)
    if not found:
        return None
    controls = sorted({control for curve in found for control in curve.controls})
    stuck = any(p.stuck(c.chance) is not None for c in found for p in c.points.get(STANDARD, ()))
    heads = [Column("probe", "left"), Column("model", "left"), Column("trained", "left")]
    heads += [Column("N"), Column("chance")]
    labels = ("accuracy %", "median", "over seeds", "seeds", *(["at chance"] if stuck else []), "n")
    heads += [Column(label, group="standard") for label in labels]
    for control in controls:
        group = control.replace("_", " ")
        heads += [Column("accuracy %", group=group), Column("standard − control", group=group)]
    rows = [_curve_cells(curve, size, controls, stuck) for curve in found for size in curve.sizes]
    records = [
        _point_record(curve, control, point)
        for curve in found
        for control, line in curve.points.items()
        for point in line
    ]
    note = (
        f"{INTERVAL} of the mean over seeds, over groups of items and over seeds (the items alone "
        "where a run did not record which were right). Of "
        "few groups or seeds the intervals are wide. Then the median seed, and the lowest and "
        "highest. The difference is in percentage points on the same items and seeds, with its "
        "interval, or else its lowest and highest seed."
    )
    if stuck:
        note += (
            " At chance: runs whose accuracy on their own training examples is not above chance; "
            "they stay in the mean."
        )
    return Table(
        "learning_curve", "Learning curves", note, tuple(heads), tuple(rows), tuple(records)
    )


def _curve_cells(curve: Curve, size: int, controls: Sequence[str], stuck: bool) -> tuple[Cell, ...]:
    cells = [Cell(curve.probe, curve.where), Cell(curve.model)]
    cells += [Cell(curve.mode, f"rate {rate(curve.learning_rate)}" if curve.learning_rate else "")]
    cells += [Cell(count(size)), Cell(percent(curve.chance))]
    cells += _point_cells(curve, size, stuck)
    for control in controls:
        cells += [_accuracy_cell(curve, control, size)]
        cells += [_difference_cell(curve.difference(control, size))]
    return tuple(cells)


def _accuracy_cell(curve: Curve, control: str, size: int) -> Cell:
    point = curve.at(control, size)
    if point is None:
        return Cell(ABSENT)
    return Cell(percent(point.mean), between(*curve.interval(control, size)))


def _point_cells(curve: Curve, size: int, stuck: bool) -> list[Cell]:
    point = curve.at(STANDARD, size)
    if point is None:
        return [Cell(ABSENT)] * (6 if stuck else 5)
    several = len(point.values) > 1
    cells = [
        _accuracy_cell(curve, STANDARD, size),
        Cell(percent(point.median) if several else ABSENT),
        Cell(between(min(point.values), max(point.values)) if several else ABSENT),
        Cell(count(len(point.values))),
    ]
    if stuck:
        number = point.stuck(curve.chance)
        cells.append(Cell(ABSENT if number is None else f"{number} of {len(point.trained)}"))
    groups = curve.num_groups
    told = "" if groups in (None, point.num_items) else f"{count(groups)} groups"
    return [*cells, Cell(count(point.num_items), told)]


def _difference_cell(gap: Difference | None) -> Cell:
    if gap is None:
        return Cell(ABSENT)
    if gap.interval[0] is not None:
        return Cell(points(gap.mean), points_between(*gap.interval))
    seeds = points_between(gap.low, gap.high) if gap.num_seeds > 1 else "one seed"
    return Cell(points(gap.mean), seeds)


def _point_record(curve: Curve, control: str, point: Point) -> dict[str, object]:
    gap = None if control == STANDARD else curve.difference(control, point.num_train)
    low, high = curve.interval(control, point.num_train)
    return {
        "model": curve.model,
        "probe": curve.probe,
        "mode": curve.mode,
        "split": curve.where,
        "learning_rate": curve.learning_rate,
        "control": control,
        "num_train": point.num_train,
        "accuracy": point.mean,
        "ci_low": low,
        "ci_high": high,
        "median": point.median,
        "seed_min": min(point.values),
        "seed_max": max(point.values),
        "seed_sd": point.spread,
        "num_seeds": len(point.values),
        "num_at_chance": point.stuck(curve.chance),
        "num_items": point.num_items,
        "num_groups": curve.num_groups,
        "chance": curve.chance,
        "standard_minus_control": None if gap is None else gap.mean,
        "difference_low": None if gap is None else gap.interval[0],
        "difference_high": None if gap is None else gap.interval[1],
        "difference_min": None if gap is None else gap.low,
        "difference_max": None if gap is None else gap.high,
    }
