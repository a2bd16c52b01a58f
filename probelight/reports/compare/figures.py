"""The figure of differences between systems, the largest first."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probelight.reports.compare.facts import Difference, differences
from probelight.reports.figure import BLUE, INK, MUTED, PAPER, Figure, drawn, left_out, styled
from probelight.reports.kit.text import points
from probelight.results.load import Results

MOST = 30
_WIDE = 66  # characters of a label


def differences_figure(results: Results) -> Figure | None:
    """Differences with their intervals, sorted; filled where they are told from chance."""
    found = sorted(differences(results), key=lambda one: -abs(one.difference.value))
    if not found:
        return None
    # The largest ones are kept, and stand in the order of their sign.
    shown = sorted(found[:MOST], key=lambda one: -one.difference.value)
    with styled():
        canvas = Canvas(figsize=(7.4, 0.9 + 0.36 * len(shown)))
        canvas.set_layout_engine("constrained")
        axis = canvas.subplots()
        axis.axvline(0, color=INK, linewidth=1.0)
        for place, one in enumerate(shown):
            _whisker(axis, place, one)
        labels = [f"{_short(f'{o.first} − {o.second}')}\n{_short(o.place.text)}" for o in shown]
        axis.set_yticks(range(len(shown)), labels, fontsize=7)
        axis.set_ylim(len(shown) - 0.4, -0.6)
        axis.set_xlabel("first − second, percentage points")
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        _legend(canvas, axis)
        return drawn(
            "compared",
            "Differences between systems",
            "Accuracy of the first minus that of the second on the same items, with 95% intervals. "
            "Filled: told apart, at a false discovery rate of 5% over all comparisons."
            + left_out(len(found), MOST),
            canvas,
        )


def _whisker(axis: Axes, place: int, one: Difference) -> None:
    row = one.difference
    value, color = 100 * row.value, BLUE if one.are_apart else MUTED
    if row.ci_low is not None and row.ci_high is not None:
        axis.plot([100 * row.ci_low, 100 * row.ci_high], [place] * 2, color=color, linewidth=1.3)
    fill = color if one.are_apart else PAPER
    axis.plot([value], [place], marker="o", markersize=5, color=fill, markeredgecolor=color)
    axis.annotate(
        points(row.value), (1.01, place), xycoords=("axes fraction", "data"), va="center",
        fontsize=8, annotation_clip=False,
    )  # fmt: skip


def _legend(canvas: Canvas, axis: Axes) -> None:
    marks = [
        *axis.plot([], [], "o", color=BLUE, markersize=5, label="told apart"),
        *axis.plot(
            [], [], "o", color=PAPER, markeredgecolor=MUTED, markersize=5, label="not told apart"
        ),
    ]
    canvas.legend(handles=marks, loc="outside upper left", ncols=2)


def _short(text: str) -> str:
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"
