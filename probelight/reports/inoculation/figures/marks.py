"""How lines and marks look in every figure of inoculation."""

from __future__ import annotations

from collections.abc import Collection

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from probelight.reports.figure import INK, LINES, Line

PROBE, ORIGINAL = LINES[:2]
EXTRAS = {"none": "o", "x1": "s", "x2": "^"}  # marks of add-some, in every figure of inoculation
EXTRAS_NOTE = (
    "Extra: original-task examples added to the probe's, none, as many (x1) or twice as many (x2, "
    "at most 3,000)."
)


def plot_line(axis: Axes, xs: list[float], ys: list[float], look: Line) -> None:
    """Draws a line with its marks."""
    axis.plot(
        xs, ys, color=look.color, linestyle=look.dash, linewidth=1.7, marker=look.marker,
        markersize=4.8,
    )  # fmt: skip


def extra_mark(extra: str) -> str:
    """The mark of an add-some setting."""
    return EXTRAS.get(extra, "D")


def extra_marks(extras: Collection[str]) -> list[Line2D]:
    """What the marks of these add-some settings mean, for a legend."""
    known = [*EXTRAS, *sorted(set(extras) - set(EXTRAS))]
    return [
        Line2D(
            [], [], marker=extra_mark(extra), color=INK, markersize=5, linestyle="none",
            label=f"extra {extra}",
        )
        for extra in known
        if extra in extras
    ]  # fmt: skip
