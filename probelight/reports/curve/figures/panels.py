"""Panels of learning curves: lines over their bands, with labels at their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probelight.reports.curve.curve import Curve
from probelight.reports.curve.lines import TRAINED
from probelight.reports.curve.summary import Summary
from probelight.reports.figure import (
    INK,
    MUTED,
    Line,
    end_labels,
    example_axis,
    head,
    limits,
    panels,
)
from probelight.reports.kit.text import percent, rate
from probelight.reports.published import short_name

LINEAR = Line(MUTED, "-", "")
BASELINES = (Line(INK, (0, (3, 1.2)), "v"), Line(INK, (0, (1, 1)), "P"))


@dataclass(frozen=True)
class Drawn:
    """One line of a panel."""

    curve: Curve
    control: str
    label: str
    look: Line


def bands(shown: Sequence[Summary]) -> str:
    """What the bands of lines stand for."""
    known = all(summary.curve.hits for summary in shown)
    source = "groups of items and seeds" if known else "the items alone where hits were not kept"
    return f"Lines are means over seeds, bands 95% intervals from {source}."


def heading(curve: Curve, first: Literal["probe", "model", ""]) -> tuple[str, str]:
    """Title of a panel, and what else identifies it; the model is left out where all share it."""
    probe, model = curve.probe.replace("_", " "), short_name(curve.model)
    trained = TRAINED.get(curve.mode, curve.mode)
    if not first:
        return probe, " · ".join(filter(None, (trained, curve.where)))
    title, other = (probe, model) if first == "probe" else (model, probe)
    rate_said = f"rate {rate(curve.learning_rate)}" if curve.learning_rate else ""
    return title, " · ".join(filter(None, (other, trained, curve.where, rate_said)))


def panel_canvas(lines: Sequence[Sequence[Drawn]], heads: Sequence[tuple[str, str]]) -> Canvas:
    """Panels that share their y axis; lines with a label have it at their end."""
    most = max(len([line for line in own if line.label]) for own in lines)
    canvas, axes = panels(len(lines), height=max(2.6, 1.35 + 0.24 * most))
    low, high = limits(
        [
            bound
            for own in lines
            for line in own
            for n, mean in line.curve.means(line.control).items()
            for bound in (mean, *line.curve.interval(line.control, n), line.curve.chance)
        ]
    )
    for place, (axis, own, said) in enumerate(zip(axes, lines, heads, strict=True)):
        axis.set_ylim(low, high)
        head(axis, *said)
        _panel(axis, own, (high - low) * 0.075)
        if place % 2 == 0:
            axis.set_ylabel("accuracy, %")
    return canvas


def _panel(axis: Axes, lines: Sequence[Drawn], gap: float) -> None:
    sizes = sorted({n for line in lines for n in line.curve.means(line.control)})
    positions = example_axis(axis, sizes, "training examples N")
    labels = []
    for rank, line in enumerate(lines):
        end = _line(axis, line, positions, 1 - rank / len(lines))
        if line.label:
            labels.append((100 * end, line.label, line.look.color))
    first, last = min(positions.values()), max(positions.values())
    if (chance := lines[0].curve.chance) is not None:
        level = 100 * chance
        axis.plot([first, last], [level] * 2, color=MUTED, linewidth=0.9, dashes=(1, 2))
        labels.append((level, f"chance {percent(chance)}", MUTED))
    end_labels(axis, last + 0.04 * max(last - first, 1), labels, gap)


def _line(axis: Axes, line: Drawn, positions: Mapping[int, float], order: float) -> float:
    """Draws a line over its band and gives its last value."""
    curve, look = line.curve, line.look
    means = curve.means(line.control)
    known = [
        (positions[n], 100 * low, 100 * high)
        for n, (low, high) in ((n, curve.interval(line.control, n)) for n in means)
        if low is not None and high is not None
    ]
    if len(known) > 1 and look != LINEAR:
        xs, lows, highs = (list(values) for values in zip(*known, strict=True))
        axis.fill_between(xs, lows, highs, color=look.color, alpha=0.13, linewidth=0)
    elif look != LINEAR:
        for x, low, high in known:
            axis.plot([x, x], [low, high], color=look.color, linewidth=0.9, alpha=0.55)
    axis.plot(
        [positions[n] for n in means], [100 * mean for mean in means.values()], color=look.color,
        linestyle=look.dash, linewidth=1.1 if look == LINEAR else 1.7, marker=look.marker,
        markersize=4.2, zorder=2 + order,
    )  # fmt: skip
    return list(means.values())[-1]
