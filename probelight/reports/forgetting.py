"""What was lost and gained, item by item: in each inoculation, and between two measurements.

Of an inoculation also for each class of how well the model knew the items before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from probelight.metrics.comparisons import Runs
from probelight.metrics.forgetting import MEANS
from probelight.metrics.intervals import LEAST_GROUPS, runs_interval
from probelight.metrics.knowledge import CLASSES
from probelight.metrics.verdicts import MARGIN
from probelight.reports import table as tables
from probelight.reports import verdicts
from probelight.reports.figure import Figure
from probelight.reports.inoculation.runs import (
    Dose,
    DoseRun,
    every_dose,
    with_and_without_replay,
    with_controls,
)
from probelight.reports.numbers import ABSENT, Estimate, count, dotted, missing, named, with_ends
from probelight.reports.table import Cell, Column, Table, text, whole
from probelight.reports.zero_shot.consistency import CLASS_NOTE
from probelight.results.details import ForgettingDetails, InoculationDetails
from probelight.results.frames import source_of
from probelight.results.hits import OTHER, Side
from probelight.results.load import RunSet, UnreadableResultError
from probelight.results.measured import change_rows
from probelight.results.pairs import Pair
from probelight.results.predictions import read_item_lines
from probelight.results.row import Row

COUNTS = (
    *("lost", "gained", "guessing", "smallest_forgetting", "smallest_loss"),
    *("loss_bound", "net_loss_p", "changed_p"),
)
ACCURACIES = ("accuracy_before", "accuracy", "margin_change")
ADJUSTED = {
    "lost": "adjusted_forgetting",
    "lost at least": "least_forgetting",
    "gained": "adjusted_transfer",
}
ELSEWHERE = "another set"  # than the probe and the original task of an inoculation
MOST_CONCEPTS = 8
MOST_LOST = 10  # of a set
MOST_SENTENCES = 4
ASSUMED = (
    "By guessing: what would be lost, and gained, if every item were known or guessed evenly among "
    "its choices, independently before and after (Harmon et al. 2026). Adjusted: minus that share, "
    "and never cut off at 0. If a model repeats its guesses, adjusted numbers are too low, even "
    "below 0. At least: minus the most that a model could lose by guessing the same items both "
    "times."
)
OF_CLASS = {
    "before": "probe_accuracy_before",
    "after": "probe_accuracy",
    "forgetting": "probe_forgetting",
    "transfer": "probe_transfer",
    "gain": "probe_net_loss",
}


@lru_cache(maxsize=2)
def changed(results: RunSet) -> pd.DataFrame:
    """Return a row for each set of items and what was measured after, over all of its seeds."""
    by_extra = {
        (dose.series, dose.dose): list(extras.values())
        for extras in with_and_without_replay(results)
        for dose in list(extras.values())[:1]
    }
    doses = [
        of_extra
        for dose in every_dose(results)
        for of_extra in by_extra.get((dose.series, dose.dose), [dose])
    ]
    rows = [row for dose in doses for row in _dose_records(dose)]
    for run in results.runs:
        if details := run.detail(ForgettingDetails):
            family = str(Path(run.path).parent)
            rows.append({**_pair_record(run.rows, details), "_family": family, "_runs": run.key})
    return verdicts.judged(tables.framed(rows))


def verdicts_on(pairs: Sequence[Pair], margin: float) -> pd.DataFrame:
    """Return the rows of `changed` for pairs that are judged together, without their folder."""
    records = [
        _pair_record(
            pair.rows,
            ForgettingDetails(
                before=pair.name_before, num_seeds=len(pair.scores_after), margin=margin
            ),
        )
        for pair in pairs
    ]
    return verdicts.judged(tables.framed({**record, "_family": ""} for record in records))


def _pair_record(rows: Sequence[Row], details: ForgettingDetails) -> dict[str, Any]:
    first = rows[0]
    return {
        "set": first.probe,
        "of": "",
        "model": first.model,
        "control": "",
        "before": details.before,
        "dose": None,
        "extra": "",
        "num_seeds": details.num_seeds,
        **change_columns(rows),
        "margin": details.margin,
        "split": first.split,
        "_after": first.model,
        "_about": dotted(first.split, f"before: {details.before}" if details.before else ""),
    }


def _dose_records(dose: Dose) -> Iterator[dict[str, Any]]:
    sides_by_run = [run.run.sides for run in dose.runs]
    for task in sides_by_run[0]:
        sides = [run_sides[task] for run_sides in sides_by_run if task in run_sides]
        item_sets = {(side.items, side.groups, side.choices) for side in sides}
        if len(sides) < len(sides_by_run) or len(item_sets) > 1 or not sides[0].choices:
            continue  # of other items, or of runs from before choices were recorded
        old, new = (
            {run.seed or 0: pd.Series(side.scores[time]).to_numpy(float)
             for run, side in zip(dose.runs, sides, strict=True)}
            for time in ("before", "after")
        )  # fmt: skip
        details = dose.runs[0].run.detail(InoculationDetails) or InoculationDetails()
        names = {"probe": dose.series.probe, "original": details.original_task}
        # The split is the probe's.
        series = dose.series if task == "probe" else dose.series._replace(report_split="")
        extras = ", ".join(sorted({run.extra for run in dose.runs} - {"none"}))
        keeping = dose.series.keeping
        kinds = {"probe": "probe", "original": "original task"}
        yield {
            "set": names.get(task, task.removeprefix(OTHER)),
            "of": kinds.get(task, ELSEWHERE),
            "model": dose.series.model,
            "control": dose.series.control,
            "before": "before inoculation",
            "dose": dose.dose,
            "extra": extras,
            **({"keeping": keeping} if keeping else {}),
            "num_seeds": len(dose.runs),
            **change_columns(_rows_of(old, new, sides[0])),
            "margin": MARGIN,
            "split": "",
            # A control is a claim of its own: that nothing is learned from what is left.
            "_family": (str(Path(dose.runs[0].run.path).parent), dose.series.control),
            "_after": ", ".join(filter(None, (f"k = {count(dose.dose)}", dose.replay, keeping))),
            "_about": dotted(kinds.get(task, ELSEWHERE), series.about),
            "_runs": [run.run.key for run in dose.runs],
        }


def _rows_of(old: Runs, new: Runs, side: Side) -> list[Row]:
    """Return the accuracies before and after by seed, and what was lost and gained."""
    accuracies = {"accuracy_before": old, "accuracy": new}
    rows = [
        Row(metric=name, value=value, ci_low=low, ci_high=high)
        for name, runs in accuracies.items()
        for value, low, high in [runs_interval(runs, side.groups)]
    ]
    return rows + change_rows(old, new, side.choices, side.groups, Row())


def change_columns(rows: Iterable[Row]) -> dict[str, Any]:
    """Return the columns of both accuracies, and of the items lost and gained."""
    by_metric = {row.metric: row for row in rows}
    first = by_metric["forgetting"]
    record: dict[str, Any] = {"num_items": first.num_items, "num_groups": first.num_groups}
    for name in COUNTS:
        record[name] = by_metric[name].value if name in by_metric else None
    for name in (*ACCURACIES, *MEANS):
        record |= named(name, Estimate.of(by_metric[name]) if name in by_metric else None)
    return record


def changes_table(results: RunSet) -> Table | None:
    """Make the table of items lost and gained, with and without what guessing explains."""
    rows = changed(results)
    if rows.empty:
        return None
    return tables.table(
        "forgetting",
        "Lost and gained, item by item",
        "Lost: items that were right before and are wrong after. Gained: the other way round. Both "
        "are means over seeds; p is that of the loss of accuracy, and is below 0.05 exactly if the "
        "interval of this loss excludes 0 (the csv file also has McNemar's exact test, changed_p). "
        f"{ASSUMED} Intervals cover groups and seeds, and need at least {LEAST_GROUPS} groups. "
        "Right − best wrong, nats: how far the score of the right answer is above the best other "
        f"one, after minus before; it moves before the accuracy does. {verdicts.RULES}",
        rows,
        [
            text("items of", "set", "_about"),
            text("after", "_after"),
            text("verdict", "verdict", "reason"),
            whole("seeds", "num_seeds"),
            tables.size(),
            Column("lost / gained", _flips),
            tables.gap("loss", "net_loss", group="accuracy, points"),
            tables.gap("above chance before", "above_chance", group="accuracy, points"),
            tables.accuracy("lost", "forgetting", group="% of the items"),
            tables.share("by guessing", "guessing", group="% of the items"),
            *(
                tables.gap(label, name, group="adjusted, points", below="fewer than by guessing")
                for label, name in ADJUSTED.items()
            ),
            Column("right − best wrong, nats", _margin),
        ],
    )


def _margin(row: Any) -> Cell:
    numbers = [getattr(row, name, None) for name in with_ends("margin_change")]
    if missing(numbers[0]):
        return Cell(ABSENT)
    texts = [f"{number:+.2f}".replace("-", "−") for number in numbers if not missing(number)]
    return Cell(texts[0], " to ".join(texts[1:]))


def verdicts_figure(results: RunSet) -> Figure | None:
    """Draw the verdicts on what was measured before and after."""
    return verdicts.verdicts_figure(changed(results))


def _flips(row: Any) -> Cell:
    return tables.flips(row.lost, row.gained, row.net_loss_p)


def lost_table(results: RunSet) -> Table | None:
    """Make the table of items that were lost between two measurements; the csv file has all."""
    rows: list[dict[str, Any]] = []
    for run in results.of("forgetting"):
        try:
            lines = read_item_lines(results, run)
        except UnreadableResultError:
            continue  # the section of all items says so
        by_name = {line.name: line for line in lines if line.set.endswith("_before")}
        for line in lines:
            earlier = by_name.get(line.name)
            if line.set.endswith("_before") or earlier is None or earlier.correct <= line.correct:
                continue
            rows.append(
                {
                    "set": run.probe,
                    "after": run.model,
                    "item": line.question or line.choices[line.answer],
                    "right": line.choices[line.answer],
                    "now": ABSENT if line.prediction is None else line.choices[line.prediction],
                    "margin_before": earlier.margin,
                    "margin_after": line.margin,
                    "run": run.key,
                }
            )
    if not rows:
        return None
    frame = pd.DataFrame(rows).sort_values("margin_before", ascending=False, kind="stable")
    return tables.table(
        "lost_items",
        "Items that were lost, the surest first",
        "Right before and wrong after. Margin: the score of the right answer minus that of the "
        "best other one. The csv file has all.",
        frame,
        [
            text("items of", "set", "after"),
            tables.prose("item", "item"),
            tables.prose("right answer, given before", "right"),
            tables.prose("answer after", "now"),
            tables.number("margin before", "margin_before", "{:.2f}".format),
            tables.number("after", "margin_after", "{:.2f}".format),
        ],
        visible=frame.groupby(["set", "after"], sort=False).head(MOST_LOST),
    )


def concepts_table(results: RunSet) -> Table | None:
    """Make the table of the concepts that lost the most; the csv file has all."""
    rows: list[dict[str, Any]] = []
    chosen = {cell.run.path: cell for cell in with_controls(results) if cell.chosen}
    for run in results.runs:
        cell = chosen.get(run.path)
        if cell is None and run.protocol != "forgetting":
            continue
        try:
            lines = read_item_lines(results, run)
        except UnreadableResultError:
            continue  # the section of all items says so
        rows += [
            {
                "set": source_of(run, line),
                "after": _after(cell) if cell else run.model,
                "concept": line.group,
                "num_answers": 1,
                "lost": line.before * (1 - line.correct),
                "gained": (1 - line.before) * line.correct,
            }
            for line in lines
            if line.before is not None and line.group
        ]
    if not rows:
        return None
    names = ["set", "after", "concept"]
    losses = pd.DataFrame(rows).groupby(names, as_index=False, sort=False).sum()
    losses["forgetting"] = losses.lost / losses.num_answers
    losses["transfer"] = losses.gained / losses.num_answers
    losses = losses.sort_values(["set", "after", "lost", "gained"], ascending=[1, 1, 0, 1])
    worst = losses[losses.lost > 0].groupby(["set", "after"], sort=False).head(MOST_CONCEPTS)
    if worst.empty:
        return None
    return tables.table(
        "forgotten_concepts",
        "The concepts that lost the most",
        "For each concept, the answers of all seeds to its questions, and how many were lost and "
        "gained. The csv file has all concepts.",
        losses,
        [
            text("items of", "set"),
            text("after", "after"),
            text("concept", "concept"),
            whole("answers", "num_answers"),
            tables.number("lost", "lost", "{:,.4g}".format),
            tables.number("gained", "gained", "{:,.4g}".format),
            tables.share("lost %", "forgetting"),
        ],
        visible=worst,
    )


def _after(cell: DoseRun) -> str:
    keeping = f", {cell.series.keeping}" if cell.keeping else ""
    return f"{cell.run.model}, k = {count(cell.dose)}{keeping}"


def forgetting_summary(results: RunSet) -> str:
    """Return of each set how many items were lost and gained, and the verdict."""
    rows = changed(results)
    sentences = [verdicts.headline(rows)] if len(rows) > 1 else []
    for _, row in rows.head(MOST_SENTENCES).iterrows():
        lost, gained = _flips(row).text.split(" / ")
        kind = f" ({row.of})" if row.of else ""
        sentences.append(
            f"{row.set}{kind}, {row._after}: of {count(row.num_items)} items, {lost} were lost "
            f"and {gained} gained. Verdict: {', '.join(filter(None, (row.verdict, row.reason)))}."
        )
    if (num_more := len(rows) - MOST_SENTENCES) > 0:
        sentences.append(f"The table has {num_more} more.")
    return " ".join(sentences)


def classes_table(results: RunSet) -> Table | None:
    """Make the table of what a dose did to items of each knowledge class."""
    return tables.table(
        "knowledge_classes",
        "Does the dose teach what was weakly known, or what was unknown?",
        "The report items by how well the model knew them before the dose. Their class is decided "
        "by its answers in other phrasings than the one that is measured. "
        f"{CLASS_NOTE} k = 0: the same items in the measured phrasing before the dose. "
        "Means over seeds.",
        [record for dose in every_dose(results) for record in _class_records(dose)],
        [
            text("probe", "probe", "_about"),
            whole("k", "dose"),
            text("known before", "known"),
            whole("n", "num_items"),
            tables.share("items %", "share"),
            tables.share("guesser %", "guessed"),
            tables.share("k = 0", "before", group="accuracy %"),
            tables.share("after", "after", group="accuracy %"),
            tables.accuracy("lost", "forgetting", group="% of the class"),
            tables.accuracy("gained", "transfer", group="% of the class"),
            tables.gap("gain, points", "gain"),
        ],
    )


def _class_records(dose: Dose) -> Iterator[dict[str, Any]]:
    for class_name in CLASSES:
        metrics_by_run = [
            {metric: row for subset, rows in cell.subset_rows.items() if subset.kind == "known"
             and subset["name"] == class_name for metric, row in rows.items()}
            for cell in dose.runs
        ]  # fmt: skip
        if not all("class_share" in metrics for metrics in metrics_by_run):
            continue
        means: dict[str, float | None] = {}
        for label, metric in OF_CLASS.items():
            rows = [metrics[metric] for metrics in metrics_by_run if metric in metrics]
            mean = None
            if len(rows) == len(metrics_by_run):  # of several seeds no interval is known
                alone = len(rows) == 1
                mean = Estimate.of(rows[0]) if alone else Estimate(fmean(r.value for r in rows))
                mean = mean.negative if label == "gain" else mean
            means |= named(label, mean)
        first = metrics_by_run[0].get("probe_accuracy")
        yield {
            **dose.series.columns,
            "dose": dose.dose,
            "known": class_name,
            "num_items": first.num_items if first else 0,
            "share": metrics_by_run[0]["class_share"].value,
            "guessed": metrics_by_run[0]["class_share_guessed"].value,
            **means,
            "_about": dose.series.about,
            "_runs": [cell.run.key for cell in dose.runs],
        }
