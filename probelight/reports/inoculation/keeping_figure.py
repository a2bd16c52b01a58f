"""The figure of methods against forgetting: gain and cost of each of their settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle

from matplotlib.axes import Axes

from probelight.metrics.front import Point
from probelight.reports import figure as figures
from probelight.reports.estimates import count, dotted, in_words
from probelight.reports.figure import INK, LINES, MUTED, PAPER, Figure, Line
from probelight.reports.inoculation.keeping import MEASURED, NONE, Setting, comparisons
from probelight.results.load import Results

SIZES = (4.8, 6.2, 7.6)  # of marks, by rising rate


@figures.styled()
def keeping_figure(results: Results) -> Figure | None:
    """Draw the cost of each method's settings against their gain, one panel per dose."""
    every = [one for one in comparisons(results) if one.methods]
    if not every:
        return None
    names = dict.fromkeys(name for one in every for name in one.methods if name != NONE)
    lines = [replace(line, face=face) for face in ("", PAPER) for line in LINES]
    looks = {NONE: Line(INK, "-", "o", PAPER)}
    looks |= dict(zip(names, cycle(lines), strict=False))
    ring = Line(INK, "none", "o", "none", size=9.5)
    shown = every[: figures.MAX_PANELS]
    canvas, axes = figures.panels(len(shown), height=3.4, shared=False)
    for axis, one in zip(axes, shown, strict=True):
        subtitle = dotted(one.series.about, f"not compared: {one.refused}" if one.refused else "")
        figures.head(axis, f"{in_words(one.series.probe)}, k = {count(one.dose)}", subtitle)
        axis.set_xlabel("gain on the probe (points)")
        axis.set_ylabel("cost on the original task (points)")
        for zero in (axis.axhline, axis.axvline):
            zero(0, color=MUTED, linewidth=0.7, zorder=1)
        for name, found in one.methods.items():
            _draw(axis, found, looks[name])
        for name, cut in one.cuts.items():
            gain = 100 * one.gain
            axis.axvline(gain, color=MUTED, linewidth=1.0, dashes=(1, 2))
            # Neighbours of two rates are on no line.
            ends = [one.methods[name][index][1] for index in cut.ends]
            xs, ys = ([100 * getattr(end, what) for end in ends] for what in ("gain", "cost"))
            axis.plot(xs, ys, color=looks[name].color, linewidth=0.8, zorder=2)
            axis.plot([gain], [100 * cut.cost], **ring.style, zorder=6)
    legend = {name: look for name, look in looks.items() if any(name in o.methods for o in shown)}
    legend |= {"compared": ring} if any(one.cuts for one in shown) else {}
    figures.legend(canvas, legend, handlelength=3.4)
    left_out = figures.left_out(len(every), figures.MAX_PANELS)
    return figures.drawn(
        "keeping",
        "Gain and cost of inoculation, by method against forgetting",
        f"{MEASURED} Further right is more gain, lower is less forgetting. Each mark is a setting "
        "of a method, with 95% intervals of both. A line starts at the model before inoculation "
        "(0, 0) and joins the strengths at one learning rate, or the rates at one strength; among "
        "several lines of a method, higher rates have larger marks. The dotted line is the highest "
        "gain that every method reaches; the rings on it are the costs that are compared. "
        f"Each panel has its own axes.{left_out}",
        canvas,
    )


def _draw(axis: Axes, found: Sequence[tuple[Setting, Point]], look: Line) -> None:
    """Draw the lines of a method, its marks and their whiskers."""
    varies = len({setting.strength for setting, _ in found}) > 1
    by_rate: dict[float, list[tuple[Setting, Point]]] = {}
    for setting, point in sorted(found, key=lambda pair: pair[1].place):
        by_rate.setdefault(setting.rate or 0 if varies else 0, []).append((setting, point))
    for rank, (_, of_rate) in enumerate(sorted(by_rate.items())):
        xs, ys = ([0.0, *(100 * getattr(p, what) for _, p in of_rate)] for what in ("gain", "cost"))
        axis.plot(xs, ys, **replace(look, marker="").style, zorder=3)
        marks = replace(look, dash="none", size=SIZES[min(rank, len(SIZES) - 1)])
        axis.plot(xs[1:], ys[1:], **marks.style, zorder=4)
        for x, y, (setting, _) in zip(xs[1:], ys[1:], of_rate, strict=True):
            whiskers = ((axis.hlines, y, setting.gain), (axis.vlines, x, setting.cost))
            for draw, at, estimate in whiskers:
                if estimate and estimate.ci_low is not None and estimate.ci_high is not None:
                    ends = (100 * estimate.ci_low, 100 * estimate.ci_high)
                    draw(at, *ends, look.color, linewidth=0.8, alpha=0.35, zorder=2)
