"""How training on a dose went: checkpoint by checkpoint, and for each item, epoch by epoch.

Of checkpoints the scores on the selection items, by which M*_k is chosen. Of items their training
dynamics (Swayamdipta et al. 2020) and forgetting events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import chain, cycle
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pandas as pd

from probelight.metrics.aggregate import aggregate, pareto_front
from probelight.reports import figure as figures
from probelight.reports import table as tables
from probelight.reports.figure import LINES, MUTED, PAPER, Figure, Line
from probelight.reports.inoculation.figures import EXTRAS_NOTE, RING, extra_mark, extra_marks
from probelight.reports.inoculation.runs import (
    SELECTION,
    Dose,
    Series,
    dose_lines,
    drawn_series,
    every_dose,
    series_by_path,
    with_controls,
)
from probelight.reports.numbers import count, dotted, in_words, rate, replayed
from probelight.reports.table import Column, Table, number, share, table, text, whole
from probelight.results.frames import results_frame
from probelight.results.load import Run, RunSet, UnreadableResultError
from probelight.results.predictions import DOSE, read_item_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = [*Series._fields, "dose"]
CHOICE = [*PANEL, "seed"]  # what one M*_k is chosen for: the checkpoints compared share it
CHECKPOINT = [*CHOICE, "extra", "learning_rate", "epoch"]
SCORES = ["probe_accuracy", "original_accuracy"]
# Seeds differ by colour and dash, add-some by the mark.
SEEDS = (*LINES, Line(MUTED, (0, (9, 3))))
SETS = {DOSE: "dose", "probe": "probe, selection", "original": "original task, selection"}
MEANS = ("confidence", "variability", "correctness", "forgotten_share", "forgetting_events")
LEAST_EPOCHS = 2  # with one epoch nothing varies
DATA_MAP = "data_map"  # the protocol of imported tables of items
CORRECT = ("right in no epoch", "in some epochs", "in all epochs")


@lru_cache(maxsize=2)
def candidates(results: RunSet) -> pd.DataFrame:
    """Return a row for each checkpoint (a setting after an epoch), sorted by `CHOICE`.

    `aggregate` is the average that decides; `on_front`: no other checkpoint of the choice is better
    on both tasks; `chosen`: it is M*_k; `_settings` and `_checkpoints` count the candidates.
    """
    rows = results_frame(results)
    rows = rows[
        rows.protocol.isin(["inoculation", "inoculation_cell"])
        & (rows.split == SELECTION)
        & (rows.subset == "")
        & (rows.epoch > 0)  # 0 is the model before inoculation
        & rows.dose.notna()
        & rows.learning_rate.notna()
    ]
    series = [series_by_path(results)[path] for path in rows.path]
    names = pd.DataFrame(series, rows.index, [*Series._fields])
    rows = rows.assign(
        **names,
        seed=rows.seed.fillna(0),
        extra=rows.extra.replace("", "none"),
        _about=[line.about for line in series],
    )
    identity = ["protocol", "run", "_about", *CHECKPOINT]
    scores = rows.drop_duplicates([*identity, "metric"], keep="last")
    scores = scores.pivot(index=identity, columns="metric", values="value").reindex(columns=SCORES)
    # What a sweep chose repeats the scores of its setting, which are before it.
    scores = scores.dropna().reset_index().sort_values("protocol", ascending=False, kind="stable")
    scores = scores.drop_duplicates(CHECKPOINT).sort_values(CHECKPOINT, ignore_index=True)
    scores["aggregate"] = aggregate(scores.probe_accuracy, scores.original_accuracy)
    scores = scores.assign(on_front=False, _settings=0, _checkpoints=0)
    for _, choice in scores.groupby(CHOICE):
        front = pareto_front([*zip(choice.original_accuracy, choice.probe_accuracy, strict=True)])
        scores.loc[choice.index[front], "on_front"] = True
        num_settings = len(choice.drop_duplicates(["extra", "learning_rate"]))
        scores.loc[choice.index, ["_settings", "_checkpoints"]] = num_settings, len(choice)
    chosen = {
        (*run.series, run.dose, run.seed or 0, run.extra, run.learning_rate, run.epoch)
        for run in with_controls(results)
        if run.chosen
    }
    keys = scores[CHECKPOINT].itertuples(index=False, name=None)
    return scores.assign(chosen=[key in chosen for key in keys])


def pareto_table(results: RunSet) -> Table | None:
    """Make the table of each choice's front; the csv file has all checkpoints."""
    checkpoints = candidates(results)
    checkpoints = checkpoints[checkpoints._settings > 1]
    if checkpoints.empty:
        return None
    on_front = checkpoints[checkpoints.on_front]
    front = on_front.sort_values([*CHOICE, "original_accuracy", "probe_accuracy"])
    return table(
        "pareto",
        "The Pareto front",
        "For each k and seed, the checkpoints that no other checkpoint beats on both tasks, by "
        "accuracy on the selection items, sorted by the original task. M*_k has the best average "
        "of both. The last column counts all checkpoints (settings and epochs); the csv file "
        "lists them.",
        checkpoints,
        [
            text("probe", "probe", "_about"),
            whole("k", "dose"),
            number("seed", "seed", str),
            text("setting", "_rate", "_extra"),
            whole("epoch", "epoch"),
            share("probe %", "probe_accuracy"),
            share("original task %", "original_accuracy"),
            share("average %", "aggregate"),
            Column("", lambda row: "M*" if row.chosen else "", "left"),
            whole("checkpoints", "_checkpoints"),
        ],
        visible=front.assign(
            _rate="rate " + front.learning_rate.map(rate), _extra=front.extra.map(replayed)
        ),
        csv=" ".join(
            name
            for name in (*CHECKPOINT, *SCORES, "aggregate", "on_front", "chosen")
            if name != "keeping" or any(checkpoints.keeping)
        ),
    )


