"""Probe against original-task accuracy of all checkpoints, and their Pareto front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from probelight.reports.figure import (
    INK,
    LINES,
    MAX_PANELS,
    MUTED,
    PAPER,
    Figure,
    Line,
    drawn,
    head,
    left_out,
    panels,
    styled,
)
from probelight.reports.inoculation.candidates import (
    Candidate,
    Choice,
    candidates,
    several_settings,
)
from probelight.reports.inoculation.figures.marks import EXTRAS_NOTE, extra_mark, extra_marks
from probelight.reports.inoculation.runs import with_controls
from probelight.reports.kit.text import count
from probelight.results.load import Results

# Seeds differ by colour and dash, add-some by the mark.
SEEDS = (*(replace(line, marker="") for line in LINES), Line(MUTED, (0, (9, 3)), ""))
Panel = dict[Choice, list[Candidate]]  # all seeds of one line at one dose


def pareto_figure(results: Results) -> Figure | None:
    """Probe against original-task accuracy of every checkpoint that M*_k was chosen from."""
    by_panel: dict[tuple[object, ...], Panel] = {}
    for choice, own in candidates(results).items():
        series = choice.series
        place = (series.probe, series.original_task, series, choice.dose)
        by_panel.setdefault(place, {})[choice] = own
    found = [by_panel[place] for place in sorted(by_panel)]
    found = [panel for panel in found if any(map(several_settings, panel.values()))]
    if not found:
        return None
    before = {
        one.series: one.trajectory.get("original_accuracy", {}).get(0)
        for one in with_controls(results)
    }
    shown = found[:MAX_PANELS]
    with styled():
        canvas, axes = panels(len(shown), height=3.1, shared=False)
        seeds = _seeds(shown)
        for axis, panel in zip(axes, shown, strict=True):
            _pareto_panel(axis, panel, before.get(next(iter(panel)).series), seeds)
        _legend(canvas, shown, seeds)
        return drawn(
            "pareto",
            "Every checkpoint that could have been chosen",
            "Each mark is one setting after one epoch, scored on the selection items. The stairs "
            "join the checkpoints of a seed that no other one of that seed beats on both tasks "
            "(filled marks; hollow ones are beaten). The ring is M*, the best average; along the "
            "thin line through it averages are equal. The dotted upright line is the original "
            "task before inoculation: what lies left of it has lost. A number counts the marks "
            f"that lie on each other. {EXTRAS_NOTE} Each panel has its own axes."
            + left_out(len(found)),
            canvas,
        )


def _seeds(shown: list[Panel]) -> dict[int, Line]:
    """How each seed looks: the same in every panel, whichever seeds the panel has."""
    seeds = sorted({choice.seed for panel in shown for choice in panel})
    return dict(zip(seeds, SEEDS * len(seeds), strict=False))


def _pareto_panel(
    axis: Axes, panel: Panel, before: float | None, seeds: Mapping[int, Line]
) -> None:
    choice = next(iter(panel))
    series = choice.series
    probe = series.probe.replace("_", " ")
    remarks = f" · {series.remarks}" if series.remarks else ""
    head(axis, f"{probe}, k = {count(choice.dose)}", series.model + remarks)
    everything = [one for own in panel.values() for one in own]
    starts = [] if before is None else [before]
    axis.set_xlim(*_bounds([one.original for one in everything] + starts))
    axis.set_ylim(*_bounds([one.probe for one in everything]))
    axis.set_xlabel(f"{series.original_task or 'original task'}, accuracy %")
    axis.set_ylabel(f"{probe}, accuracy %")
    if before is not None:
        axis.axvline(100 * before, color=MUTED, linewidth=1.0, dashes=(1, 2), zorder=1)
    for seeded, own in panel.items():
        _marks(axis, own, seeds[seeded.seed])
    _ties(axis, everything)


def _marks(axis: Axes, own: list[Candidate], look: Line) -> None:
    front = sorted((one for one in own if one.on_front), key=lambda one: (one.original, -one.probe))
    axis.plot(
        [100 * one.original for one in front], [100 * one.probe for one in front],
        color=look.color, linestyle=look.dash, linewidth=1.2, drawstyle="steps-pre", zorder=2,
    )  # fmt: skip
    for one in own:
        x, y = 100 * one.original, 100 * one.probe
        axis.plot(
            [x], [y], marker=extra_mark(one.extra), markersize=5 if one.on_front else 3.8,
            color=look.color, markerfacecolor=look.color if one.on_front else PAPER,
            markeredgewidth=0.8, alpha=1.0 if one.on_front else 0.6, linestyle="none",
            zorder=4 if one.on_front else 3,
        )  # fmt: skip
        if one.chosen:
            _ring(axis, x, y)


def _ring(axis: Axes, x: float, y: float) -> None:
    left, right = axis.get_xlim()
    reach = 0.2 * (right - left)
    axis.plot(
        [x - reach, x + reach], [y + reach, y - reach], color=MUTED, linewidth=0.6, zorder=1,
        scalex=False, scaley=False,
    )  # fmt: skip
    axis.plot(
        [x], [y], marker="o", markersize=11, color=INK, markerfacecolor="none",
        markeredgewidth=1.2, zorder=5,
    )  # fmt: skip


def _ties(axis: Axes, everything: list[Candidate]) -> None:
    """Says how many checkpoints lie on a point of a front."""
    places: dict[tuple[float, float], list[Candidate]] = {}
    for one in everything:
        places.setdefault((round(one.original, 9), round(one.probe, 9)), []).append(one)
    for (x, y), own in places.items():
        if len(own) > 1 and any(one.on_front for one in own):
            axis.annotate(
                str(len(own)), (100 * x, 100 * y), xytext=(6, 5), textcoords="offset points",
                fontsize=7, color=INK, zorder=6,
            )  # fmt: skip


def _bounds(values: list[float]) -> tuple[float, float]:
    """Limits of an axis in per cent, wide enough for a single point."""
    low, high = 100 * min(values), 100 * max(values)
    margin = max(1.0, 0.08 * (high - low))
    return low - margin, high + margin


def _legend(canvas: Canvas, shown: list[Panel], seeds: Mapping[int, Line]) -> None:
    marks = extra_marks({one.extra for panel in shown for own in panel.values() for one in own})
    if len(seeds) > 1:
        for seed, look in seeds.items():
            mark = Line2D([], [], color=look.color, label=f"seed {seed}")
            mark.set(linestyle=look.dash)
            marks.append(mark)
    marks.append(
        Line2D(
            [], [], marker="o", color=INK, markersize=10, markerfacecolor="none",
            linestyle="none", label="M*",
        )
    )  # fmt: skip
    canvas.legend(handles=marks, loc="outside upper left", ncols=8, columnspacing=1.3)
