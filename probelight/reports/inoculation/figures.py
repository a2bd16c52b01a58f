"""The figures of inoculation: the scores against the dose, and the way to the chosen checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation

from probelight.reports import figure as look
from probelight.reports.figure import INK, LINES, MAX_PANELS, MUTED, PAPER, Figure, Line
from probelight.reports.inoculation.doses import Dose, doses
from probelight.reports.inoculation.runs import Inoculation, with_controls
from probelight.reports.words import count, percent, rate
from probelight.results.load import Results

EXTRAS = {"none": "o", "x1": "s", "x2": "^"}  # marks of add-some
EXTRAS_NOTE = (
    "Extra: original-task examples added to the probe's, none, as many (x1) or twice as many (x2, "
    "at most 3,000)."
)
BY_EXTRA = (
    " Marks of k > 0 have the shape of the chosen setting's extra (circle none, square x1, "
    "triangle x2); where there are several seeds a bar is their mean."
)
TASKS = ("probe", "original task")
METRICS = (  # of each task, before and after
    ("probe_accuracy_before", "probe_accuracy"),
    ("original_accuracy_before", "original_accuracy_after"),
)
CHANCES = ("chance_probe", "chance_original", "floor_probe", "floor_original")
MODELS = (*((line.color, line.marker) for line in LINES), (INK, "v"))
AVERAGE = Line(MUTED, (0, (1.2, 1.6)), "^")


def inoculation_figure(results: Results) -> Figure | None:
    """Draw both accuracies against the dose (Richardson & Sabharwal 2020, figure 4)."""
    # A panel is one probe and original task, with all models.
    lines = sorted(doses(with_controls(results)).items(), key=lambda item: item[0][1:])
    found = [[line for _, line in panel] for _, panel in groupby(lines, lambda item: item[0][1:])]
    if not found:
        return None
    shown = found[:MAX_PANELS]
    several = any(len(panel) > 1 for panel in shown)
    everything = [dose for panel in shown for line in panel for dose in line]
    models = list(dict.fromkeys(dose.series.model for dose in everything)) if several else []
    extras = {run.extra for dose in everything for run in dose.runs}
    by_extra = extras != {"none"}
    bounded = [metric for metrics in METRICS for metric in metrics]
    low, high = look.limits(
        [v for dose in everything for metric in [*bounded, *CHANCES] for v in dose.values(metric)]
        + [v for dose in everything for metric in bounded for v in dose.interval(metric)]
    )
    with look.styled():
        canvas, axes = look.panels(len(shown), height=3.1 if several else 2.8)
        for place, (axis, panel) in enumerate(zip(axes, shown, strict=True)):
            axis.set_ylim(low, high)
            _dose_panel(axis, panel, models, by_extra, (high - low) * 0.07)
            if place % 2 == 0:
                axis.set_ylabel("accuracy, %")
        size = 0 if by_extra else 4.8
        marks = [
            Line2D([], [], color=color, marker=mark, markersize=size, linewidth=1.7, label=model)
            for model, (color, mark) in zip(models, MODELS * len(models), strict=False)
        ]
        marks += extra_marks(extras) if by_extra else []
        if marks:
            canvas.legend(handles=marks, loc="outside upper left", ncols=min(3, len(marks)))
        styles = " Full lines are the probe, broken ones the original task." if several else ""
        added = f"{BY_EXTRA} {EXTRAS_NOTE}" if by_extra else ""
        return look.drawn(
            "inoculation",
            "What inoculation gave, and what it cost",
            "Hollow marks at k = 0 are the scores before inoculation, filled ones those of the "
            "chosen checkpoint (the best average on the selection splits over settings and epochs) "
            "after training on k probe examples (log axis), all on the report split. Whiskers are "
            "95% intervals; with several seeds the lines are means and small marks the seeds."
            f"{styles}{added}" + look.left_out(len(found)),
            canvas,
        )


def _dose_panel(
    axis: Axes, lines: list[list[Dose]], models: Sequence[str], by_extra: bool, gap: float
) -> None:
    series = lines[0][0].series
    about = f"original task: {series.original_task or 'unnamed'}"
    about = f"{series.model} · {about}" if not models else about
    remarks = f" · {series.remarks}" if series.remarks else ""
    look.head(axis, series.probe.replace("_", " "), about + remarks)
    sizes = [0, *(dose.dose for line in lines for dose in line)]
    positions = look.example_axis(axis, sizes, "probe examples k")
    first, last = min(positions.values()), max(positions.values())
    labels = []
    for place, line in enumerate(lines):
        looks = LINES[:2]
        if models:  # that share the panel: the colour is the model's, the dash the task's
            color, marker = MODELS[models.index(line[0].series.model) % len(MODELS)]
            looks = Line(color, "-", marker), Line(color, (0, (4, 2)), marker)
        for rank, (task, metrics) in enumerate(zip(TASKS, METRICS, strict=True)):
            shift = look.dodge(2 * place + rank, 2 * len(lines), last - first)
            shifted = {k: x + shift for k, x in positions.items()}
            end = _dose_line(axis, line, metrics, looks[rank], shifted, by_extra)
            labels += [] if end is None else [(end, task, looks[rank].color)]
    probe, original = (lines[0][0].floor(task) for task in ("probe", "original"))
    levels = [(probe, "chance, probe"), (original, "chance, original")]
    for level, name in [(probe, "chance")] if probe == original else levels:
        if level is not None:
            axis.plot([first, last], [100 * level] * 2, color=MUTED, linewidth=0.9, dashes=(1, 2))
            labels.append((100 * level, f"{name} {percent(level)}", MUTED))
    several = any(len(dose.runs) > 1 for line in lines for dose in line)
    room = 0.075 if several else 0.04  # for the seeds' dots
    look.end_labels(axis, last + room * max(last - first, 1), labels, gap)
    if not all(dose.interpretable for line in lines for dose in line):
        axis.text(
            0.01, 0.985, "original task not above chance: cost not interpretable",
            transform=axis.transAxes, fontsize=7.5, color=MUTED, style="italic", va="top",
        )  # fmt: skip


def _dose_line(
    axis: Axes,
    line: list[Dose],
    metrics: tuple[str, str],
    style: Line,
    positions: Mapping[int, float],
    by_extra: bool,
) -> float | None:
    """Draw one score of one model against the dose; return where its line ends.

    Marks have the shape of what was added where runs differ in that.
    """
    starts = [value for dose in line for value in dose.values(metrics[0])]
    points = [(0, line[0], metrics[0], fmean(starts) if starts else None, False)]
    points += [(dose.dose, dose, metrics[1], dose.mean(metrics[1]), by_extra) for dose in line]
    xs, ys = [], []
    for k, dose, metric, mean, has_extra in points:
        if mean is None:
            continue
        xs.append(positions[k])
        ys.append(100 * mean)
        _draw_spread(axis, xs[-1], dose, metric, style.color, has_extra)
        if has_extra:  # a bar for several seeds, which may differ in it
            alone = len(dose.runs) == 1
            axis.plot(
                xs[-1:], ys[-1:], marker=extra_mark(dose.runs[0].extra) if alone else "_",
                color=style.color, markersize=4.8 if alone else 6.5,
                markeredgewidth=1.0 if alone else 2.2, linestyle="none",
            )  # fmt: skip
    if not xs:
        return None
    marker = "" if by_extra else style.marker
    _draw_line(axis, xs, ys, Line(style.color, style.dash, marker))
    if starts:
        axis.plot(
            xs[:1], ys[:1], marker=marker or "o", markersize=5.5, color=PAPER,
            markeredgecolor=style.color, markeredgewidth=1.3, linestyle="none",
        )  # fmt: skip
    return ys[-1]


def _draw_spread(axis: Axes, x: float, dose: Dose, metric: str, color: str, by_extra: bool) -> None:
    """Draw the interval of a dose and, beside the mean, a small mark for each seed."""
    low, high = dose.interval(metric)
    if low is not None and high is not None:
        axis.plot([x, x], [100 * low, 100 * high], color=color, linewidth=0.9, alpha=0.55)
    values = dose.values(metric)
    # All seeds start from the same model; equal scores of several settings are worth a mark each.
    if len(values) < 2 or (not by_extra and len(set(values)) < 2):
        return
    canvas = axis.get_figure(root=True)
    assert canvas is not None
    beside = ScaledTranslation(6 / 72, 0, canvas.dpi_scale_trans)
    for run in dose.runs:
        if metric in run.measured:
            axis.plot(
                [x], [100 * run.measured[metric].value],
                marker=extra_mark(run.extra) if by_extra else "o",
                markersize=3.2 if by_extra else 1.9, color=color, markeredgecolor=PAPER,
                markeredgewidth=0.3 if by_extra else 0, linestyle="none",
                transform=axis.transData + beside,
            )  # fmt: skip


def trajectory_figure(results: Results) -> Figure | None:
    """Draw the scores on the selection splits, epoch by epoch, and the checkpoint chosen."""
    every = with_controls(results)
    cells = [dose.runs[0] for line in doses(every).values() for dose in line]
    cells = [cell for cell in cells if len(cell.trajectory.get("aggregate", {})) > 1]
    if not cells:
        return None
    shown = cells[:MAX_PANELS]
    scores = [v for c in shown for line in c.trajectory.values() for v in line.values()]
    low, high = look.limits(scores)
    top = high + 0.12 * (high - low)  # for the label of the chosen checkpoint
    with look.styled():
        canvas, axes = look.panels(len(shown), height=2.8)
        for place, (axis, cell) in enumerate(zip(axes, shown, strict=True)):
            axis.set_ylim(low, top)
            _trajectory_panel(axis, cell, (top - low) * 0.075)
            axis.set_yticks([tick for tick in axis.get_yticks() if low <= tick <= min(high, 100)])
            if place % 2 == 0:
                axis.set_ylabel("accuracy, %")
        is_part = len(cells) < sum(cell.chosen for cell in every)
        seeds = " One seed of each dose is drawn." if is_part else ""
        return look.drawn(
            "selection",
            "How the checkpoint was chosen",
            "Accuracy on the selection items, after each epoch (0 = before inoculation, which is "
            "no candidate). They share no item with the report, but where a panel says that the "
            "checkpoint was chosen on the reported items (the probe's). The ring marks the best "
            "average of the two: the checkpoint that is reported."
            + seeds
            + look.left_out(len(cells)),
            canvas,
        )


def _trajectory_panel(axis: Axes, cell: Inoculation, gap: float) -> None:
    series = cell.series
    setting = [
        f"rate {rate(cell.learning_rate)}",
        "" if cell.seed is None else f"seed {cell.seed}",
        "" if cell.extra == "none" else f"extra {cell.extra}",
        series.remarks,
    ]
    about = (
        f"{series.model} · original task: {series.original_task or 'unnamed'}\n"
        f"{' · '.join(filter(None, setting))}"
    )
    look.head(axis, f"{series.probe.replace('_', ' ')}, k = {count(cell.dose)}", about)
    labels = []
    for style, metric, name in (
        (LINES[0], "probe_accuracy", "probe"),
        (LINES[1], "original_accuracy", "original"),
        (AVERAGE, "aggregate", "average"),
    ):
        if line := cell.trajectory.get(metric):
            _draw_line(axis, [*map(float, line)], [100 * v for v in line.values()], style)
            labels.append((100 * line[max(line)], name, style.color))
    chosen = cell.selected_on("aggregate")
    if cell.epoch is not None and chosen is not None:
        top = axis.get_ylim()[1]
        axis.plot([cell.epoch] * 2, [100 * chosen, top], color=MUTED, linewidth=0.7, zorder=1)
        draw_ring(axis, cell.epoch, 100 * chosen)
        axis.text(
            cell.epoch, top, "chosen", fontsize=7.5, ha="center", va="top",
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0},
        )  # fmt: skip
    epochs = [*cell.trajectory["aggregate"]]
    axis.set_xticks(epochs)
    axis.set_xlabel("epoch")
    axis.grid(axis="x", visible=False)
    span = epochs[-1] - epochs[0]
    axis.set_xlim(epochs[0] - 0.06 * span, epochs[-1] + 0.34 * span)
    axis.spines["bottom"].set_bounds(epochs[0] - 0.06 * span, epochs[-1])
    look.end_labels(axis, epochs[-1] + 0.07 * span, labels, gap)


def _draw_line(axis: Axes, xs: list[float], ys: list[float], style: Line) -> None:
    axis.plot(
        xs, ys, color=style.color, linestyle=style.dash, linewidth=1.7, marker=style.marker,
        markersize=4.8,
    )  # fmt: skip


def draw_ring(axis: Axes, x: float, y: float) -> None:
    """Draw a ring about the checkpoint that was chosen."""
    axis.plot(
        [x], [y], marker="o", markersize=11, color=INK, markerfacecolor="none",
        markeredgewidth=1.2, zorder=5,
    )  # fmt: skip


def extra_mark(extra: str) -> str:
    """Return the mark of an add-some setting."""
    return EXTRAS.get(extra, "D")


def extra_marks(extras: Collection[str]) -> list[Line2D]:
    """Return what the marks of these add-some settings mean, for a legend."""
    known = [*EXTRAS, *sorted(set(extras) - set(EXTRAS))]
    return [
        Line2D(
            [], [], marker=extra_mark(extra), color=INK, markersize=5, linestyle="none",
            label=f"extra {extra}",
        )
        for extra in known
        if extra in extras
    ]  # fmt: skip
