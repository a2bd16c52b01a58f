"""An arrow an inoculation: what the probe gained against what the original task lost.

Each of the two has a whisker at the head, its 95% interval, and each shows whether it can be told
from none: the whisker is broken where it cannot, and the arrow is full only where both can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import FancyArrowPatch

from probelight.reports import figure
from probelight.reports.figure import INK, LINES, MUTED, PAPER, Figure, Line
from probelight.reports.words import in_words, percent, short_count
from probelight.results.load import Results

if TYPE_CHECKING:
    from probelight.reports.inoculation.doses import Dose

MOST = 200  # arrows
MOST_LABELLED = 12  # arrows that have their dose at the head
MOST_NAMED = 8  # of a legend
LINK = "#inoculation"
DASH = (0, (2, 1.5))
BEFORE = ("original_accuracy_before", "probe_accuracy_before")
AFTER = ("original_accuracy_after", "probe_accuracy")
COLORS = [*(line.color for line in LINES), INK]
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True)
class Arrow:
    """The mean over seeds of one dose: (original-task, probe) accuracy before and after.

    Attributes:
        whiskers: Of the cost and the gain the axis (0 is the cost's), both ends as scores in per
            cent, and whether it can be told from none; without those whose interval is not known.
    """

    dose: Dose
    before: tuple[float, float]
    after: tuple[float, float]
    whiskers: tuple[tuple[int, float, float, bool], ...]


def arrows_of(line: Sequence[Dose]) -> list[Arrow]:
    """Return the arrows of a line; a dose that lacks one of the four scores has none."""
    found = []
    for dose in line:
        ends = [dose.mean(metric) for metric in (*BEFORE, *AFTER)]
        known = [100 * mean for mean in ends if mean is not None]
        if len(known) < len(ends):
            continue
        lost = dose.estimate("inoculation_cost") if dose.interpretable else None
        whiskers = []
        for axis, change in enumerate((lost and lost.negative, dose.gain)):
            if change and change.ci_low is not None and change.ci_high is not None:
                low, high = (known[axis] + 100 * end for end in (change.ci_low, change.ci_high))
                whiskers.append((axis, low, high, not low <= known[axis] <= high))
        found.append(Arrow(dose, (known[0], known[1]), (known[2], known[3]), tuple(whiskers)))
    return found


@figure.styled()
def arrows_figure(results: Results) -> Figure | None:
    """Draw every inoculation as an arrow from the scores before it to those after it."""
    if not results.of("inoculation"):
        return None
    from probelight.reports.inoculation.doses import doses
    from probelight.reports.inoculation.runs import inoculations

    found = [arrow for line in doses(inoculations(results)).values() for arrow in arrows_of(line)]
    if not found:
        return None
    shown = found[:MOST]
    models = list(dict.fromkeys(arrow.dose.series.model for arrow in shown))
    probes = list(dict.fromkeys(arrow.dose.series.probe for arrow in shown))
    names = models if len(models) > 1 else probes
    # Colours and marks go round at different paces, so that many models stay apart.
    looks = {
        name: Line(COLORS[place % len(COLORS)], "-", MARKERS[place % len(MARKERS)])
        for place, name in enumerate(names)
    }
    marks = {
        in_words(name) if names is probes else name: look
        for name, look in list(looks.items())[:MOST_NAMED]
        if len(names) > 1
    }
    marks |= {"told from none": Line(MUTED, "-", "|"), "may be none": Line(MUTED, DASH, "|")}
    canvas = Canvas(figsize=(4.5, 4.2 + 0.12 * len(marks)))
    canvas.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    axis = canvas.subplots()
    axis.margins(0.14)
    _draw_chances(axis, shown)
    for arrow in shown:
        series = arrow.dose.series
        look = looks[series.model if len(models) > 1 else series.probe]
        _draw(axis, arrow, look, labelled=len(shown) <= MOST_LABELLED)
    axis.autoscale_view()
    axis.set_xlim(*np.clip(axis.get_xlim(), 0, 102))
    axis.set_ylim(*np.clip(axis.get_ylim(), 0, 102))
    axis.set_xlabel("original-task accuracy, %  (← cost)")
    axis.set_ylabel("probe accuracy, %  (gain →)")
    figure.legend(canvas, marks)
    who = models[0] if len(models) == 1 else f"{len(models)} models"
    what = in_words(probes[0]) if len(probes) == 1 else f"{len(probes)} probes"
    named = f" The first {MOST_NAMED} of {len(names)} are named."
    return figure.drawn(
        "arrows",
        f"What inoculation gave and cost: {who}, {what}",
        "An arrow an inoculation, from the scores before it to those after k examples (means "
        "over seeds): up is what the probe gained, to the left what the original task lost. "
        "The whiskers at its head are the 95% intervals of the cost (across) and of the gain "
        "(up), each full where it can be told from none and broken where it cannot; the arrow "
        "is full only where both can. Without a whisker there is no interval; grey where the "
        "cost cannot be read."
        + figure.left_out(len(found), MOST)
        + (named if len(names) > MOST_NAMED else ""),
        canvas,
    )


def _draw(axis: Axes, arrow: Arrow, look: Line, labelled: bool) -> None:
    if not arrow.dose.interpretable:
        look = replace(look, color=MUTED)
    axis.update_datalim([arrow.before, arrow.after])
    hollow = replace(look, dash="none", face=PAPER)
    axis.plot(*arrow.before, **hollow.style, zorder=3)
    if arrow.before != arrow.after:
        is_sure = sum(is_told for *_, is_told in arrow.whiskers) == 2
        patch = FancyArrowPatch(
            arrow.before, arrow.after, arrowstyle="-|>", mutation_scale=10, color=look.color,
            linewidth=1.5, linestyle="-" if is_sure else DASH, shrinkA=3, shrinkB=0, zorder=2,
            fill=is_sure, url=LINK,
        )  # fmt: skip
        axis.add_patch(patch)
    for at, low, high, is_told in arrow.whiskers:
        ends = [(low, high), (arrow.after[1 - at],) * 2]
        whisker = Line(look.color, "-" if is_told else DASH, "_" if at else "|", size=6, width=1.0)
        axis.plot(*(ends[::-1] if at else ends), **whisker.style, alpha=0.75, zorder=1)
    if labelled:
        right = arrow.after[0] >= arrow.before[0]
        axis.annotate(
            f"k = {short_count(arrow.dose.dose)}", arrow.after, xytext=(5 if right else -5, 5),
            textcoords="offset points", fontsize=8, color=look.color,
            ha="left" if right else "right", url=LINK,
        )  # fmt: skip


def _draw_chances(axis: Axes, found: Sequence[Arrow]) -> None:
    """Chance levels, where all inoculations have the same."""
    probe, original = (
        {arrow.dose.floor(task) for arrow in found} for task in ("probe", "original")
    )
    if len(probe) == 1 and (level := next(iter(probe))) is not None:
        # With the empty choices that a model was given, where there are such.
        scored = {arrow.dose.mean("chance_probe") for arrow in found} - {level, None}
        levels = [percent(other) for other in scored]
        empty = f" ({' or '.join(levels)} with empty choices)" if levels else ""
        axis.axhline(100 * level, color=MUTED, linewidth=0.9, dashes=(1, 2))
        axis.text(
            0.005, 100 * level, f"chance {percent(level)}{empty}", fontsize=7.5, color=MUTED,
            ha="left", va="bottom", transform=axis.get_yaxis_transform(),
        )  # fmt: skip
    if len(original) == 1 and (level := next(iter(original))) is not None:
        axis.axvline(100 * level, color=MUTED, linewidth=0.9, dashes=(1, 2))