@figures.styled()
def pareto_figure(results: RunSet) -> Figure | None:
    """Draw probe against original-task accuracy of every checkpoint, one panel per dose."""
    order = list(dict.fromkeys(["probe", "original_task", *PANEL]))
    panels = [panel for _, panel in candidates(results).groupby(order)]
    drawn = drawn_series(map(_series_of, panels))
    panels = [p for p in panels if p._settings.max() > 1 and _series_of(p) in drawn]
    if not panels:
        return None
    starts = {
        run.series: run.trajectory.get("original_accuracy", {}).get(0)
        for run in with_controls(results)
    }
    visible = panels[: figures.MAX_PANELS]
    plotted = pd.concat(visible)
    # A seed looks the same in every panel, whichever seeds the panel has.
    seeds = dict(zip(sorted({*plotted.seed}), cycle(SEEDS), strict=False))
    canvas, axes = figures.panels(len(visible), height=3.1, shared=False)
    for axis, panel in zip(axes, visible, strict=True):
        series = _series_of(panel)
        _draw_panel(axis, panel, series, starts.get(series), seeds)
    marks = extra_marks({*plotted.extra})
    if len(seeds) > 1:
        marks |= {f"seed {seed}": replace(look, marker="") for seed, look in seeds.items()}
    figures.legend(canvas, {**marks, "M*": RING})
    return figures.drawn(
        "pareto",
        "Every checkpoint that could have been chosen",
        "Each mark is one setting after one epoch, scored on the selection items. Filled marks, "
        "joined by a stepped line per seed, are checkpoints that no other one of the seed beats on "
        "both tasks. The ring is M*, the best average; on the thin line through it averages are "
        "equal. The dotted line is the original task before inoculation: marks left of it lost "
        "accuracy. A number counts marks at the same place. "
        f"{EXTRAS_NOTE} Each panel has its own axes."
        + figures.left_out(len(panels), figures.MAX_PANELS),
        canvas,
    )


