"""The figure of what models scored before any training."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Patch

from probelight.reports.kit.figure import (
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
from probelight.reports.kit.text import between, percent
from probelight.reports.zero_shot.facts import ZeroShot, zero_shots
from probelight.results.load import Results

MODELS = ((BLUE, ""), (ORANGE, "////"), (GREEN, "----"), (PURPLE, "xxxx"), (MUTED, "||||"))


def zero_shot_figure(results: Results) -> Figure | None:
    """Bars of accuracy before any training, with intervals and the chance level of each probe."""
    found = zero_shots(results)
    if not found:
        return None
    models = list(dict.fromkeys(entry.label for entry in found))
    sets = list(dict.fromkeys((entry.probe, entry.accuracy.split) for entry in found))
    by_set = {s: [e for e in found if (e.probe, e.accuracy.split) == s] for s in sets}
    sets.sort(key=lambda s: -max(e.accuracy.value - (e.floor or 0) for e in by_set[s]))
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
        _zero_shot_legend(canvas, axis, models, any(e.majority is not None for e in found))
        return drawn(
            "zero_shot",
            "Accuracy before any training",
            "Whiskers are 95% intervals. The upright line on each row is chance; the diamond is "
            "what always giving the most frequent answer would score. A bar whose whisker reaches "
            "the chance line shows nothing.",
            canvas,
        )


def _bars(axis: Axes, place: int, entries: list[ZeroShot], models: list[str]) -> None:
    height = 0.62 / len(models)
    for entry in entries:
        rank = models.index(entry.label)
        color, hatch = MODELS[rank % len(MODELS)]
        y = place - 0.06 + (rank - (len(models) - 1) / 2) * height
        row = entry.accuracy
        axis.barh(
            y, 100 * row.value, height * 0.86, color=color, hatch=hatch, edgecolor=PAPER,
            linewidth=0,
        )  # fmt: skip
        if row.ci_low is not None and row.ci_high is not None:
            for line, width in ((PAPER, 2.8), (INK, 1.1)):
                ends = [100 * row.ci_low, 100 * row.ci_high]
                axis.plot(ends, [y, y], color=line, linewidth=width, solid_capstyle="butt")
        # The numbers stand in a column of their own, clear of marks and comparable at a glance.
        axis.text(110, y, percent(row.value), va="center", ha="right", fontsize=8.5)
        interval = between(row.ci_low, row.ci_high)
        axis.text(125, y, interval, va="center", ha="right", fontsize=7.5, color=MUTED)
    first = entries[0]
    if first.floor is not None:
        chance = 100 * first.floor
        for color, width in ((PAPER, 3.0), (INK, 1.2)):
            axis.plot([chance] * 2, [place - 0.42, place + 0.4], color=color, linewidth=width)
        axis.text(
            chance + 0.7, place + 0.4, f"chance {percent(first.floor)}", va="center", fontsize=7,
            color=MUTED,
        )  # fmt: skip
    if first.majority is not None:
        axis.plot(
            [100 * first.majority], [place - 0.06], marker="D", markersize=4.5, color=PAPER,
            markeredgecolor=INK, markeredgewidth=0.9, zorder=4,
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
