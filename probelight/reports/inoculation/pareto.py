"""Every checkpoint that M*_k was chosen from, by its scores on the selection items."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from probelight.metrics.aggregate import aggregate, pareto_front
from probelight.reports import figure as look
from probelight.reports.figure import INK, MUTED, PAPER, Figure, Line
from probelight.reports.inoculation.figures import EXTRAS_NOTE, draw_ring, extra_mark, extra_marks
from probelight.reports.inoculation.runs import SELECTION, Series, series_of, with_controls
from probelight.reports.table import Column, Table, number, share, table, text, whole
from probelight.reports.words import count, rate
from probelight.results.frames import results_frame
from probelight.results.load import Results

PANEL = [*Series._fields, "dose"]
CHOICE = [*PANEL, "seed"]  # what one M*_k is chosen for: the checkpoints compared share it
CHECKPOINT = [*CHOICE, "extra", "learning_rate", "epoch"]
SCORES = ["probe_accuracy", "original_accuracy"]
# Seeds differ by colour and dash, add-some by the mark.
SEEDS = [*look.LINES, Line(MUTED, (0, (9, 3)), "")]


@lru_cache(maxsize=2)
def candidates(results: Results) -> pd.DataFrame:
    """Return a row for each checkpoint, a setting after an epoch, sorted by what it is chosen for.

    The columns are `CHECKPOINT`, the `SCORES` on the selection items and `aggregate`, the average
    that decides; `on_front` where no other checkpoint of its choice is better on both, and `chosen`
    where it is M*_k; `_settings` and `_checkpoints` count what there was to choose from.
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
    series = [series_of(results, results.by_path[path]) for path in rows.path]
    names = pd.DataFrame(series, rows.index, [*Series._fields])
    rows = rows.assign(
        **names,
        seed=rows.seed.fillna(0),
        extra=rows.extra.replace("", "none"),
        _about=[line.about for line in series],
    )
    place = ["protocol", "run", "_about", *CHECKPOINT]
    found = rows.drop_duplicates([*place, "metric"], keep="last")
    found = found.pivot(index=place, columns="metric", values="value").reindex(columns=SCORES)
    # What a sweep chose repeats the scores of its setting, which are before it.
    found = found.dropna().reset_index().sort_values("protocol", ascending=False, kind="stable")
    found = found.drop_duplicates(CHECKPOINT).sort_values(CHECKPOINT, ignore_index=True)
    found["aggregate"] = aggregate(found.probe_accuracy, found.original_accuracy)
    found = found.assign(on_front=False, _settings=0, _checkpoints=0)
    for _, choice in found.groupby(CHOICE):
        scores = choice[["original_accuracy", "probe_accuracy"]]
        front = pareto_front([*scores.itertuples(index=False, name=None)])
        found.loc[choice.index[front], "on_front"] = True
        settings = len(choice.drop_duplicates(["extra", "learning_rate"]))
        found.loc[choice.index, ["_settings", "_checkpoints"]] = settings, len(choice)
    chosen = {
        (*cell.series, cell.dose, cell.seed or 0, cell.extra, cell.learning_rate, cell.epoch)
        for cell in with_controls(results)
        if cell.chosen
    }
    keys = found[CHECKPOINT].itertuples(index=False, name=None)
    return found.assign(chosen=[key in chosen for key in keys], _runs=found.run)


def pareto_table(results: Results) -> Table | None:
    """Make the table of the front of each choice between settings; the csv has all checkpoints."""
    found = candidates(results)
    found = found[found._settings > 1]
    if found.empty:
        return None
    front = found[found.on_front].sort_values([*CHOICE, "original_accuracy", "probe_accuracy"])
    return table(
        "pareto",
        "The Pareto front",
        "The checkpoints that no other one of the same k and seed beats on both tasks, on the "
        "selection items, by rising score on the original task. M*_k has the best average of the "
        "two; the last column says how many checkpoints (settings and epochs) there were. The csv "
        "file holds all of them.",
        found,
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
        shown=front.assign(
            _rate="rate " + front.learning_rate.map(rate), _extra="extra " + front.extra
        ),
        csv=f"{' '.join([*CHECKPOINT, *SCORES])} aggregate on_front chosen",
    )