def _series_of(panel: pd.DataFrame) -> Series:
    return Series(*panel[[*Series._fields]].iloc[0])


def _draw_panel(
    axis: Axes, panel: pd.DataFrame, series: Series, start: float | None, seeds: dict[int, Line]
) -> None:
    probe = in_words(series.probe)
    figures.head(
        axis, f"{probe}, k = {count(panel.dose.iloc[0])}", dotted(series.model, series.remarks)
    )
    axis.set_xlabel(f"{series.original_task or 'original task'}, accuracy %")
    axis.set_ylabel(f"{probe}, accuracy %")
    axis.margins(0.08)
    if start is not None:
        axis.axvline(100 * start, color=MUTED, linewidth=1.0, dashes=(1, 2), zorder=1)
    panel = panel.assign(x=100 * panel.original_accuracy, y=100 * panel.probe_accuracy)
    for seed, seed_rows in panel.groupby("seed"):
        look = replace(seeds[seed], marker="", width=1.2)
        stairs = seed_rows[seed_rows.on_front].sort_values(["x", "y"], ascending=[True, False])
        axis.plot(stairs.x, stairs.y, **look.style, drawstyle="steps-pre", zorder=2)
        for (extra, on_front), marks in seed_rows.groupby(["extra", "on_front"]):
            look = replace(look, dash="none", marker=extra_mark(extra))
            if on_front:
                axis.plot(marks.x, marks.y, **look.style, zorder=4)
            else:
                beaten = replace(look, face=PAPER, size=3.8)
                axis.plot(marks.x, marks.y, **beaten.style, alpha=0.6, zorder=3)
    for chosen in panel[panel.chosen].itertuples():
        axis.axline((chosen.x, chosen.y), slope=-1, color=MUTED, linewidth=0.6, zorder=1)
        axis.plot([chosen.x], [chosen.y], **RING.style, zorder=5)
    # How many checkpoints are on a point of a front.
    for (x, y), marks in panel.groupby([panel.x.round(7), panel.y.round(7)]):
        if len(marks) > 1 and marks.on_front.any():
            axis.annotate(
                str(len(marks)), (x, y), xytext=(6, 5), textcoords="offset points", fontsize=7,
                zorder=6,
            )  # fmt: skip


def dynamics_table(results: RunSet) -> Table | None:
    """Make the table of the means over the items that the training looked at after each epoch."""
    return tables.table(
        "dynamics",
        "Training dynamics, epoch by epoch",
        "How items change from epoch to epoch; means over seeds. Confidence: the probability of a "
        "dose item's right answer, averaged over epochs; variability: its standard deviation; "
        "correct: the share of epochs in which it is right (Swayamdipta et al. 2020). Forgotten: "
        "items that turned from right to wrong at least once; events: how often this happened per "
        "item (Toneva et al. 2019). Selection items are scored before training too. Of a large "
        "dose only the first items are scored, as many as make an epoch a tenth longer.",
        [
            *(row for dose in every_dose(results) for row in _dynamics_records(dose)),
            *map(_imported_record, results.of(DATA_MAP)),
        ],
        [
            text("items", "items", "_about"),
            whole("k", "dose"),
            whole("epochs", "epochs"),
            whole("n", "num_items"),
            tables.share("confidence %", "confidence"),
            tables.share("variability", "variability"),
            tables.share("correct %", "correctness"),
            tables.share("forgotten %", "forgotten_share"),
            tables.number("events", "forgetting_events", "{:.2f}".format),
        ],
    )


