"""Figures of numbers with their intervals: one per row, or lines over examples, steps or epochs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, TypeVar

import pandas as pd

from probelight.reports import figure, numbers
from probelight.reports.numbers import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS = 8
MOST_MODELS = 5  # per panel, so that lines can be told apart
T = TypeVar("T")


@figure.styled()
def row_figure(
    name: str,
    title: str,
    caption: str,
    frame: pd.DataFrame,
    looks: Mapping[str, figure.Line],
    label: str,
    are_gaps: bool = False,
) -> figure.Figure:
    """Draw numbers and their 95% intervals, one per row, with `label` below the axis.

    `frame` has columns `heading` (may be empty), `name`, `look`, `value`, `ci_low`, `ci_high` and
    `chance` (one per name, may be missing); rows of a heading, and of a name, are drawn together.
    Marks whose look has no dash share the last row of their name, without intervals.
    """
    from matplotlib.figure import Figure as Canvas

    frame = frame.astype(dict.fromkeys(("value", "ci_low", "ci_high", "chance"), float))
    canvas = Canvas()
    canvas.set_layout_engine("constrained")
    axis = canvas.subplots()
    y, ticks, last_heading = 0.0, {}, ""
    for (heading, row_name), rows in frame.groupby(["heading", "name"], sort=False):
        if heading != last_heading:
            y += 0.5
            axis.text(0, y, heading, fontsize=8.5, fontweight="bold", va="center")
            y += 1.3
            last_heading = heading
        first, chance = y, rows.chance.iloc[0]
        shares_row = rows.look.map(lambda look: looks[look].dash == "none")
        for row in rows[~shares_row].itertuples():
            look, low, high = looks[row.look], row.ci_low, row.ci_high
            axis.plot([100 * low, 100 * high], [y, y], color=look.color)
            axis.plot(100 * row.value, y, **look.style)
            if are_gaps:
                _write(axis, y, numbers.points(row.value), numbers.points_between(low, high))
            else:
                _write(axis, y, numbers.percent(row.value), numbers.between(low, high))
            y += 1
        ticks[(first + y - 1) / 2] = row_name
        for row in rows[shares_row].itertuples():
            axis.plot(100 * row.value, y, **looks[row.look].style)
        if not numbers.missing(chance):
            ends = [first - 0.5, y + 0.5]
            axis.plot([100 * chance] * 2, ends, color=figure.INK, linewidth=1.1, zorder=1)
            _write(axis, y, "", f"chance {numbers.percent(chance)}")
        y += 1.8 if shares_row.any() or not numbers.missing(chance) else 0.8
    canvas.set_size_inches(7.4, 0.95 + 0.16 * y)
    if are_gaps:
        axis.axvline(0, color=figure.INK, linewidth=1.1)
    else:
        axis.set_xlim(-2, 102)
        axis.set_xticks(range(0, 101, 20))
    axis.set_xlabel(label)
    axis.set_ylim(y - 0.2, -0.8)
    axis.set_yticks([*ticks], [*ticks.values()])
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    figure.legend(canvas, {look: looks[look] for look in looks if look in {*frame.look}})
    return figure.drawn(name, title, caption, canvas)


def _write(axis: Axes, y: float, number: str, interval: str) -> None:
    """Write a number and its interval in two columns right of the panel."""
    for text, right, size, color in ((number, 32, 8, figure.INK), (interval, 96, 7, figure.MUTED)):
        axis.annotate(
            text, (1, y), xycoords=("axes fraction", "data"), xytext=(right, 0),
            textcoords="offset points", ha="right", va="center", fontsize=size, color=color,
            annotation_clip=False,
        )  # fmt: skip


@dataclass(frozen=True)
class Trace:
    """A line of a panel, or marks alone if its look has no dash."""

    points: Sequence[tuple[int, Estimate]]  # by number of examples, step or epoch
    look: figure.Line
    label: str = ""  # written at the line's end
    shift: float = 0.0  # to the right, in points, so that it does not cover another
    whiskers: bool = False  # intervals as whiskers, not as a band


@dataclass(frozen=True)
class Panel:
    """A panel with its heading."""

    title: str
    subtitle: str
    traces: Sequence[Trace]  # an earlier one covers a later one
    chances: Mapping[str, float | None] = field(default_factory=dict)  # by label


def in_panels(series: Sequence[T]) -> list[Sequence[T]]:
    """Divide what would be one panel into panels of at most `MOST_MODELS`."""
    return [series[start : start + MOST_MODELS] for start in range(0, len(series), MOST_MODELS)]


@figure.styled()
def line_figure(
    name: str,
    title: str,
    caption: str,
    panels: Sequence[Panel],
    xlabel: str,
    ylabel: str = "accuracy, %",
    *,
    looks: Mapping[str, figure.Line] | None = None,
    log: bool = True,
    shared: bool = True,
) -> figure.Figure:
    """Draw the first `MAX_PANELS` panels, with a legend of `looks` for lines without a label.

    On a `log` axis 0 has a place of its own. `shared` panels have the same y axis.
    """
    visible_panels = panels[: figure.MAX_PANELS]
    most = max(sum(bool(trace.label) for trace in panel.traces) for panel in visible_panels)
    canvas, axes = figure.panels(len(visible_panels), max(2.9, 1.4 + 0.26 * most), shared)
    for index, (axis, panel) in enumerate(zip(axes, visible_panels, strict=True)):
        figure.head(axis, panel.title, panel.subtitle)
        axis.set_ylim(limits(visible_panels if shared else [panel]))
        axis.set_xlabel(xlabel)
        if index % 2 == 0 or not shared:
            axis.set_ylabel(ylabel)
        numbers = sorted({number for trace in panel.traces for number, _ in trace.points})
        positions = log_positions(numbers) if log else {n: float(n) for n in numbers}
        _draw_panel(axis, panel, positions)
        if log and 0 in positions and len(positions) > 1:
            axis.text(
                positions[0] + 0.6, 0, "//", transform=axis.get_xaxis_transform(), fontsize=7,
                color=figure.MUTED, ha="center", va="center",
                bbox={"facecolor": figure.PAPER, "edgecolor": "none", "pad": 0.6},
            )  # fmt: skip
    if looks:
        figure.legend(canvas, looks, handlelength=3.4)
    return figure.drawn(
        name, title, caption + figure.left_out(len(panels), figure.MAX_PANELS), canvas
    )


def limits(panels: Sequence[Panel]) -> tuple[float, float]:
    """Return the ends of the y axis in per cent: the range of all panels, with a margin."""
    values = [chance for panel in panels for chance in panel.chances.values()]
    lines = [line for panel in panels for line in panel.traces]
    for _, estimate in (point for line in lines for point in line.points):
        values += (estimate.value, *estimate.bounds)
    percents = [100 * value for value in values if value is not None]
    margin = max(4.0, 0.08 * (max(percents) - min(percents)))
    return max(0.0, min(percents) - margin), min(102.0, max(percents) + margin)


def _draw_panel(axis: Axes, panel: Panel, positions: Mapping[int, float]) -> None:
    """Draw the lines of a panel and its levels of chance, each labelled at its right end."""
    ticks = list(positions)[:: -(-len(positions) // MOST_TICKS)]
    axis.set_xticks([positions[n] for n in ticks], [numbers.short_count(n) for n in ticks])
    axis.grid(axis="x", visible=False)
    first, last = min(positions.values()), max(positions.values())
    span = max(last - first, 1.0)
    axis.spines["bottom"].set_bounds(first - 0.06 * span, last)
    labels = []
    for rank, trace in enumerate(panel.traces):
        _draw_trace(axis, trace, positions, 3 - rank / len(panel.traces))
        if trace.label:
            labels.append((100 * trace.points[-1][1].value, trace.label, trace.look.color))
    for name, chance in panel.chances.items():
        if chance is not None:
            axis.plot(
                [first, last], [100 * chance] * 2, color=figure.MUTED, linewidth=0.9, dashes=(1, 2)
            )
            labels.append((100 * chance, f"{name} {numbers.percent(chance)}", figure.MUTED))
    right = last + (0.42 if labels else 0.06) * span
    axis.set_xlim(first - 0.06 * span, right)
    x = last + 0.07 * span
    if labels:  # grid lines end where they begin
        axis.axvspan(x, right, color=figure.PAPER, linewidth=0, zorder=0.6)
    low, high = axis.get_ylim()
    heights = apart([value for value, _, _ in labels], 0.08 * (high - low))
    for y, (_, text, color) in zip(heights, labels, strict=True):
        axis.text(x, y, text, color=color, fontsize=8, va="center")


def _draw_trace(axis: Axes, trace: Trace, positions: Mapping[int, float], zorder: float) -> None:
    from matplotlib.transforms import ScaledTranslation

    inches = axis.figure.dpi_scale_trans
    moved = axis.transData + ScaledTranslation(trace.shift / 72, 0, inches)
    intervals = [
        (positions[number], 100 * estimate.ci_low, 100 * estimate.ci_high)
        for number, estimate in trace.points
        if estimate.ci_low is not None and estimate.ci_high is not None
    ]
    color = trace.look.color
    if intervals:
        xs, lows, highs = zip(*intervals, strict=True)
        if trace.whiskers or len(intervals) == 1:
            axis.vlines(xs, lows, highs, color, linewidth=0.9, alpha=0.55, transform=moved)
        else:
            axis.fill_between(xs, lows, highs, color=color, alpha=0.13, linewidth=0)
    axis.plot(
        [positions[number] for number, _ in trace.points],
        [100 * estimate.value for _, estimate in trace.points],
        **trace.look.style,
        transform=moved,
        zorder=zorder,
    )


def apart(values: Sequence[float], gap: float) -> list[float]:
    """Return the values moved as little as needed for neighbours to be `gap` apart, order kept."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    targets = [values[index] - gap * rank for rank, index in enumerate(order)]
    # Isotonic regression by its max-min formula (Robertson, Wright & Dykstra 1988, section 1.4).
    placed = [0.0] * len(values)
    for rank, index in enumerate(order):
        ends = range(rank + 1, len(order) + 1)
        lowest = [min(fmean(targets[start:end]) for end in ends) for start in range(rank + 1)]
        placed[index] = max(lowest) + gap * rank
    return placed


def log_positions(numbers: Sequence[int]) -> dict[int, float]:
    """Return positions of numbers on a log axis, in ascending order; 0 is left of the others."""
    positive = sorted({number for number in numbers if number > 0})
    positions = {number: math.log2(number) for number in positive}
    if 0 in numbers:
        positions = {0: math.log2(positive[0]) - 1.2 if positive else 0.0, **positions}
    return positions
