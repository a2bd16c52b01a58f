"""The tables of the original task and of its inoculation."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from probelight.reports.inoculation.columns import SETTING, controlled, cost, setting, what
from probelight.reports.inoculation.doses import Dose, doses
from probelight.reports.inoculation.runs import Inoculation, with_controls
from probelight.reports.kit.columns import (
    ACCURACY,
    SIZE,
    accuracy,
    accuracy_cell,
    attributes,
    field,
    fields,
    shown,
    size,
    text,
    whole,
)
from probelight.reports.kit.table import Cell, Column, Declared, Heading, Table
from probelight.reports.kit.text import (
    ABSENT,
    INTERVAL,
    between,
    percent,
    points_between,
    probability,
)
from probelight.results.load import Results
from probelight.results.row import Row

PROBE = {"before": "probe_accuracy_before", "after": "probe_accuracy"}
ORIGINAL = {"before": "original_accuracy_before", "after": "original_accuracy_after"}
BOTH = {"above chance": "aggregate_above_chance", "average": "aggregate"}
CLUSTERS = {"before": "strict_cluster_accuracy_before", "after": "strict_cluster_accuracy"}
COST = "inoculation_cost"
from probelight.reports.inoculation.doses import UNTOUCHED

UNTOUCHED_NOTE = (
    f" {UNTOUCHED.text.capitalize()}: the probe items that have no relative in the train file, "
    "where every seed was measured on them."
)


def original_table(results: Results) -> Table | None:
    """Accuracy of the original-task models."""
    columns: list[Column[Row]] = [
        text("original task", lambda row: row.probe, "task", lambda row: row.split),
        text("model", lambda row: row.model, "model"),
        text("part", lambda row: row.subset_text or "all"),
        field("subset", lambda row: row.subset_text),
        attributes("split"),
        accuracy("accuracy %", lambda row: row, ACCURACY),
        size("n", lambda row: row, SIZE),
        whole("epoch", lambda row: row.epoch),
        whole("seed", lambda row: row.seed),
    ]
    found = [row for row in results.rows if row.protocol == "original"]
    return Declared(
        "original_task",
        "The original task, before inoculation",
        f"{INTERVAL}.",
        columns,
        order="model",
    ).of([row for row in found if row.metric == "accuracy" and row.split != "selection"])


def inoculation_table(results: Results) -> Table | None:
    """Each inoculation run: both scores before and after, their average, and the cost."""
    columns: list[Column[Inoculation]] = [
        what(lambda cell: cell.series),
        whole("k", lambda cell: cell.dose),
        setting(lambda cell: cell),
        *_before_and_after(PROBE, "probe %"),
        *_before_and_after(ORIGINAL, "original task %"),
        shown("average %", _average_cell),
        cost("cost, points", lambda cell: cell.measured.get(COST), lambda c: c.interpretable),
        shown("lost / gained", _flips_cell),
        *_before_and_after(CLUSTERS, "whole clusters %"),
        attributes(SETTING),
        fields(controlled),
        fields(_measured_record),
    ]
    return Declared(
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
        columns,
    ).of(with_controls(results))


def seeds_table(results: Results) -> Table | None:
    """M*_k averaged over seeds; None where every dose has one seed."""
    lines = [dose for line in doses(with_controls(results)).values() for dose in line]
    if all(len(dose.runs) == 1 for dose in lines):
        return None
    untouched = any(dose.untouched.values(PROBE["after"]) for dose in lines)
    columns: list[Column[Dose]] = [
        what(lambda dose: dose.series),
        whole("k", lambda dose: dose.dose),
        whole("seeds", lambda dose: len(dose.runs)),
        fields(lambda dose: dose.series._asdict()),
        attributes("dose"),
        fields(lambda d: {"num_seeds": len(d.runs), "cost_interpretable": d.interpretable}),
        *_means(PROBE, "probe %"),
        *_means(ORIGINAL, "original task %"),
        cost("mean", lambda d: d.estimate(COST), lambda d: d.interpretable, "cost, points"),
        shown("over seeds", _cost_spread_cell, "cost, points"),
        *_means(BOTH, "both %"),
        *_means(CLUSTERS, "whole clusters %"),
        fields(lambda dose: _mean_record(dose, COST)),
        *(_untouched(label, metric, untouched) for label, metric in PROBE.items()),
    ]
    return Declared(
        "inoculation_seeds",
        "Inoculation, mean over seeds",
        "For each seed the setting and checkpoint with the best average on the selection splits; "
        f"all seeds are in the mean. {INTERVAL}, over groups of items and over seeds (none where a "
        "run of several seeds did not record what each item counted); over seeds: the lowest and "
        "the highest seed. Above chance: the average of the scores rescaled so that chance is 0 "
        "and perfection 100. Whole clusters: groups of questions about one concept with every one "
        f"right.{UNTOUCHED_NOTE if untouched else ''}",
        columns,
    ).of(lines)


def _before_and_after(metrics: Mapping[str, str], group: str) -> list[Column[Inoculation]]:
    before, after = metrics["before"], metrics["after"]

    def num_items(cell: Inoculation) -> int | None:
        return cell.measured[after].num_items if after in cell.measured else None

    return [
        accuracy("before", lambda cell: cell.measured.get(before), group=group),
        accuracy("after", lambda cell: cell.measured.get(after), group=group),
        whole("n", num_items, group=group),
    ]


def _average_cell(cell: Inoculation) -> Cell:
    """The average and, below it, that of both scores rescaled to 0 at chance."""
    above = cell.value("aggregate_above_chance")
    small = "" if above is None else f"{percent(above)} above chance"
    return Cell(percent(cell.value("aggregate")), small)


def _flips_cell(cell: Inoculation) -> Cell:
    lost, gained = cell.value("mcnemar_lost"), cell.value("mcnemar_gained")
    if lost is None or gained is None:
        return Cell(ABSENT)
    said = f"p {probability(cell.value('mcnemar_p'))}"
    return Cell(f"{_flips(lost)} / {_flips(gained)}", said)


def _flips(credit: float) -> str:
    """A number of items; with one decimal where ties flipped in part."""
    return f"{credit:,.0f}" if credit == round(credit) else f"{credit:,.1f}"


def _measured_record(cell: Inoculation) -> dict[str, object]:
    record: dict[str, object] = {"cost_interpretable": cell.interpretable}
    for metric, row in cell.measured.items():
        record[metric] = row.value
        if row.ci_low is not None or row.ci_high is not None:
            record |= {f"{metric}_ci_low": row.ci_low, f"{metric}_ci_high": row.ci_high}
        if row.num_items is not None:
            record[f"{metric}_num_items"] = row.num_items
    return record


def _means(metrics: Mapping[str, str], group: str) -> list[Column[Dose]]:
    """Means side by side; the seeds' spread is that of the last one."""
    last = list(metrics.values())[-1]
    means = [_mean(label, metric, group) for label, metric in metrics.items()]

    def spread(dose: Dose) -> Cell:
        ends = dose.spread(last)
        return Cell(between(*ends) if ends else ABSENT)

    return [*means, shown("over seeds", spread, group)]


