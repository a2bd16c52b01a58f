"""The inoculation plot: probe and original-task accuracy against the dose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from probelight.reports.figure import (
    INK,
    LINES,
    MAX_PANELS,
    MUTED,
    PAPER,
    Figure,
    Line,
    dodge,
    drawn,
    end_labels,
    example_axis,
    head,
    left_out,
    limits,
    panels,
    styled,
)
from probelight.reports.inoculation.doses import Dose, doses
from probelight.reports.inoculation.figures.marks import (
    EXTRAS_NOTE,
    ORIGINAL,
    PROBE,
    extra_mark,
    extra_marks,
    plot_line,
)
from probelight.reports.inoculation.runs import Series, with_controls
from probelight.reports.kit.text import percent
from probelight.results.load import Results

ORIGINAL_METRICS = ("original_accuracy_before", "original_accuracy_after")
BOUNDED = ("probe_accuracy_before", "probe_accuracy", *ORIGINAL_METRICS)
CHANCES = ("chance_probe", "chance_original", "floor_probe", "floor_original")
BY_EXTRA = (
    " Marks of k > 0 have the shape of the chosen setting's extra (circle none, square x1, "
    "triangle x2); where there are several seeds a bar is their mean."
)
MODELS = (*((line.color, line.marker) for line in LINES), (INK, "v"))


@dataclass(frozen=True)
class Score:
    """One of the two scores of a model: how it is called and drawn, and its metrics."""

    name: str
    look: Line
    before: str
    after: str


def inoculation_figure(results: Results) -> Figure | None:
    """Probe and original-task accuracy against the dose (Richardson & Sabharwal 2020, figure 4)."""
    found = _panels(doses(with_controls(results)))
    if not found:
        return None
    shown = found[:MAX_PANELS]
    most = max(len(lines) for lines in shown)
    with styled():
        canvas, axes = panels(len(shown), height=2.8 if most == 1 else 3.1)
        everything = [dose for lines in shown for line in lines for dose in line]
        low, high = limits(
            [v for dose in everything for metric in BOUNDED for v in dose.values(metric)]
            + [v for dose in everything for metric in BOUNDED for v in dose.interval(metric)]
            + [v for dose in everything for metric in CHANCES for v in dose.values(metric)]
        )
        models = list(dict.fromkeys(line[0].series.model for lines in shown for line in lines))
        told = models if most > 1 else []
        extras = {run.extra for dose in everything for run in dose.runs}
        by_extra = extras != {"none"}
        for place, (axis, lines) in enumerate(zip(axes, shown, strict=True)):
            axis.set_ylim(low, high)
            _dose_panel(axis, lines, told, by_extra, (high - low) * 0.07)
            if place % 2 == 0:
                axis.set_ylabel("accuracy, %")
        marks = _model_marks(told, by_extra) + (extra_marks(extras) if by_extra else [])
        if marks:
            canvas.legend(handles=marks, loc="outside upper left", ncols=min(3, len(marks)))
        several = " Full lines are the probe, broken ones the original task." if told else ""
        added = f"{BY_EXTRA} {EXTRAS_NOTE}" if by_extra else ""
        return drawn(
            "inoculation",
            "What inoculation gave, and what it cost",
            "Hollow marks at k = 0 are the scores before inoculation, filled ones those of the "
            "chosen checkpoint (the best average on the selection splits over settings and epochs) "
            "after training on k probe examples (log axis), all on the report split. Whiskers are "
            "95% intervals; with several seeds the lines are means and small marks the seeds."
            f"{several}{added}" + left_out(len(found)),
            canvas,
        )


def _panels(lines: Mapping[Series, list[Dose]]) -> list[list[list[Dose]]]:
    """The lines of one panel belong together: one probe and original task, all models."""
    ordered = sorted(lines.items(), key=lambda item: item[0][1:])
    return [[line for _, line in own] for _, own in groupby(ordered, lambda item: item[0][1:])]


def _dose_panel(
    axis: Axes, lines: list[list[Dose]], models: Sequence[str], by_extra: bool, gap: float
) -> None:
    series = lines[0][0].series
    about = f"original task: {series.original_task or 'unnamed'}"
    about = f"{series.model} · {about}" if not models else about
    remarks = f" · {series.remarks}" if series.remarks else ""
    head(axis, series.probe.replace("_", " "), about + remarks)
    sizes = [0, *(dose.dose for line in lines for dose in line)]
    positions = example_axis(axis, sizes, "probe examples k")
    first, last = min(positions.values()), max(positions.values())
    labels = []
    for place, line in enumerate(lines):
        look = models.index(line[0].series.model) if models else None
        for rank, score in enumerate(_scores(look)):
            shift = dodge(2 * place + rank, 2 * len(lines), last - first)
            shifted = {k: x + shift for k, x in positions.items()}
            end = _dose_line(axis, line, score, shifted, by_extra)
            labels += [] if end is None else [(end, score.name, score.look.color)]
    labels += _chance_lines(axis, lines[0], first, last)
    several = any(len(dose.runs) > 1 for line in lines for dose in line)
    room = 0.075 if several else 0.04  # for the seeds' dots
    end_labels(axis, last + room * max(last - first, 1), labels, gap)
    if not all(dose.interpretable for line in lines for dose in line):
        axis.text(
            0.01, 0.985, "original task not above chance: cost not interpretable",
            transform=axis.transAxes, fontsize=7.5, color=MUTED, style="italic", va="top",
        )  # fmt: skip


def _scores(model: int | None) -> list[Score]:
    """Both scores; where several models share a panel, the colour is the model's."""
    probe, original = PROBE, ORIGINAL
    if model is not None:
        color, marker = MODELS[model % len(MODELS)]
        probe, original = Line(color, "-", marker), Line(color, (0, (4, 2)), marker)
    return [
        Score("probe", probe, "probe_accuracy_before", "probe_accuracy"),
        Score("original task", original, *ORIGINAL_METRICS),
    ]


