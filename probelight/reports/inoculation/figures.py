"""The figures of inoculation: scores against the dose, the way to the checkpoint, gain and cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain, cycle, groupby, product
from typing import TYPE_CHECKING

from probelight.metrics.front import TradeOff
from probelight.reports import figure as figures
from probelight.reports.charts import MOST_MODELS, Panel, Trace, in_panels, line_figure
from probelight.reports.figure import INK, LINES, MUTED, PAPER, Figure, Line, model_looks
from probelight.reports.inoculation.keeping import MEASURED, NONE, MethodSetting, comparisons
from probelight.reports.inoculation.runs import TASKS, Dose, DoseRun, dose_lines
from probelight.reports.numbers import Estimate, count, dotted, in_words, rate, replayed
from probelight.results.load import RunSet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXTRAS = {"none": "o", "x1": "s", "x2": "^"}  # marks of add-some
EXTRAS_NOTE = (
    "Replay: original-task examples mixed into the dose, as many as probe examples (x1) or twice "
    "as many (x2, at most 3,000)."
)
SELECTED = {  # lines on the way to the chosen checkpoint
    "probe": ("probe_accuracy", LINES[0]),
    "original": ("original_accuracy", LINES[1]),
    "average": ("aggregate", Line(MUTED, (0, (1.2, 1.6)), "^")),
}
RING = Line(INK, "none", "o", "none", size=11)  # about the chosen checkpoint
DODGE = 2  # points between the whiskers of neighbouring lines
SIZES = (4.8, 6.2, 7.6)  # of marks, by rising rate


def inoculation_figure(results: RunSet) -> Figure | None:
    """Draw both accuracies against the dose (Richardson & Sabharwal 2020, figure 4)."""
    by_series = sorted(dose_lines(results).items(), key=lambda item: item[0][1:])
    if not by_series:
        return None
    # A panel is one probe and original task, with its models.
    groups = [
        [line for _, line in page]
        for _, group in groupby(by_series, lambda item: item[0][1:])
        for page in in_panels(list(group))
    ]
    several = any(len(group) > 1 for group in groups)
    looks = model_looks(dict.fromkeys(series.model for series, _ in by_series) if several else ())
    extras = {run.extra for _, line in by_series for dose in line for run in dose.runs}
    by_extra = extras != {"none"}
    marks = looks
    if by_extra:
        marks = {model: replace(look, marker="") for model, look in looks.items()}
        marks |= extra_marks(extras)
    styles_note = " Solid lines are the probe, dashed ones the original task." if several else ""
    replay_note = (
        " The shape of a mark at k > 0 shows the replay of the chosen setting; with several seeds, "
        f"a bar is their mean. {EXTRAS_NOTE}"
    )
    return line_figure(
        "inoculation",
        "Accuracy on both tasks after fine-tuning on k examples",
        "A model that was trained on an original task is fine-tuned on k examples of the probe "
        "(log axis). Hollow marks at k = 0 are the accuracies before. Filled marks are those of "
        "the chosen checkpoint: the best average of both tasks on the selection items, over "
        "settings and epochs. All accuracies are on the report items. Whiskers are 95% intervals; "
        "with several seeds, lines are means and small marks seeds."
        f"{styles_note}{replay_note if by_extra else ''}",
        [_dose_panel(group, looks, by_extra) for group in groups],
        "probe examples k",
        looks=marks,
    )


def _dose_panel(group: list[list[Dose]], looks: Mapping[str, Line], by_extra: bool) -> Panel:
    """Make the panel of several models' doses; with `looks`, each model has a color."""
    first = group[0][0]
    series = first.series
    traces = []
    for rank, (line, task) in enumerate(product(group, TASKS)):
        look = LINES[rank % 2]
        if looks:
            look = replace(looks[line[0].series.model], dash=look.dash)
        traces += _dose_traces(line, task, look, DODGE * (rank + 0.5 - len(group)), by_extra)
    origin = f"original task: {series.original_task or 'unnamed'}"
    models = ", ".join(line[0].series.model for line in group)
    is_named = not looks or len(looks) > MOST_MODELS  # looks come again
    subtitle = dotted(models if is_named else "", origin, series.remarks)
    if not all(dose.interpretable for line in group for dose in line):
        subtitle += "\noriginal task not above chance: cost not interpretable"
    chances = {f"chance, {task}": first.floor(task) for task in ("probe", "original")}
    if len({*chances.values()}) == 1:
        chances = {"chance": first.floor("probe")}
    return Panel(in_words(series.probe), subtitle, traces, chances)