def _mean(label: str, metric: str, group: str) -> Column[Dose]:
    return Column(
        Heading(label, group=group),
        lambda dose: accuracy_cell(dose.estimate(metric)),
        lambda dose: _mean_record(dose, metric),
    )


def _mean_record(dose: Dose, metric: str) -> dict[str, object]:
    values, (low, high) = dose.values(metric), dose.interval(metric)
    record: dict[str, object] = {metric: dose.mean(metric)}
    if low is not None:
        record |= {f"{metric}_ci_low": low, f"{metric}_ci_high": high}
    if values:
        record |= {f"{metric}_min": min(values), f"{metric}_max": max(values)}
        record |= {f"{metric}_median": median(values)}
    return record


def _cost_spread_cell(dose: Dose) -> Cell:
    spread = dose.spread(COST) if dose.interpretable else None
    return Cell(points_between(*spread) if spread else ABSENT)


def _untouched(label: str, metric: str, shown: bool) -> Column[Dose]:
    """A mean over the probe items that have no relative in the train file."""
    name = f"{metric}_{UNTOUCHED.text.replace(' ', '_')}"

    def record(dose: Dose) -> dict[str, object]:
        mean = dose.untouched.estimate(metric)
        if mean is None:
            return {}
        return {name: mean.value, f"{name}_ci_low": mean.ci_low, f"{name}_ci_high": mean.ci_high}

    made: Column[Dose] = Column(
        Heading(label, group=f"probe, {UNTOUCHED.text} %"),
        lambda dose: accuracy_cell(dose.untouched.estimate(metric)),
        record,
    )
    return made if shown else made.hidden