def pareto_figure(results: Results) -> Figure | None:
    """Draw probe against original-task accuracy of every checkpoint, a panel for each dose."""
    every = candidates(results)
    order = ["probe", "original_task", *PANEL]
    panels = [
        panel for _, panel in every.groupby(list(dict.fromkeys(order))) if panel._settings.max() > 1
    ]
    if not panels:
        return None
    starts = {
        cell.series: cell.trajectory.get("original_accuracy", {}).get(0)
        for cell in with_controls(results)
    }
    shown = panels[: look.MAX_PANELS]
    drawn = pd.concat(shown)
    # A seed looks the same in every panel, whichever seeds the panel has.
    seeds = dict(zip(sorted({*drawn.seed}), SEEDS * drawn.seed.nunique(), strict=False))
    with look.styled():
        canvas, axes = look.panels(len(shown), height=3.1, shared=False)
        for axis, panel in zip(axes, shown, strict=True):
            series = Series(*panel[[*Series._fields]].iloc[0])
            _draw_panel(axis, panel, series, starts.get(series), seeds)
        marks = extra_marks({*drawn.extra})
        for seed, line in seeds.items() if len(seeds) > 1 else ():
            mark = Line2D([], [], color=line.color, label=f"seed {seed}")
            mark.set(linestyle=line.dash)
            marks.append(mark)
        marks.append(
            Line2D(
                [], [], marker="o", color=INK, markersize=10, markerfacecolor="none",
                linestyle="none", label="M*",
            )
        )  # fmt: skip
        canvas.legend(handles=marks, loc="outside upper left", ncols=8, columnspacing=1.3)
        return look.drawn(
            "pareto",
            "Every checkpoint that could have been chosen",
            "Each mark is one setting after one epoch, scored on the selection items. The stairs "
            "join the checkpoints of a seed that no other one of that seed beats on both tasks "
            "(filled marks; hollow ones are beaten). The ring is M*, the best average; along the "
            "thin line through it averages are equal. The dotted upright line is the original "
            "task before inoculation: what lies left of it has lost. A number counts the marks "
            f"that lie on each other. {EXTRAS_NOTE} Each panel has its own axes."
            + look.left_out(len(panels)),
            canvas,
        )


def _draw_panel(
    axis: Axes, panel: pd.DataFrame, series: Series, before: float | None, seeds: dict[int, Line]
) -> None:
    probe = series.probe.replace("_", " ")
    remarks = f" · {series.remarks}" if series.remarks else ""
    look.head(axis, f"{probe}, k = {count(panel.dose.iloc[0])}", series.model + remarks)
    starts = [] if before is None else [before]
    axis.set_xlim(*_bounds([*panel.original_accuracy, *starts]))
    axis.set_ylim(*_bounds([*panel.probe_accuracy]))
    axis.set_xlabel(f"{series.original_task or 'original task'}, accuracy %")
    axis.set_ylabel(f"{probe}, accuracy %")
    if before is not None:
        axis.axvline(100 * before, color=MUTED, linewidth=1.0, dashes=(1, 2), zorder=1)
    for seed, of_seed in panel.groupby("seed"):
        line = seeds[seed]
        front = of_seed[of_seed.on_front].sort_values(
            ["original_accuracy", "probe_accuracy"], ascending=[True, False]
        )
        axis.plot(
            100 * front.original_accuracy, 100 * front.probe_accuracy, color=line.color,
            linestyle=line.dash, linewidth=1.2, drawstyle="steps-pre", zorder=2,
        )  # fmt: skip
        for mark in of_seed.itertuples():
            _draw_mark(axis, mark, line.color)
    # How many checkpoints are on a point of a front.
    for (x, y), marks in panel.groupby([panel[name].round(9) for name in reversed(SCORES)]):
        if len(marks) > 1 and marks.on_front.any():
            axis.annotate(
                str(len(marks)), (100 * x, 100 * y), xytext=(6, 5), textcoords="offset points",
                fontsize=7, color=INK, zorder=6,
            )  # fmt: skip


def _draw_mark(axis: Axes, mark: Any, color: str) -> None:
    x, y = 100 * mark.original_accuracy, 100 * mark.probe_accuracy
    axis.plot(
        [x], [y], marker=extra_mark(mark.extra), markersize=5 if mark.on_front else 3.8,
        color=color, markerfacecolor=color if mark.on_front else PAPER, markeredgewidth=0.8,
        alpha=1.0 if mark.on_front else 0.6, linestyle="none", zorder=4 if mark.on_front else 3,
    )  # fmt: skip
    if mark.chosen:  # a ring, and the line of the same average
        left, right = axis.get_xlim()
        reach = 0.2 * (right - left)
        axis.plot(
            [x - reach, x + reach], [y + reach, y - reach], color=MUTED, linewidth=0.6, zorder=1,
            scalex=False, scaley=False,
        )  # fmt: skip
        draw_ring(axis, x, y)


def _bounds(values: list[float]) -> tuple[float, float]:
    """Return limits of an axis in per cent, wide enough for a single point."""
    low, high = 100 * min(values), 100 * max(values)
    margin = max(1.0, 0.08 * (high - low))
    return low - margin, high + margin
