"""The table of inoculation averaged over seeds."""

from __future__ import annotations

from statistics import median

from reports.inoculation.doses import UNTOUCHED, Dose, doses
from reports.inoculation.facts import inoculations
from reports.inoculation.tables import what_cell
from reports.kit.layout import (
    ABSENT,
    INTERVAL,
    NOT_INTERPRETABLE,
    Cell,
    Column,
    Table,
    between,
    count,
    percent,
    points,
    points_between,
)
from results.load import Results

ORIGINAL_GROUP, COST_GROUP = "original task %", "cost, points"
UNTOUCHED_NOTE = (
    f" {UNTOUCHED.capitalize()}: the probe items that have no relative in the train file, where "
    "every seed was measured on them."
)
PROBE_METRICS = {"before": "probe_accuracy_before", "after": "probe_accuracy"}
# Stands side by side; the spread is that of the last one of each group.
SEEDS_GROUPS = (
    ("probe %", PROBE_METRICS),
    (
        ORIGINAL_GROUP,
        {"before": "original_accuracy_before", "after": "original_accuracy_after"},
    ),
    ("both %", {"above chance": "aggregate_above_chance", "average": "aggregate"}),
    (
        "whole clusters %",
        {"before": "strict_cluster_accuracy_before", "after": "strict_cluster_accuracy"},
    ),
)


def seeds_table(results: Results) -> Table | None:
    """M*_k averaged over seeds; None where every dose has one seed."""
    lines = [dose for line in doses(inoculations(results)).values() for dose in line]
    if all(len(dose.runs) == 1 for dose in lines):
        return None
    heads = [Column("probe", "left"), Column("k"), Column("seeds")]
    for group, metrics in SEEDS_GROUPS:
        heads += [Column(label, group=group) for label in metrics]
        heads.append(Column("over seeds", group=group))
        if group == ORIGINAL_GROUP:
            heads += [Column("mean", group=COST_GROUP), Column("over seeds", group=COST_GROUP)]
    untouched = any(dose.part(UNTOUCHED).values("probe_accuracy") for dose in lines)
    if untouched:
        heads += [Column(label, group=f"probe, {UNTOUCHED} %") for label in PROBE_METRICS]
    return Table(
        "inoculation_seeds",
        "Inoculation, mean over seeds",
        "For each seed the setting and checkpoint with the best average on the selection splits; "
        f"all seeds are in the mean. {INTERVAL}, over groups of items and over seeds (none where a "
        "run of several seeds did not record what each item counted); over seeds: the lowest and "
        "the highest seed. Above chance: the average of the scores rescaled so that chance is 0 "
        "and perfection 100. Whole clusters: groups of questions about one concept with every one "
        f"right.{UNTOUCHED_NOTE if untouched else ''}",
        tuple(heads),
        tuple(_seeds_cells(dose, untouched) for dose in lines),
        tuple(_seeds_record(dose) for dose in lines),
    )


def _seeds_cells(dose: Dose, untouched: bool) -> tuple[Cell, ...]:
    cells = [what_cell(dose.series), Cell(count(dose.dose)), Cell(count(len(dose.runs)))]
    for group, metrics in SEEDS_GROUPS:
        cells += [Cell(percent(dose.mean(m)), between(*dose.interval(m))) for m in metrics.values()]
        spread = dose.spread(list(metrics.values())[-1])
        cells.append(Cell(between(*spread) if spread else ABSENT))
        cells += _cost_cells(dose) if group == ORIGINAL_GROUP else []
    if untouched:
        part = dose.part(UNTOUCHED)
        for metric in PROBE_METRICS.values():
            cells.append(Cell(percent(part.mean(metric)), between(*part.interval(metric))))
    return tuple(cells)


def _cost_cells(dose: Dose) -> list[Cell]:
    cost, spread = dose.mean("inoculation_cost"), dose.spread("inoculation_cost")
    if not dose.interpretable:
        return [Cell(NOT_INTERPRETABLE), Cell(ABSENT)]
    if cost is None:
        return [Cell(ABSENT), Cell(ABSENT)]
    interval = points_between(*dose.interval("inoculation_cost"))
    over_seeds = points_between(*spread) if spread else ABSENT
    return [Cell(points(cost), interval), Cell(over_seeds)]


def _seeds_record(dose: Dose) -> dict[str, object]:
    record: dict[str, object] = {**dose.series._asdict(), "dose": dose.dose}
    record["num_seeds"] = len(dose.runs)
    record["cost_interpretable"] = dose.interpretable
    metrics = [metric for _, group in SEEDS_GROUPS for metric in group.values()]
    for metric in [*metrics, "inoculation_cost"]:
        values, (low, high) = dose.values(metric), dose.interval(metric)
        record[metric] = dose.mean(metric)
        if low is not None:
            record |= {f"{metric}_ci_low": low, f"{metric}_ci_high": high}
        if values:
            record |= {f"{metric}_min": min(values), f"{metric}_max": max(values)}
            record |= {f"{metric}_median": median(values)}
    part = dose.part(UNTOUCHED)
    for metric in PROBE_METRICS.values():
        name, (low, high) = f"{metric}_{UNTOUCHED.replace(' ', '_')}", part.interval(metric)
        if part.values(metric):
            record |= {name: part.mean(metric), f"{name}_ci_low": low, f"{name}_ci_high": high}
    return record