def _dose_traces(
    line: list[Dose], task: str, look: Line, shift: float, by_extra: bool
) -> list[Trace]:
    """Make the line of a task, its marks, and small marks of the seeds right of each mean."""
    start, end = TASKS[task]
    points, marks = [], []
    for k, dose, metric in [(0, line[0], start), *((dose.dose, dose, end) for dose in line)]:
        if (estimate := dose.estimate(metric)) is None:
            continue
        points.append((k, estimate))
        by_seed = [
            (run.report_rows[metric].value, extra_mark(run.extra) if by_extra and k else "o")
            for run in dose.runs
        ]
        mark = replace(look, dash="none")
        if k == 0:
            mark = replace(mark, marker="o" if by_extra else look.marker, face=PAPER, size=5.5)
        elif by_extra:
            mark = replace(mark, marker="_" if len(by_seed) > 1 else by_seed[0][1])
        marks.append(Trace([(k, Estimate(estimate.value))], mark, "", shift))
        # All seeds start from one model; equal scores of several settings are worth a mark each.
        if len({*by_seed}) > 1 or (by_extra and k and len(by_seed) > 1):
            size = 2.0 if by_extra and k else 1.2
            marks += [
                Trace([(k, Estimate(value))], replace(mark, marker=shape, size=size), "", shift + 6)
                for value, shape in by_seed
            ]
    if points:
        marks.append(Trace(points, replace(look, marker=""), task, shift, whiskers=True))
    return marks


def trajectory_figure(results: RunSet) -> Figure | None:
    """Draw the scores on the selection splits, epoch by epoch, and the checkpoint chosen."""
    doses = [*chain(*dose_lines(results).values())]
    shown_runs = [dose.runs[0] for dose in doses]
    shown_runs = [run for run in shown_runs if len(run.trajectory.get("aggregate", {})) > 1]
    if not shown_runs:
        return None
    is_partial = len(shown_runs) < sum(len(dose.runs) for dose in doses)
    seeds = " One seed of each dose is shown." if is_partial else ""
    return line_figure(
        "selection",
        "How the checkpoint was chosen",
        "Accuracy on the selection items after each epoch. Epoch 0 is the model before "
        "inoculation, which cannot be chosen. Selection items are never report items, unless a "
        "panel says that the checkpoint was chosen on the reported items of the probe. The ring "
        f"marks the best average of the two tasks: the reported checkpoint.{seeds}",
        [_trajectory_panel(run) for run in shown_runs],
        "epoch",
        looks={"chosen": RING},
        log=False,
    )


def _trajectory_panel(run: DoseRun) -> Panel:
    series = run.series
    names = dotted(series.model, f"original task: {series.original_task or 'unnamed'}")
    setting = dotted(
        f"rate {rate(run.learning_rate)}",
        "" if run.seed is None else f"seed {run.seed}",
        "" if run.extra == "none" else replayed(run.extra),
        series.remarks,
    )
    traces = []
    chosen = run.selected_on("aggregate")
    if run.epoch is not None and chosen is not None:
        traces.append(Trace([(run.epoch, Estimate(chosen))], RING))
    for label, (metric, look) in SELECTED.items():
        points = [(n, Estimate(value)) for n, value in run.trajectory.get(metric, {}).items()]
        traces += [Trace(points, look, label)] if points else []
    title = f"{in_words(series.probe)}, k = {count(run.dose)}"
    return Panel(title, f"{names}\n{setting}", traces)


def extra_mark(extra: str) -> str:
    """Return the mark of an add-some setting."""
    return EXTRAS.get(extra, "D")


def extra_marks(extras: Collection[str]) -> dict[str, Line]:
    """Return the marks of these add-some settings, for a legend."""
    ordered = [extra for extra in EXTRAS if extra in extras] + sorted({*extras} - {*EXTRAS})
    return {replayed(extra): Line(INK, "none", extra_mark(extra)) for extra in ordered}


