"""The tables of the original task and of its inoculation, and what they do not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from probelight.metrics.intervals import wilson
from probelight.reports import words
from probelight.reports.estimates import VERDICTS, verdict_of
from probelight.reports.inoculation.doses import UNTOUCHED, Dose, doses
from probelight.reports.inoculation.runs import Inoculation, above_chance, with_controls
from probelight.reports.table import (
    Cell,
    Column,
    Table,
    accuracy,
    framed,
    gap,
    size,
    table,
    text,
    whole,
)
from probelight.reports.words import ABSENT, INTERVAL, NOT_INTERPRETABLE, percent
from probelight.results.frames import results_frame
from probelight.results.load import Results
from probelight.results.row import Row, Subset

PROBE = ("probe_accuracy_before", "probe_accuracy")
ORIGINAL = ("original_accuracy_before", "original_accuracy_after")
CLUSTERS = ("strict_cluster_accuracy_before", "strict_cluster_accuracy")
WHOLES = {"probe": PROBE, "original task": ORIGINAL, "whole clusters": CLUSTERS}
BOTH = ("aggregate_above_chance", "aggregate")
COST = "inoculation_cost"
POOLED_FROM = 5  # larger clusters are few, so a row of their own would say nothing
POOLED = f"clusters of {POOLED_FROM} or more"
WHAT = text("probe", "probe", "_about")
SETTING = text("setting", "_setting", "_among")
AVERAGE = "aggregate"
COSTS = LOST, NONE, GAINED, UNREAD, UNKNOWN = (  # verdicts on it
    "above none",
    "not distinguishable from none",
    "below none, a gain,",
    f"{NOT_INTERPRETABLE}, as the model was not above chance before,",
    "without an interval",
)
MOST = 6  # names in a clause of the paragraph


def original_table(results: Results) -> Table | None:
    """Make the table of the accuracy of the original-task models."""
    rows = results_frame(results)
    is_shown = (rows.protocol == "original") & (rows.metric == "accuracy")
    found = rows[is_shown & (rows.split != "selection")]
    return table(
        "original_task",
        "The original task, before inoculation",
        f"{INTERVAL}.",
        found.rename(columns={"probe": "task", "value": "accuracy"}).assign(_runs=found.run),
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


def inoculation_table(results: Results) -> Table | None:
    """Make the table of each run: both scores before and after, their average, and the cost."""
    return table(
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
        [
            {**_setting(c), "cost_interpretable": c.interpretable, **_measured(c.measured)}
            for c in with_controls(results)
        ],
        [
            WHAT,
            whole("k", "dose"),
            SETTING,
            *_before_and_after("probe"),
            *_before_and_after("original task"),
            Column("average %", _average),
            cost("cost, points"),
            Column("lost / gained", _flips),
            *_before_and_after("whole clusters"),
        ],
    )


def seeds_table(results: Results) -> Table | None:
    """Make the table of M*_k averaged over seeds; None where every dose has one seed."""
    lines = [dose for line in doses(with_controls(results)).values() for dose in line]
    if all(len(dose.runs) == 1 for dose in lines):
        return None
    records = [_means(dose) for dose in lines]
    untouched = [f"{metric}_{UNTOUCHED.text.replace(' ', '_')}" for metric in PROBE]
    note = (
        f" {UNTOUCHED.text.capitalize()}: the probe items that have no relative in the train "
        "file, where every seed was measured on them."
    )
    has_untouched = any(untouched[1] in record for record in records)
    return table(
        "inoculation_seeds",
        "Inoculation, mean over seeds",
        "For each seed the setting and checkpoint with the best average on the selection splits; "
        f"all seeds are in the mean. {INTERVAL}, over groups of items and over seeds (none where a "
        "run of several seeds did not record what each item counted); over seeds: the lowest and "
        "the highest seed. Above chance: the average of the scores rescaled so that chance is 0 "
        "and perfection 100. Whole clusters: groups of questions about one concept with every one "
        f"right.{note if has_untouched else ''}",
        records,
        [
            WHAT,
            whole("k", "dose"),
            whole("seeds", "num_seeds"),
            *_over_seeds("probe %", PROBE),
            *_over_seeds("original task %", ORIGINAL),
            cost("mean", group="cost, points"),
            Column("over seeds", _cost_spread, group="cost, points"),
            *_over_seeds("both %", BOTH, ("above chance", "average")),
            *_over_seeds("whole clusters %", CLUSTERS),
            *_over_seeds(f"probe, {UNTOUCHED.text} %", untouched)[:-1],
        ],
    )


def inoculation_parts_table(results: Results) -> Table | None:
    """Make the table of parts of the probe and each data set of the original task."""
    cells = with_controls(results)
    return table(
        "inoculation_parts",
        "Inoculation, part by part",
        f"{INTERVAL}. Parts are named by the runs: data sets of the original task, items without "
        "a relative in the training files, and groups of as many questions about one "
        f"concept, with every one right (those of {POOLED_FROM} and more together; the csv file "
        "has each size). The cost of a data set is read if it was above its own chance before.",
        [record for cell in cells for record in _part_records(cell)],
        [
            WHAT,
            whole("k", "dose"),
            SETTING,
            text("of", "of"),
            text("part", "part"),
            accuracy("before %", bounds("before")),
            accuracy("after %", bounds("after")),
            size(),
            cost("cost, points"),
        ],
        shown=framed(record for cell in cells for record in _shown_parts(cell)),
    )


def bounds(name: str) -> str:
    """Return the names of the columns with a number and its interval."""
    return f"{name} {name}_ci_low {name}_ci_high"


def cost(label: str, name: str = COST, *, group: str = "") -> Column:
    """Make a column of costs with their intervals; it says where `cost_interpretable` is false."""
    column = gap(label, bounds(name))

    def show(row: Any) -> Cell | str:
        return NOT_INTERPRETABLE if row.cost_interpretable is False else column.show(row)

    return Column(label, show, group=group)


def _setting(cell: Inoculation) -> dict[str, object]:
    """Return what identifies a run, for the csv file and for people."""
    epoch = "" if cell.epoch is None else f", epoch {cell.epoch}"
    seed = "" if cell.seed is None else f", seed {cell.seed}"
    best = f", best of {cell.num_settings}" if cell.num_settings > 1 else ""
    return {
        **cell.series._asdict(),
        "dose": cell.dose,
        "extra": cell.extra,
        "learning_rate": cell.learning_rate,
        "num_settings": cell.num_settings,
        "seed": cell.seed,
        "epoch": cell.epoch,
        "chosen": cell.chosen,
        "_about": cell.series.about,
        "_setting": f"rate {words.rate(cell.learning_rate)}{epoch}{'' if cell.chosen else ' †'}",
        "_among": f"extra {cell.extra}{seed}{best}",
        "_runs": cell.run.key,
    }


def _measured(rows: Mapping[str, Row]) -> dict[str, object]:
    record: dict[str, object] = {}
    for metric, row in rows.items():
        record[metric] = row.value
        if row.ci_low is not None or row.ci_high is not None:
            record |= {f"{metric}_ci_low": row.ci_low, f"{metric}_ci_high": row.ci_high}
        if row.num_items is not None:
            record[f"{metric}_num_items"] = row.num_items
    return record


def _before_and_after(whole_name: str) -> list[Column]:
    before, after = WHOLES[whole_name]
    group = f"{whole_name} %"
    return [
        accuracy("before", bounds(before), group=group),
        accuracy("after", bounds(after), group=group),
        whole("n", f"{after}_num_items", group=group),
    ]


def _average(row: Any) -> Cell:
    """Return the average and, below it, that of both scores rescaled to 0 at chance."""
    average, above = (getattr(row, name, None) for name in reversed(BOTH))
    return Cell(percent(average), "" if above is None else f"{percent(above)} above chance")


def _flips(row: Any) -> Cell:
    found = [getattr(row, f"mcnemar_{name}", None) for name in ("lost", "gained", "p")]
    lost, gained, p = found
    if lost is None or gained is None:
        return Cell(ABSENT)
    # Whole items, but where ties flipped in part.
    flips = [f"{n:,.0f}" if n == round(n) else f"{n:,.1f}" for n in (lost, gained)]
    return Cell(" / ".join(flips), f"p {words.probability(p)}")


def _means(dose: Dose) -> dict[str, object]:
    metrics = (*PROBE, *ORIGINAL, *BOTH, *CLUSTERS, COST)
    record: dict[str, object] = {
        **dose.series._asdict(),
        "dose": dose.dose,
        "num_seeds": len(dose.runs),
        "cost_interpretable": dose.interpretable,
        "_about": dose.series.about,
        "_runs": [run.run.key for run in dose.runs],
        "_spread": {metric: dose.spread(metric) or (None, None) for metric in metrics},
    }
    for metric in metrics:
        values, (low, high) = dose.values(metric), dose.interval(metric)
        record[metric] = dose.mean(metric)
        if low is not None:
            record |= {f"{metric}_ci_low": low, f"{metric}_ci_high": high}
        if values:
            record |= {f"{metric}_min": min(values), f"{metric}_max": max(values)}
            record |= {f"{metric}_median": median(values)}
    for metric in PROBE:
        name = f"{metric}_{UNTOUCHED.text.replace(' ', '_')}"
        if mean := dose.untouched.estimate(metric):
            record |= {name: mean.value, f"{name}_ci_low": mean.ci_low}
            record |= {f"{name}_ci_high": mean.ci_high}
    return record


def _over_seeds(
    group: str, metrics: Sequence[str], labels: Sequence[str] = ("before", "after")
) -> list[Column]:
    """Return columns of means and of the spread of the last one."""
    last = metrics[-1]

    def spread(row: Any) -> str:
        return words.between(*row._spread[last]) or ABSENT

    return [
        *(
            accuracy(label, bounds(m), group=group)
            for label, m in zip(labels, metrics, strict=True)
        ),
        Column("over seeds", spread, group=group),
    ]


def _cost_spread(row: Any) -> str:
    return words.points_between(*row._spread[COST]) * row.cost_interpretable or ABSENT


def _parts(cell: Inoculation) -> Iterator[tuple[Subset, Mapping[str, Row]]]:
    """Return the parts of a run, without those of the heat maps."""
    return ((part, rows) for part, rows in cell.parts.items() if part.kind != "difficulty")


def _part_records(cell: Inoculation) -> Iterator[dict[str, object]]:
    for part, rows in _parts(cell):
        has_cost = ORIGINAL[1] in rows
        yield {
            **_setting(cell),
            "part": part.text,
            "cost_interpretable": above_chance(rows, cell.interpretable) if has_cost else None,
            **_measured(rows),
        }


def _shown_parts(cell: Inoculation) -> Iterator[dict[str, object]]:
    """Yield a row for each part and what it is a part of, with large clusters put together."""
    by_name: dict[str, list[Mapping[str, Row]]] = {}
    for part, rows in _parts(cell):
        is_large = part.kind == "clusters" and part["size"] >= POOLED_FROM
        by_name.setdefault(POOLED if is_large else part.text, []).append(rows)
    for name, parts in by_name.items():
        for of, metrics in WHOLES.items():
            found = {
                label: _pooled([rows[metric] for rows in parts if metric in rows])
                for label, metric in zip(("before", "after", COST), (*metrics, COST), strict=True)
            }
            after = found["after"]
            if after is None:
                continue
            if of != "original task":
                found[COST] = None
            readable = above_chance(parts[0], cell.interpretable) if found[COST] else None
            yield {
                **_setting(cell),
                "of": of,
                "part": name,
                "cost_interpretable": readable,
                **_measured({label: row for label, row in found.items() if row}),
                "num_items": after.num_items,
                "num_groups": after.num_groups,
            }


def _pooled(rows: Sequence[Row]) -> Row | None:
    """Return the share over the clusters of all rows, from the numbers of clusters."""
    if len(rows) < 2:
        return rows[0] if rows else None
    number = sum(row.num_items or 0 for row in rows)
    if not all(row.num_items for row in rows):
        return None
    # Whole numbers, but for ties; rounded, so that no rounding error makes more than there are.
    right = round(sum(row.value * (row.num_items or 0) for row in rows), 6)
    low, high = wilson(right, number)
    return replace(rows[0], value=right / number, ci_low=low, ci_high=high, num_items=number)


def summary(results: Results) -> str:
    """Return by verdict what the largest doses gave and cost, and what to know of checkpoints."""
    gave: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS.values()}
    taken: dict[str, list[str]] = {verdict: [] for verdict in COSTS}
    unrecorded, worse = [], []
    for series, line in doses(with_controls(results)).items():
        dose = line[-1]
        name = f"{series.probe} ({series.about})"
        gave[VERDICTS[verdict_of(dose.interval(PROBE[1]), dose.floor("probe"))]].append(name)
        if dose.mean(COST) is not None:
            verdict = _cost_verdict(dose)
            taken[verdict].append(name + (_extras(dose) if verdict == GAINED else ""))
        if not dose.recorded:
            unrecorded.append(name)
        # Rounded, because a sum's last bit is no loss.
        scores = [
            (run.trajectory.get(AVERAGE, {}).get(0), run.selected_on(AVERAGE)) for run in dose.runs
        ]
        below = sum(
            start is not None and chosen is not None and round(chosen, 9) < round(start, 9)
            for start, chosen in scores
        )
        if below:
            worse.append(name + _share(below, dose))
    sentences = [
        ("With the largest k, accuracy on the probe was ", _clauses(gave)),
        ("The cost on the original task was ", _clauses(taken)),
        (
            "Means over seeds have no interval, because runs did not record what each item "
            "counted, for ",
            _listed(unrecorded),
        ),
        (
            "On the selection items the chosen checkpoint's average of both tasks was below that "
            "of the model before inoculation for ",
            _listed(worse),
        ),
    ]
    return " ".join(f"{start}{end}." for start, end in sentences if end)


def _clauses(by_verdict: Mapping[str, list[str]]) -> str:
    return "; ".join(
        f"{words} for {_listed(names)}" for words, names in by_verdict.items() if names
    )


def _listed(names: list[str]) -> str:
    rest = len(names) - MOST
    shown = [*names[:MOST], f"{rest} more"] if rest > 0 else names
    return words.listed(shown) if shown else ""


def _cost_verdict(dose: Dose) -> str:
    low, high = dose.interval(COST)
    if not dose.interpretable:
        return UNREAD
    if low is None or high is None:
        return UNKNOWN
    return LOST if low > 0 else GAINED if high < 0 else NONE


def _extras(dose: Dose) -> str:
    """Return which settings added original-task examples; empty where none did."""
    chosen = Counter(run.extra for run in dose.runs if run.extra != "none")
    extras = [f"extra {extra}{_share(chosen[extra], dose)}" for extra in sorted(chosen)]
    return f", with original-task examples added ({', '.join(extras)})" if extras else ""


def _share(number: int, dose: Dose) -> str:
    return "" if number == len(dose.runs) else f" in {number} of {len(dose.runs)} seeds"
