"""An arrow an inoculation: what the probe gained against what the original task lost.

Each of the two has a whisker at the head, its 95% interval, and each shows whether it can be told
from none: the whisker is broken where it cannot, and the arrow is full only where both can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from probelight.reports import figure
from probelight.reports.figure import INK, LINES, MUTED, PAPER, Figure, Line
from probelight.reports.words import in_words, percent
from probelight.results.load import Results

if TYPE_CHECKING:
    from probelight.reports.inoculation.doses import Dose

MOST = 200  # arrows
MOST_LABELLED = 12  # arrows that have their dose at the head
MOST_NAMED = 8  # of a legend
LONG = 18  # characters of a name, of which two do not fit side by side
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

    @property
    def is_sure(self) -> bool:
        """Whether gain and cost can both be told from none."""
        return len(self.whiskers) == len(self.before) and all(w[-1] for w in self.whiskers)


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
    with figure.styled():
        marks = [
            Line2D(
                [], [], color=look.color, marker=look.marker, markersize=5,
                label=in_words(name) if names is probes else name,
            )
            for name, look in list(looks.items())[:MOST_NAMED]
            if len(names) > 1
        ]  # fmt: skip
        marks += [
            Line2D([], [], color=MUTED, marker="|", linestyle="-", label="told from none"),
            Line2D([], [], color=MUTED, marker="|", linestyle=DASH, label="may be none"),
        ]
        columns = 2 if max(map(len, names)) <= LONG else 1
        canvas = Canvas(figsize=(4.5, 4.2 + 0.18 * len(marks) / columns))
        canvas.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
        axis = canvas.subplots()
        axis.set_xlim(*_limits(shown, 0, "original"))
        axis.set_ylim(*_limits(shown, 1, "probe"))
        _draw_chances(axis, shown)
        for arrow in shown:
            series = arrow.dose.series
            look = looks[series.model if len(models) > 1 else series.probe]
            _draw(axis, arrow, look, labelled=len(shown) <= MOST_LABELLED)
        axis.set_xlabel("original-task accuracy, %  (← cost)")
        axis.set_ylabel("probe accuracy, %  (gain →)")
        canvas.legend(handles=marks, loc="outside upper left", ncols=columns)
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


def _limits(found: Sequence[Arrow], side: int, task: str) -> tuple[float, float]:
    values = [end[side] / 100 for arrow in found for end in (arrow.before, arrow.after)]
    for arrow in found:
        values += [end / 100 for at, *ends, _ in arrow.whiskers if at == side for end in ends]
    return figure.limits([*values, *(arrow.dose.floor(task) for arrow in found)])


def _draw(axis: Axes, arrow: Arrow, look: Line, labelled: bool) -> None:
    color = look.color if arrow.dose.interpretable else MUTED
    axis.plot(
        *arrow.before, marker=look.marker, markersize=5, color=PAPER, markeredgecolor=color,
        markeredgewidth=1.2, linestyle="none", zorder=3,
    )  # fmt: skip
    if arrow.before != arrow.after:
        patch = FancyArrowPatch(
            arrow.before, arrow.after, arrowstyle="-|>", mutation_scale=10, color=color,
            linewidth=1.5, linestyle="-" if arrow.is_sure else DASH, shrinkA=3, shrinkB=0, zorder=2,
            fill=arrow.is_sure,
        )  # fmt: skip
        patch.set_url(LINK)
        axis.add_patch(patch)
    for at, low, high, is_told in arrow.whiskers:
        ends = [(low, high), (arrow.after[1 - at],) * 2]
        axis.plot(
            *(ends if at == 0 else ends[::-1]), color=color, linewidth=1.0, alpha=0.75, zorder=1,
            linestyle="-" if is_told else DASH, marker="|" if at == 0 else "_", markersize=6,
        )  # fmt: skip
    if labelled:
        right = arrow.after[0] >= arrow.before[0]
        axis.annotate(
            f"k = {figure.short_count(arrow.dose.dose)}", arrow.after,
            xytext=(5 if right else -5, 5), textcoords="offset points", fontsize=8, color=color,
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