def _dynamics_records(dose: Dose) -> Iterator[dict[str, Any]]:
    epochs = max(len(run.trajectory.get("aggregate", {})) - 1 for run in dose.runs)
    for name, label in SETS.items():
        # Those of the dose are measured on no split of the probe, others on the selection items.
        rows_by_metric = [
            {
                metric: row
                for metric in MEANS
                for row in run.run.rows
                if row.metric == f"{name}_{metric}" and row.split in (DOSE, "selection")
            }
            for run in dose.runs
        ]
        if not all(rows_by_metric):
            continue
        yield {
            **dose.series.columns,
            "items": label,
            "dose": dose.dose,
            "epochs": epochs,
            "num_items": next(iter(rows_by_metric[0].values())).num_items,
            **{
                metric: fmean(rows[metric].value for rows in rows_by_metric)
                for metric in MEANS
                if all(metric in rows for rows in rows_by_metric)
            },
            "_about": dose.series.about,
            "_runs": [run.run.key for run in dose.runs],
        }


def _imported_record(run: Run) -> dict[str, Any]:
    means = {row.metric.removeprefix(f"{DOSE}_"): row.value for row in run.rows}
    num_items = run.rows[0].num_items
    return {"probe": run.probe, "items": run.probe, "num_items": num_items, **means} | {
        "_about": f"{run.model}, imported", "_runs": [run.key]
    }  # fmt: skip


@lru_cache(maxsize=2)
def dose_items(results: RunSet) -> pd.DataFrame:
    """Return a row for each dose item of the chosen runs that trained for several epochs.

    Items of imported data maps are among them, without a dose.
    """
    rows = []
    doses = [
        (run.run, run.series, run.dose)
        for dose in chain(*dose_lines(results).values())
        for run in dose.runs
        if len(run.trajectory.get("aggregate", {})) - 1 >= LEAST_EPOCHS
    ]
    imported = ((run, series_by_path(results)[run.path], 0) for run in results.of(DATA_MAP))
    for run, series, dose in [*doses, *imported]:
        try:
            item_lines = read_item_lines(results, run)
        except UnreadableResultError:
            continue  # the section of all items says so
        rows += [
            (series, dose, line.confidence, line.variability, line.correctness)
            for line in item_lines
            if line.set == DOSE and line.confidence is not None
        ]
    columns = ["series", "dose", "confidence", "variability", "correctness"]
    return pd.DataFrame(rows, columns=columns)


def data_map_figure(results: RunSet) -> Figure | None:
    """Draw confidence against variability of each dose item, one panel per dose or file."""
    items = dose_items(results)
    if items.empty:
        return None
    looks = {
        CORRECT[0]: figures.Line(figures.ORANGE, "none", "x", size=3.6),
        CORRECT[1]: figures.Line(figures.PURPLE, "none", "s", figures.PAPER, size=3.2),
        CORRECT[2]: figures.Line(figures.BLUE, "none", "o", size=2.8),
    }
    panels = [*items.groupby(["series", "dose"], sort=False)]
    visible = panels[: figures.MAX_PANELS]
    with figures.styled():
        canvas, axes = figures.panels(len(visible), height=3.0)
        for axis, ((series, dose), panel) in zip(axes, visible, strict=True):
            title = f"{in_words(series.probe)}{f', k = {count(dose)}' if dose else ', imported'}"
            figures.head(axis, title, series.about)
            when = panel.correctness.map(lambda c: CORRECT[0 if c == 0 else 2 if c == 1 else 1])
            for label, look in looks.items():
                marked = panel[when == label]
                style = {**look.style, "alpha": 0.75, "markeredgewidth": 0.8}
                axis.plot(100 * marked.variability, 100 * marked.confidence, **style)
            axis.set_xlim(-1, 51)
            axis.set_ylim(-2, 102)
            axis.set_xlabel("variability, percentage points")
            axis.set_ylabel("confidence %")
        figures.legend(canvas, looks)
        return figures.drawn(
            "data_map",
            "How the model learned the dose",
            "Each mark is an item of the dose (all seeds), scored in eval mode after each epoch: "
            "the mean probability of its right answer over epochs against its standard deviation "
            "(Swayamdipta et al. 2020). Top left: learned at once; bottom left: not learned; "
            "right: in between."
            + (" Imported numbers are as in their files." if results.of(DATA_MAP) else "")
            + figures.left_out(len(panels), figures.MAX_PANELS),
            canvas,
        )
