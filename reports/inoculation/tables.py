"""The tables of the original task and of its inoculation."""

from __future__ import annotations

from reports.inoculation.facts import Inoculation, Series, inoculations
from reports.kit.layout import (
    ABSENT,
    INTERVAL,
    NOT_INTERPRETABLE,
    Cell,
    Column,
    Table,
    accuracy_cell,
    accuracy_record,
    between,
    count,
    percent,
    points,
    points_between,
    probability,
    rate,
    size_cell,
)
from results.load import Results, Row


def original_table(results: Results) -> Table | None:
    """Accuracy of the original-task models."""
    found = [
        row
        for row in results.rows
        if row.protocol == "original" and row.metric == "accuracy" and row.split != "selection"
    ]
    if not found:
        return None
    heads = (
        Column("original task", "left"),
        Column("model", "left"),
        Column("part", "left"),
        Column("accuracy %"),
        Column("n"),
        Column("epoch"),
        Column("seed"),
    )
    rows = [
        (
            Cell(row.probe, row.split),
            Cell(row.model),
            Cell(row.subset or "all"),
            Cell(percent(row.value), between(row.ci_low, row.ci_high)),
            size_cell(row),
            Cell(count(row.epoch)),
            Cell(count(row.seed)),
        )
        for row in found
    ]
    records = [
        {
            "model": r.model,
            "task": r.probe,
            "subset": r.subset,
            "split": r.split,
            **accuracy_record(r),
        }
        for r in found
    ]
    return Table(
        "original_task",
        "The original task, before inoculation",
        f"{INTERVAL}.",
        heads,
        tuple(rows),
        tuple(records),
    )


def inoculation_table(results: Results) -> Table | None:
    """Each inoculation run: both scores before and after, their average, and the cost."""
    found = inoculations(results)
    if not found:
        return None
    heads = [Column("probe", "left"), Column("k"), Column("setting", "left")]
    heads += [Column(label, group="probe %") for label in ("before", "after", "n")]
    heads += [Column(label, group="original task %") for label in ("before", "after", "n")]
    heads += [Column("average %"), Column("cost, points"), Column("lost / gained")]
    heads += [Column(label, group="whole clusters %") for label in ("before", "after", "n")]
    return Table(
        "inoculation",
        "Inoculation",
        "k: probe examples trained on. Rate and epoch: the setting and the checkpoint with the "
        "best average on the selection splits (the model before inoculation is no candidate); a "
        "dagger marks settings that were not chosen. Both scores are from the report split. "
        f"{INTERVAL}. "
        "Cost: original-task accuracy before minus after, positive = lost. Lost / gained: "
        "original-task items that turned wrong / right, with the exact McNemar test (by "
        "whole groups where items come in groups). Above chance: the average of the scores "
        "rescaled so that chance is 0 and perfection 100. Whole clusters: groups of questions "
        "about one concept with every one right.",
        tuple(heads),
        tuple(_inoculation_cells(cell) for cell in found),
        tuple(_inoculation_record(cell) for cell in found),
    )


def _inoculation_cells(cell: Inoculation) -> tuple[Cell, ...]:
    measured = cell.measured
    cells = [what_cell(cell.series), Cell(count(cell.dose)), setting_cell(cell)]
    for before, after in (
        ("probe_accuracy_before", "probe_accuracy"),
        ("original_accuracy_before", "original_accuracy_after"),
    ):
        size = measured[after].num_items if after in measured else None
        cells += [accuracy_cell(measured.get(before)), accuracy_cell(measured.get(after))]
        cells.append(Cell(count(size)))
    cells += [
        Cell(percent(cell.value("aggregate")), _above_chance(cell)),
        cost_cell(measured.get("inoculation_cost"), cell.interpretable),
    ]
    lost, gained = cell.value("mcnemar_lost"), cell.value("mcnemar_gained")
    if lost is None or gained is None:
        cells.append(Cell(ABSENT))
    else:
        p = probability(cell.value("mcnemar_p"))
        cells.append(Cell(f"{_flips(lost)} / {_flips(gained)}", f"p {p}"))
    clusters = measured.get("strict_cluster_accuracy")
    num_clusters = None if clusters is None else clusters.num_items
    cells.append(accuracy_cell(measured.get("strict_cluster_accuracy_before")))
    return (*cells, accuracy_cell(clusters), Cell(count(num_clusters)))


def _flips(credit: float) -> str:
    """A number of items; with one decimal where ties flipped in part."""
    return f"{credit:,.0f}" if credit == round(credit) else f"{credit:,.1f}"


def setting_cell(cell: Inoculation) -> Cell:
    """The setting and its checkpoint, and what it was chosen from."""
    epoch = "" if cell.epoch is None else f", epoch {cell.epoch}"
    dagger = "" if cell.chosen else " †"
    seed = "" if cell.seed is None else f", seed {cell.seed}"
    of = f", best of {cell.num_settings}" if cell.num_settings > 1 else ""
    of += f" ({len(cell.missing)} more have no result)" if cell.missing else ""
    return Cell(f"rate {rate(cell.learning_rate)}{epoch}{dagger}", f"extra {cell.extra}{seed}{of}")


def cost_cell(row: Row | None, interpretable: bool) -> Cell:
    """A cost with its interval, or that it cannot be read."""
    if not interpretable:
        return Cell(NOT_INTERPRETABLE)
    if row is None:
        return Cell(ABSENT)
    return Cell(points(row.value), points_between(row.ci_low, row.ci_high))


def what_cell(series: Series) -> Cell:
    """The probe and, in smaller type, the model, its original task and what is unusual."""
    origin = f"originally {series.original_task}" if series.original_task else ""
    return Cell(series.probe, ", ".join(t for t in (series.model, origin, series.remarks) if t))


def setting_record(cell: Inoculation) -> dict[str, object]:
    """What identifies a run, for csv files."""
    return {
        "model": cell.model,
        "probe": cell.probe,
        "original_task": cell.original_task,
        "dose": cell.dose,
        "extra": cell.extra,
        "learning_rate": cell.learning_rate,
        "num_settings": cell.num_settings,
        "selection": cell.selection,
        "report_split": cell.report_split,
        "seed": cell.seed,
        "epoch": cell.epoch,
        "chosen": cell.chosen,
    }


def _inoculation_record(cell: Inoculation) -> dict[str, object]:
    record = {**setting_record(cell), "cost_interpretable": cell.interpretable}
    for metric, row in cell.measured.items():
        record[metric] = row.value
        if row.ci_low is not None or row.ci_high is not None:
            record |= {f"{metric}_ci_low": row.ci_low, f"{metric}_ci_high": row.ci_high}
        if row.num_items is not None:
            record[f"{metric}_num_items"] = row.num_items
    return record


def _above_chance(cell: Inoculation) -> str:
    """The average with both scores rescaled to 0 at chance: the smaller print below it."""
    value = cell.value("aggregate_above_chance")
    return "" if value is None else f"{percent(value)} above chance"
