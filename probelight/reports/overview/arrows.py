"""One arrow an inoculation: what the probe gained against what the original task lost.

Each of the two has a whisker at the head, its 95% interval, and each says for itself whether it can
be told from none: the whisker is broken where it cannot, and the arrow is full only where both can.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from probelight.reports.figure import (
    INK,
    LINES,
    MUTED,
    PAPER,
    Figure,
    Line,
    drawn,
    left_out,
    limits,
    short_count,
    styled,
)
from probelight.reports.inoculation.doses import Dose, doses
from probelight.reports.inoculation.runs import inoculations
from probelight.reports.kit.measured import Bounds
from probelight.reports.kit.text import in_words, percent
from probelight.results.load import Results

MOST = 200  # arrows
MOST_LABELLED = 12  # arrows that have their dose beside the head
MOST_NAMED = 8  # of a legend
LONG = 18  # characters of a name, of which two do not fit side by side
LINK = "#inoculation"
DASH = (0, (2, 1.5))
BEFORE = ("original_accuracy_before", "probe_accuracy_before")
AFTER = ("original_accuracy_after", "probe_accuracy")
LOOKS = (*LINES, Line(INK, "-", "v"))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True)
class Arrow:
    """The mean over seeds of one dose: (original-task, probe) accuracy before and after."""

    dose: Dose
    before: tuple[float, float]
    after: tuple[float, float]

    @property
    def cost(self) -> Bounds:
        """Ends of the original task's score, in per cent, by the interval of the cost."""
        cost = self.dose.estimate("inoculation_cost")
        if cost is None or cost.ci_low is None or cost.ci_high is None:
            return None, None
        if not self.dose.interpretable:
            return None, None
        return self.before[0] - 100 * cost.ci_high, self.before[0] - 100 * cost.ci_low

    @property
    def gain(self) -> Bounds:
        """Ends of the probe's score, in per cent, by the interval of the gain."""
        gain = self.dose.gain
        if gain is None or gain.ci_low is None or gain.ci_high is None:
            return None, None
        return self.before[1] + 100 * gain.ci_low, self.before[1] + 100 * gain.ci_high

    @property
    def whiskers(self) -> list[tuple[int, float, float, bool]]:
        """Axis (0 is the cost's), both ends, and whether it can be told from none."""
        return [
            (axis, low, high, not low <= self.before[axis] <= high)
            for axis, (low, high) in enumerate((self.cost, self.gain))
            if low is not None and high is not None
        ]

    @property
    def is_sure(self) -> bool:
        """Whether gain and cost can both be told from none."""
        told = [is_told for *_, is_told in self.whiskers]
        return len(told) == len(self.before) and all(told)


def arrows_figure(results: Results) -> Figure | None:
    """Every inoculation as an arrow from the scores before it to those after it."""
    found = [arrow for line in doses(inoculations(results)).values() for arrow in _arrows(line)]
    if not found:
        return None
    shown = found[:MOST]
    models = list(dict.fromkeys(arrow.dose.series.model for arrow in shown))
    probes = list(dict.fromkeys(arrow.dose.series.probe for arrow in shown))
    names = models if len(models) > 1 else probes
    looks = {name: _look(place) for place, name in enumerate(names)}
    with styled():
        marks = _marks(looks, in_words if names is probes else str) if len(names) > 1 else []
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
        _chances(axis, shown)
        for arrow in shown:
            series = arrow.dose.series
            look = looks[series.model if len(models) > 1 else series.probe]
            _draw(axis, arrow, look, labelled=len(shown) <= MOST_LABELLED)
        axis.set_xlabel("original-task accuracy, %  (← cost)")
        axis.set_ylabel("probe accuracy, %  (gain →)")
        canvas.legend(handles=marks, loc="outside upper left", ncols=columns)
        caption = _caption(len(found), len(names))
        return drawn("arrows", _title(models, probes), caption, canvas)


def _arrows(line: Sequence[Dose]) -> list[Arrow]:
    """The arrows of a line; a dose that lacks one of the four scores has none."""
    found = []
    for dose in line:
        before = [100 * mean for metric in BEFORE if (mean := dose.mean(metric)) is not None]
        after = [100 * mean for metric in AFTER if (mean := dose.mean(metric)) is not None]
        if len(before) == len(after) == len(BEFORE):
            found.append(Arrow(dose, (before[0], before[1]), (after[0], after[1])))
    return found


def _look(place: int) -> Line:
    """Colours and marks go round at different paces, so that many models stay apart."""
    return Line(LOOKS[place % len(LOOKS)].color, "-", MARKERS[place % len(MARKERS)])


def _limits(found: Sequence[Arrow], side: int, task: str) -> tuple[float, float]:
    values = [end[side] / 100 for arrow in found for end in (arrow.before, arrow.after)]
    for arrow in found:
        values += [end / 100 for at, *ends, _ in arrow.whiskers if at == side for end in ends]
    return limits([*values, *(arrow.dose.floor(task) for arrow in found)])


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
            f"k = {short_count(arrow.dose.dose)}", arrow.after, xytext=(5 if right else -5, 5),
            textcoords="offset points", fontsize=8, color=color, ha="left" if right else "right",
            url=LINK,
        )  # fmt: skip


def _chances(axis: Axes, found: Sequence[Arrow]) -> None:
    """Chance levels, where all inoculations have the same."""
    probe = {arrow.dose.floor("probe") for arrow in found}
    original = {arrow.dose.floor("original") for arrow in found}
    scored = {arrow.dose.mean("chance_probe") for arrow in found} - probe
    level = probe.pop() if len(probe) == 1 else None
    if level is not None:
        axis.axhline(100 * level, color=MUTED, linewidth=0.9, dashes=(1, 2))
        axis.text(
            0.005, 100 * level, f"chance {percent(level)}{_empty(scored)}", fontsize=7.5,
            color=MUTED, ha="left", va="bottom", transform=axis.get_yaxis_transform(),
        )  # fmt: skip
    level = original.pop() if len(original) == 1 else None
    if level is not None:
        axis.axvline(100 * level, color=MUTED, linewidth=0.9, dashes=(1, 2))


def _empty(scored: Collection[float | None]) -> str:
    """Chance with the empty choices that a model was given, where there are such."""
    levels = [percent(level) for level in scored if level is not None]
    return f" ({' or '.join(levels)} with empty choices)" if levels else ""


def _marks(looks: dict[str, Line], say: Callable[[str], str]) -> list[Line2D]:
    return [
        Line2D([], [], color=look.color, marker=look.marker, markersize=5, label=say(name))
        for name, look in list(looks.items())[:MOST_NAMED]
    ]


def _title(models: Sequence[str], probes: Sequence[str]) -> str:
    who = models[0] if len(models) == 1 else f"{len(models)} models"
    what = in_words(probes[0]) if len(probes) == 1 else f"{len(probes)} probes"
    return f"What inoculation gave and cost: {who}, {what}"


def _caption(number: int, num_names: int) -> str:
    named = f" The first {MOST_NAMED} of {num_names} are named." if num_names > MOST_NAMED else ""
    return (
        "An arrow an inoculation, from the scores before it to those after k examples (means over "
        "seeds): up is what the probe gained, to the left what the original task lost. The "
        "whiskers at its head are the 95% intervals of the cost (across) and of the gain (up), "
        "each full where it can be told from none and broken where it cannot; the arrow is full "
        "only where both can. Without a whisker there is no interval; grey where the cost cannot "
        "be read."
        f"{left_out(number, MOST)}{named}"
    )
