"""The figure of what models scored before any training."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from probelight.reports.figure import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PAPER,
    PURPLE,
    Figure,
    drawn,
    styled,
)
from probelight.reports.words import between, missing, percent
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Results

MODELS = ((BLUE, ""), (ORANGE, "////"), (GREEN, "----"), (PURPLE, "xxxx"), (MUTED, "||||"))


def zero_shot_figure(results: Results) -> Figure | None:
    """Bars of accuracy before any training, with intervals and the chance level of each probe."""
    found = zero_shots(results)
    if found.empty:
        return None
    models = list(dict.fromkeys(found.model))
    by_set = {place: list(one.itertuples()) for place, one in found.groupby(["probe", "split"])}
    over = (found.accuracy - found.floor.fillna(0)).groupby([found.probe, found.split]).max()
    sets = sorted(by_set, key=lambda place: -over[place])
    with styled():
        row_height = 0.34 + 0.2 * len(models)
        canvas = Canvas(figsize=(7.4, 0.95 + row_height * len(sets)))
        canvas.set_layout_engine("constrained")
        axis = canvas.subplots()
        for place, name in enumerate(sets):
            _bars(axis, place, by_set[name], models)
        several = len({split for _, split in sets}) > 1
        names = [f"{p} ({s})" if several and s else p for p, s in sets]
        axis.set_yticks(range(len(sets)), [name.replace("_", " ") for name in names])
        axis.set_ylim(len(sets) - 0.4, -0.55)
        axis.set_xlim(0, 125)
        axis.spines["bottom"].set_bounds(0, 100)
        axis.set_xticks(range(0, 101, 20))
        axis.set_xlabel("accuracy, %", x=0.4)
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0, labelsize=8.5)
        axis.spines["left"].set_visible(False)
        _zero_shot_legend(canvas, axis, models, bool(found.majority_accuracy.notna().any()))
        return drawn(
            "zero_shot",
            "Accuracy before any training",
            "Whiskers are 95% intervals. The upright line on each row is chance; the diamond is "
            "what always giving the most frequent answer would score. A bar whose whisker reaches "
            "the chance line shows nothing.",
            canvas,
        )


def _bars(axis: Axes, place: int, entries: list[Any], models: list[str]) -> None:
    height = 0.62 / len(models)
    for entry in entries:
        rank = models.index(entry.model)
        color, hatch = MODELS[rank % len(MODELS)]
        y = place - 0.06 + (rank - (len(models) - 1) / 2) * height
        axis.barh(
            y, 100 * entry.accuracy, height * 0.86, color=color, hatch=hatch, edgecolor=PAPER,
            linewidth=0,
        )  # fmt: skip
        if not missing(entry.ci_low + entry.ci_high):
            for line, width in ((PAPER, 2.8), (INK, 1.1)):
                ends = [100 * entry.ci_low, 100 * entry.ci_high]
                axis.plot(ends, [y, y], color=line, linewidth=width, solid_capstyle="butt")
        # The numbers stand in a column of their own, clear of marks and comparable at a glance.
        axis.text(110, y, percent(entry.accuracy), va="center", ha="right", fontsize=8.5)
        interval = between(entry.ci_low, entry.ci_high)
        axis.text(125, y, interval, va="center", ha="right", fontsize=7.5, color=MUTED)
    first = entries[0]
    if not missing(first.floor):
        chance = 100 * first.floor
        for color, width in ((PAPER, 3.0), (INK, 1.2)):
            axis.plot([chance] * 2, [place - 0.42, place + 0.4], color=color, linewidth=width)
        axis.text(
            chance + 0.7, place + 0.4, f"chance {percent(first.floor)}", va="center", fontsize=7,
            color=MUTED,
        )  # fmt: skip
    if not missing(first.majority_accuracy):
        axis.plot(
            [100 * first.majority_accuracy], [place - 0.06], marker="D", markersize=4.5,
            color=PAPER, markeredgecolor=INK, markeredgewidth=0.9, zorder=4,
        )  # fmt: skip


def _zero_shot_legend(canvas: Canvas, axis: Axes, models: list[str], majority: bool) -> None:
    marks: list[object] = [
        Patch(facecolor=color, hatch=hatch, edgecolor=PAPER, label=model)
        for model, (color, hatch) in zip(models, MODELS * len(models), strict=False)
    ]
    if majority:
        marks += axis.plot(
            [], [], marker="D", markersize=4.5, color=PAPER, markeredgecolor=INK,
            markeredgewidth=0.9, linestyle="none", label="always the most frequent answer",
        )  # fmt: skip
    columns = 4 if len("".join(models)) < 45 else 2  # long names need the width
    canvas.legend(handles=marks, loc="outside upper left", ncols=min(columns, len(marks)))
