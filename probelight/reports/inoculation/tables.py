"""The tables of the original task and of its inoculation, and the sentences above them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from statistics import median
from typing import Any

from probelight.metrics.intervals import wilson
from probelight.reports import numbers
from probelight.reports import table as tables
from probelight.reports.inoculation.runs import (
    TASKS,
    Dose,
    DoseRun,
    above_chance,
    dose_lines,
    every_dose,
    interval_of,
    with_and_without_replay,
    with_controls,
)
from probelight.reports.numbers import ABSENT, INTERVAL, Estimate, Verdict, named, verdict_of
from probelight.reports.table import Cell, Column, Table, accuracy, share, size, table, text, whole
from probelight.results.frames import results_frame
from probelight.results.load import RunSet
from probelight.results.row import Row

PROBE, ORIGINAL = TASKS.values()
CLUSTERS = ("strict_cluster_accuracy_before", "strict_cluster_accuracy")
PAIRS = {**TASKS, "whole clusters": CLUSTERS}
BOTH = ("aggregate_above_chance", "aggregate")
UNRELATED = tuple(f"{metric}_group_not_in_train" for metric in PROBE)
COST = "inoculation_cost"
COLUMNS = (
    "Above chance: the average of both scores after rescaling each so that chance is 0 and all "
    "right is 100. Whole clusters: share of the concepts with every question right."
)
POOLED_FROM = 5  # larger clusters are few, so a row of their own would say nothing
POOLED = f"clusters of {POOLED_FROM} or more"
WHAT = text("probe", "probe", "_about")
SETTING = text("setting", "_setting", "_among")
MOST = 6  # names in a clause of the paragraph
COSTS: Mapping[Verdict, str] = {
    "above": "clearly above 0",
    "not distinguishable": "not clearly different from 0",
    "below": "clearly below 0, a gain,",
    "unknown": "without an interval",
}


def original_table(results: RunSet) -> Table | None:
    """Make the table of the accuracy of the original-task models."""
    rows = results_frame(results)
    is_shown = (rows.protocol == "original") & (rows.metric == "accuracy")
    rows = rows[is_shown & (rows.split != "selection")]
    return table(
        "original_task",
        "The original task, before inoculation",
        f"{INTERVAL}.",
        rows.rename(columns={"probe": "task", "value": "accuracy"}),
        [
            text("original task", "task", "split"),
            text("model", "model"),
            Column("part", lambda row: row.subset or "all", "left"),
            accuracy("accuracy %"),
            size(),
            whole("epoch", "epoch"),
            whole("seed", "seed"),
        ],
        csv="model task subset split accuracy ci_low ci_high num_items num_groups",
    )


def inoculation_table(results: RunSet) -> Table | None:
    """Make the table of each run: both scores before and after, their average, and the cost."""
    return table(
        "inoculation",
        "Inoculation",
        "One row per run: accuracy on the report items, before and after training on k examples of "
        "the probe. Rate and epoch: the setting and checkpoint with the best average of both tasks "
        f"on the selection items; a dagger marks settings that were not chosen. {INTERVAL}. Cost: "
        "original-task accuracy before minus after. Lost / gained: its items that turned wrong / "
        "right, with p of the cost, below 0.05 exactly if its interval excludes 0 (the csv file "
        "also has McNemar's exact test, by whole groups if items come in groups). "
        f"{COLUMNS}",
        [_run_record(run, run.report_rows, run.interpretable) for run in with_controls(results)],
        [
            WHAT,
            whole("k", "dose"),
            SETTING,
            *_pair_columns("probe %", PROBE, _num_items),
            *_pair_columns("original task %", ORIGINAL, _num_items),
            share("average", "aggregate", group="both %"),
            share("above chance", "aggregate_above_chance", group="both %"),
            cost_column("cost, points"),
            Column("lost / gained", _flips),
            *_pair_columns("whole clusters %", CLUSTERS, _num_items),
        ],
    )


def seeds_table(results: RunSet) -> Table | None:
    """Make the table of M*_k averaged over seeds; None where every dose has one seed."""
    all_doses = every_dose(results)
    if all(len(dose.runs) == 1 for dose in all_doses):
        return None
    return table(
        "inoculation_seeds",
        "Inoculation, mean over seeds",
        "For each seed, the setting and checkpoint with the best average of both tasks on the "
        f"selection items. {INTERVAL}, over groups of items and over seeds (none if a run did not "
        "record a score per item). Over seeds: the lowest and the highest seed. "
        f"{COLUMNS} Probe, group not in train: items whose group has no item in the train "
        "file.",
        [_dose_record(dose) for dose in all_doses],
        [
            WHAT,
            whole("k", "dose"),
            whole("seeds", "num_seeds"),
            *_pair_columns("probe %", PROBE, _spread_column),
            *_pair_columns("original task %", ORIGINAL, _spread_column),
            cost_column("mean", "cost, points"),
            _spread_column(COST, "cost, points"),
            *_pair_columns("both %", BOTH, _spread_column, "above chance", "average"),
            *_pair_columns("whole clusters %", CLUSTERS, _spread_column),
            *_pair_columns("probe, group not in train %", UNRELATED, _spread_column),
        ],
    )


def replay_table(results: RunSet) -> Table | None:
    """Make the table of gain and cost with replay and without it, and of their differences."""
    records = []
    for by_extra in with_and_without_replay(results):
        for extra, dose in by_extra.items():
            record = _dose_record(dose) | {"extra": extra}
            if gain := dose.gain:
                record |= named("gain", gain)
            if extra != "none" and (without := by_extra.get("none")):
                for name, metric, estimate, baseline in (
                    ("gain_more", "probe_gain", dose.gain, without.gain),
                    ("cost_more", COST, dose.cost, without.cost),
                ):
                    if estimate and baseline:
                        bounds = interval_of([(1.0, dose, metric), (-1.0, without, metric)])
                        difference = Estimate(estimate.value - baseline.value, *bounds)
                        record |= named(name, difference)
            records.append(record)
    return table(
        "replay",
        "What replay changed",
        "Replay: original-task examples mixed into the dose, as many as probe examples (x1) or "
        f"twice as many (x2). {INTERVAL}, over groups of items and over seeds. The last columns "
        "are the differences from the dose alone, on the same items.",
        records,
        [
            WHAT,
            whole("k", "dose"),
            text("replay", "extra"),
            whole("seeds", "num_seeds"),
            tables.gap("gain, points", "gain"),
            cost_column("cost, points"),
            tables.gap("gain", "gain_more", group="difference from no replay, points"),
            tables.gap("cost", "cost_more", group="difference from no replay, points"),
        ],
    )


def inoculation_parts_table(results: RunSet) -> Table | None:
    """Make the table of parts of the probe and each data set of the original task."""
    runs = with_controls(results)
    return table(
        "inoculation_parts",
        "Inoculation, part by part",
        "Parts: data sets of the original task; items whose group has no item in the train file; "
        "and concepts with a given number of questions, of which all must be right (the csv file "
        f"has each number). {INTERVAL}. The cost of a data set is shown if the model was above "
        "chance on it before.",
        [record for run in runs for record in _subset_records(run)],
        [
            WHAT,
            whole("k", "dose"),
            SETTING,
            text("of", "of"),
            text("part", "part"),
            accuracy("before %", "before"),
            accuracy("after %", "after"),
            size("n", "after_num_items after_num_groups"),
            cost_column("cost, points"),
        ],
        visible=tables.framed(
            record for run in runs for record in _subset_records(run, POOLED_FROM)
        ),
    )


def cost_column(label: str, group: str = "", *, name: str = COST) -> Column:
    """Make a column of costs with intervals; those that cannot be interpreted say so."""
    column = tables.gap(label, name, group=group)

    def show(row: Any) -> Cell | str:
        return numbers.NOT_INTERPRETABLE if row.cost_interpretable is False else column.show(row)

    return replace(column, show=show)


def _run_record(
    run: DoseRun, rows: Mapping[str, Row], interpretable: bool | None, **labels: object
) -> dict[str, object]:
    """Return the record of a run: its setting, and its values by metric."""
    epoch = "" if run.epoch is None else f", epoch {run.epoch}"
    seed = "" if run.seed is None else f", seed {run.seed}"
    best = f", best of {run.num_settings}" if run.num_settings > 1 else ""
    setting_names = "dose extra learning_rate num_settings seed epoch chosen".split()
    record = {
        **run.series.columns,
        **{name: getattr(run, name) for name in setting_names},
        **labels,
        "cost_interpretable": interpretable,
        "_about": run.series.about,
        "_setting": f"rate {numbers.rate(run.learning_rate)}{epoch}{'' if run.chosen else ' †'}",
        "_among": f"{numbers.replayed(run.extra)}{seed}{best}",
        "_runs": run.run.key,
    }
    for metric, row in rows.items():
        record[metric] = row.value
        for name in ("ci_low", "ci_high", "num_items", "num_groups"):
            if getattr(row, name) is not None:
                record[f"{metric}_{name}"] = getattr(row, name)
    return record


def _flips(row: Any) -> Cell:
    names = ("mcnemar_lost", "mcnemar_gained", f"{COST}_p")
    lost, gained, p = (getattr(row, name, None) for name in names)
    return Cell(ABSENT) if lost is None or gained is None else tables.flips(lost, gained, p)


def _dose_record(dose: Dose) -> dict[str, object]:
    """Return the mean and the spread of each metric."""
    record: dict[str, object] = {
        **dose.series.columns,
        "dose": dose.dose,
        "num_seeds": len(dose.runs),
        "cost_interpretable": dose.interpretable,
        "_about": ", ".join(filter(None, (dose.series.about, dose.replay))),
        "_runs": [run.run.key for run in dose.runs],
    }
    for metric in (*PROBE, *ORIGINAL, *BOTH, *CLUSTERS, COST, *UNRELATED):
        if mean := dose.estimate(metric):
            record[metric] = mean.value
            for name, statistic in (("min", min), ("max", max), ("median", median)):
                record[f"{metric}_{name}"] = statistic(dose.values(metric))
            if mean.ci_low is not None:
                record |= named(metric, mean)
    return record


def _pair_columns(
    group: str, metrics: Sequence[str], last: Callable[[str, str], Column], *labels: str
) -> list[Column]:
    """Return the columns of two metrics and the column that `last` makes of the second."""
    pairs = zip(labels or ("before", "after"), metrics, strict=True)
    columns = [accuracy(label, metric, group=group) for label, metric in pairs]
    return [*columns, last(metrics[-1], group)]


def _num_items(metric: str, group: str) -> Column:
    return whole("n", f"{metric}_num_items", group=group)


def _spread_column(metric: str, group: str) -> Column:
    """Make the column of the lowest and the highest seed."""
    form = numbers.points_between if metric == COST else numbers.between

    def show(row: Any) -> str:
        ends = (getattr(row, f"{metric}_{end}", None) for end in ("min", "max"))
        is_shown = row.num_seeds > 1 and (row.cost_interpretable or metric != COST)
        return (form(*ends) if is_shown else "") or ABSENT

    return Column("over seeds", show, group=group)


def _subset_records(run: DoseRun, pooled_from: float = inf) -> Iterator[dict[str, object]]:
    """Yield a row per part, but for heat maps; clusters of `pooled_from` or more are pooled."""
    rows_by_name: dict[str, list[Mapping[str, Row]]] = {}
    for subset, rows in run.subset_rows.items():
        is_large = subset.kind == "clusters" and subset["size"] >= pooled_from
        if subset.kind != "difficulty":
            rows_by_name.setdefault(POOLED if is_large else subset.text, []).append(rows)
    for name, [rows, *more_rows] in rows_by_name.items():
        if more_rows:
            rows = {metric: _pooled([r[metric] for r in (rows, *more_rows)]) for metric in CLUSTERS}
        for task, (start, end) in PAIRS.items():
            if end in rows:
                row_by_column, interpretable = {"before": rows[start], "after": rows[end]}, None
                if task == "original task":
                    row_by_column |= {m: rows[m] for m in rows if m not in (*PROBE, *ORIGINAL)}
                    interpretable = above_chance(rows, run.interpretable)
                yield _run_record(run, row_by_column, interpretable, of=task, part=name)


def _pooled(rows: Sequence[Row]) -> Row:
    """Return the share over the clusters of all rows, weighted by their number."""
    num = sum(row.num_items or 0 for row in rows)
    # Whole numbers, but for ties; rounded, so that no rounding error makes more than there are.
    num_right = round(sum(row.value * (row.num_items or 0) for row in rows), 6)
    low, high = wilson(num_right, num)
    return replace(rows[0], value=num_right / num, ci_low=low, ci_high=high, num_items=num)


def inoculation_sentences(results: RunSet) -> str:
    """Return gain and cost of the largest doses, and whether selection lost anything."""
    largest = [line[-1] for line in dose_lines(results).values()]
    # Names have what differs: the model, the original task, the control or the split.
    remarks = {dose.series: dose.series.about.split(", ") for dose in largest}
    common = set[str].intersection(*map(set, remarks.values())) if remarks else set()
    verdicts_by_subject: dict[str, dict[str, list[str]]] = {}
    for dose in largest[:MOST]:
        series = dose.series
        differing = ", ".join(remark for remark in remarks[series] if remark not in common)
        named = f"{series.probe} ({differing})" if differing else series.probe
        for subject, verdict, name in _clauses(dose, named):
            verdicts_by_subject.setdefault(subject, {}).setdefault(verdict, []).append(name)
    sentences = []
    for subject, by_verdict in verdicts_by_subject.items():
        listed = ((verdict, numbers.listed(names)) for verdict, names in by_verdict.items())
        clauses = [f"{verdict} for {names}" for verdict, names in listed]
        sentences.append(f"{subject} {'; '.join(clauses)}.")
    if (num_more := len(largest) - MOST) > 0:
        sentences.append(f"The tables show {num_more} more.")
    return " ".join(sentences)


def _clauses(dose: Dose, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield the beginning of a sentence, its verdict, and its subject."""
    num_seeds = len(dose.runs)
    if num_seeds > 1 and not all(run.run.sides for run in dose.runs):
        reason = "have no interval, because the runs did not record a score per item,"
        yield "Means over seeds", reason, name
    else:
        verdict = verdict_of(dose.interval(PROBE[1]), dose.floor("probe"))
        yield (
            "With the most probe examples, accuracy on the probe was",
            numbers.VERDICTS[verdict],
            name,
        )
        cost = COSTS[verdict_of(dose.interval(COST), 0.0)]
        if not dose.interpretable:
            cost = f"{numbers.NOT_INTERPRETABLE}, because the model was not above chance before,"
        added = f" with {dose.replay}" if dose.replay else ""
        yield "The cost on the original task was", cost, name + added
    changes = [
        (run.selected_on("aggregate") or 0.0) - run.trajectory["aggregate"][0]
        for run in dose.runs
        if "aggregate" in run.trajectory
    ]
    # Rounded, because a sum's last bit is no loss.
    if worse := sum(round(change, 9) < 0 for change in changes):
        seeds = f"In {worse} of {num_seeds} seeds fine-tuning" if num_seeds > 1 else "Fine-tuning"
        how = "its best checkpoint, by the average of both tasks on the selection items"
        yield f"{seeds} made the model", f"worse overall ({how})", name