def _model_marks(models: Sequence[str], by_extra: bool) -> list[Line2D]:
    size = 0 if by_extra else 4.8
    return [
        Line2D([], [], color=color, marker=marker, markersize=size, linewidth=1.7, label=model)
        for model, (color, marker) in zip(models, MODELS * len(models), strict=False)
    ]


def _dose_line(
    axis: Axes, line: list[Dose], score: Score, positions: Mapping[int, float], by_extra: bool
) -> float | None:
    """Draws one score of one model against the dose; returns where its line ends."""
    xs, ys = [], []
    look = replace(score.look, marker="") if by_extra else score.look
    starts = [value for dose in line for value in dose.values(score.before)]
    if starts:
        xs, ys = [positions[0]], [100 * fmean(starts)]
        _whisker(axis, positions[0], line[0], score.before, look)
        _seed_marks(axis, positions[0], line[0], score.before, look, by_extra=False)
    for dose in line:
        x, mean = positions[dose.dose], dose.mean(score.after)
        if mean is not None:
            xs.append(x)
            ys.append(100 * mean)
            _whisker(axis, x, dose, score.after, look)
            _seed_marks(axis, x, dose, score.after, look, by_extra)
            if by_extra:
                _mark_by_extra(axis, x, 100 * mean, dose, look)
    if not xs:
        return None
    plot_line(axis, xs, ys, look)
    if starts:
        axis.plot(
            xs[:1], ys[:1], marker=look.marker or "o", markersize=5.5, color=PAPER,
            markeredgecolor=look.color, markeredgewidth=1.3, linestyle="none",
        )  # fmt: skip
    return ys[-1]


def _mark_by_extra(axis: Axes, x: float, y: float, dose: Dose, look: Line) -> None:
    """The point of a dose: the extra of its one seed, or a bar, for seeds may differ in it."""
    alone = len(dose.runs) == 1
    axis.plot(
        [x], [y], marker=extra_mark(dose.runs[0].extra) if alone else "_", color=look.color,
        markersize=4.8 if alone else 6.5, markeredgewidth=1.0 if alone else 2.2, linestyle="none",
    )  # fmt: skip


def _chance_lines(
    axis: Axes, line: list[Dose], first: float, last: float
) -> list[tuple[float, str, str]]:
    """Draws the chance levels; one line where both tasks have the same."""
    probe, original = line[0].floor("probe"), line[0].floor("original")
    levels = [(probe, "chance, probe"), (original, "chance, original")]
    if probe == original:
        levels = [(probe, "chance")]
    labels = []
    for level, name in levels:
        if level is not None:
            axis.plot([first, last], [100 * level] * 2, color=MUTED, linewidth=0.9, dashes=(1, 2))
            labels.append((100 * level, f"{name} {percent(level)}", MUTED))
    return labels


def _whisker(axis: Axes, x: float, dose: Dose, metric: str, look: Line) -> None:
    low, high = dose.interval(metric)
    if low is not None and high is not None:
        axis.plot([x, x], [100 * low, 100 * high], color=look.color, linewidth=0.9, alpha=0.55)


def _seed_marks(axis: Axes, x: float, dose: Dose, metric: str, look: Line, by_extra: bool) -> None:
    """A small mark for each seed beside the mean, whose mark would hide it."""
    values = dose.values(metric)
    # All seeds start from the same model; equal scores of several settings are worth a mark each.
    if len(values) < 2 or (not by_extra and len(set(values)) < 2):
        return
    canvas = axis.get_figure(root=True)
    assert canvas is not None
    beside = ScaledTranslation(6 / 72, 0, canvas.dpi_scale_trans)
    for run in dose.runs:
        if (value := run.value(metric)) is not None:
            axis.plot(
                [x], [100 * value], marker=extra_mark(run.extra) if by_extra else "o",
                markersize=3.2 if by_extra else 1.9, color=look.color, markeredgecolor=PAPER,
                markeredgewidth=0.3 if by_extra else 0, linestyle="none",
                transform=axis.transData + beside,
            )  # fmt: skip