@figures.styled()
def keeping_figure(results: RunSet) -> Figure | None:
    """Draw the cost of each method's settings against their gain, one panel per dose."""
    compared = [comparison for comparison in comparisons(results) if comparison.methods]
    if not compared:
        return None
    names = dict.fromkeys(n for comparison in compared for n in comparison.methods if n != NONE)
    lines = [replace(line, face=face) for face in ("", PAPER) for line in LINES]
    looks = {NONE: Line(INK, "-", "o", PAPER)}
    looks |= dict(zip(names, cycle(lines), strict=False))
    ring = Line(INK, "none", "o", "none", size=9.5)
    visible = compared[: figures.MAX_PANELS]
    canvas, axes = figures.panels(len(visible), height=3.4, shared=False)
    for axis, comparison in zip(axes, visible, strict=True):
        series, refused = comparison.series, comparison.refused
        subtitle = dotted(series.about, f"not compared: {refused}" if refused else "")
        dose = f", k = {count(comparison.dose)}" if comparison.dose else ""
        figures.head(axis, f"{in_words(series.probe)}{dose}", subtitle)
        axis.set_xlabel("gain on the probe (points)")
        axis.set_ylabel("cost on the original task (points)")
        for draw_zero in (axis.axhline, axis.axvline):
            draw_zero(0, color=MUTED, linewidth=0.7, zorder=1)
        for name, points in comparison.methods.items():
            _draw_method(axis, points, looks[name])
        for name, cut in comparison.cuts.items():
            gain = 100 * comparison.gain
            axis.axvline(gain, color=MUTED, linewidth=1.0, dashes=(1, 2))
            # Neighbours of two rates are on no line.
            ends = [comparison.methods[name][index][1] for index in cut.ends]
            xs, ys = zip(*((100 * end.gain, 100 * end.cost) for end in ends), strict=True)
            axis.plot(xs, ys, color=looks[name].color, linewidth=0.8, zorder=2)
            axis.plot([gain], [100 * cut.cost], **ring.style, zorder=6)
    tried = {name for comparison in visible for name in comparison.methods}
    legend = {name: look for name, look in looks.items() if name in tried}
    legend |= {"compared": ring} if any(comparison.cuts for comparison in visible) else {}
    figures.legend(canvas, legend, handlelength=3.4)
    left_out = figures.left_out(len(compared), figures.MAX_PANELS)
    return figures.drawn(
        "keeping",
        "Gain and cost of inoculation, by method against forgetting",
        f"{MEASURED} Further right is more gain, lower is less forgetting. Each mark is a setting "
        "of a method, with 95% intervals of both. A line starts at the model before inoculation "
        "(0, 0) and joins the strengths at one learning rate, or the rates at one strength; among "
        "several lines of a method, higher rates have larger marks. The dotted line is the highest "
        "gain that every method reaches; the rings on it are the costs that are compared. "
        f"Each panel has its own axes.{left_out}",
        canvas,
    )


def _draw_method(
    axis: Axes, settings: Sequence[tuple[MethodSetting, TradeOff]], look: Line
) -> None:
    """Draw the lines of a method, its marks and their whiskers."""
    varies = len({setting.strength for setting, _ in settings}) > 1
    by_rate: dict[float, list[tuple[MethodSetting, TradeOff]]] = {}
    for setting, point in sorted(settings, key=lambda pair: pair[1].coordinates):
        by_rate.setdefault(setting.rate or 0 if varies else 0, []).append((setting, point))
    for rank, (_, at_rate) in enumerate(sorted(by_rate.items())):
        xs = [0.0, *(100 * point.gain for _, point in at_rate)]
        ys = [0.0, *(100 * point.cost for _, point in at_rate)]
        axis.plot(xs, ys, **replace(look, marker="").style, zorder=3)
        marks = replace(look, dash="none", size=SIZES[min(rank, len(SIZES) - 1)])
        axis.plot(xs[1:], ys[1:], **marks.style, zorder=4)
        for x, y, (setting, _) in zip(xs[1:], ys[1:], at_rate, strict=True):
            whiskers = ((axis.hlines, y, setting.gain), (axis.vlines, x, setting.cost))
            for draw, position, estimate in whiskers:
                if estimate and estimate.ci_low is not None and estimate.ci_high is not None:
                    ends = (100 * estimate.ci_low, 100 * estimate.ci_high)
                    draw(position, *ends, look.color, linewidth=0.8, alpha=0.35, zorder=2)
