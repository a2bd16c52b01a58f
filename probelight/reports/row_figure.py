"""Figures of rows: one number and its interval per row."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probelight.reports.figure import INK, MUTED, Figure, Line, drawn, legend, styled
from probelight.reports.words import between, missing, percent, points, points_between


@styled()
def row_figure(
    name: str,
    title: str,
    caption: str,
    frame: pd.DataFrame,
    looks: Mapping[str, Line],
    label: str,
    are_gaps: bool = False,
) -> Figure:
    """Draw numbers and their 95% intervals, one per row, with `label` below the axis.

    `frame` has columns `heading` (may be empty), `name`, `look`, `value`, `ci_low`, `ci_high` and
    `chance` (one per name, may be missing); rows of a heading, and of a name, are drawn together.
    Marks whose look has no dash share the last row of their name, without intervals.
    """
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
                _write(axis, y, points(row.value), points_between(low, high))
            else:
                _write(axis, y, percent(row.value), between(low, high))
            y += 1
        ticks[(first + y - 1) / 2] = row_name
        for row in rows[shares_row].itertuples():
            axis.plot(100 * row.value, y, **looks[row.look].style)
        if not missing(chance):
            ends = [first - 0.5, y + 0.5]
            axis.plot([100 * chance] * 2, ends, color=INK, linewidth=1.1, zorder=1)
            _write(axis, y, "", f"chance {percent(chance)}")
        y += 1.8 if shares_row.any() or not missing(chance) else 0.8
    canvas.set_size_inches(7.4, 0.95 + 0.16 * y)
    if are_gaps:
        axis.axvline(0, color=INK, linewidth=1.1)
    else:
        axis.set_xlim(-2, 102)
        axis.set_xticks(range(0, 101, 20))
    axis.set_xlabel(label)
    axis.set_ylim(y - 0.2, -0.8)
    axis.set_yticks([*ticks], [*ticks.values()])
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    legend(canvas, {look: looks[look] for look in looks if look in {*frame.look}})
    return drawn(name, title, caption, canvas)


def _write(axis: Axes, y: float, number: str, interval: str) -> None:
    """Write a number and its interval in two columns right of the panel."""
    for text, right, size, color in ((number, 32, 8, INK), (interval, 96, 7, MUTED)):
        axis.annotate(
            text, (1, y), xycoords=("axes fraction", "data"), xytext=(right, 0),
            textcoords="offset points", ha="right", va="center", fontsize=size, color=color,
            annotation_clip=False,
        )  # fmt: skip
