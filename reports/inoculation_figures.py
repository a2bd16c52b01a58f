"""The figures of inoculation: scores against the dose, and the way to the chosen checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from matplotlib.axes import Axes

from reports.figures import example_axis, left_out, limits
from reports.inoculation import Inoculation, Series, inoculations
from reports.inoculation_doses import Dose, doses
from reports.layout import count, percent, rate
from reports.load import Results
from reports.style import (
    BLUE,
    GREEN,
    INK,
    MAX_PANELS,
    MUTED,
    ORANGE,
    PAPER,
    PURPLE,
    Figure,
    Line,
    dodge,
    drawn,
    end_labels,
    head,
    panels,
    styled,
)

PROBE = Line(BLUE, "-", "o")
ORIGINAL = Line(ORANGE, (0, (5, 2)), "s")
AVERAGE = Line(MUTED, (0, (1.2, 1.6)), "^")
ORIGINAL_METRICS = ("original_accuracy_before", "original_accuracy_after")
BOUNDED = ("probe_accuracy_before", "probe_accuracy", *ORIGINAL_METRICS)
CHANCES = ("chance_probe", "chance_original")
MODELS = ((BLUE, "o"), (ORANGE, "s"), (GREEN, "^"), (PURPLE, "D"), (INK, "v"))


@dataclass(frozen=True)
class Score:
    """One of the two scores of a model: how it is called and drawn, and its metrics."""

    name: str
    look: Line
    before: str
    after: str


def inoculation_figure(results: Results) -> Figure | None:
    """Probe and original-task accuracy against the dose (Richardson & Sabharwal 2020, figure 4)."""
    found = _panels(doses(inoculations(results)))
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
        for place, (axis, lines) in enumerate(zip(axes, shown, strict=True)):
            axis.set_ylim(low, high)
            _dose_panel(axis, lines, (high - low) * 0.07)
            if place % 2 == 0:
                axis.set_ylabel("accuracy, %")
        models = " Full lines are the probe, broken ones the original task." if most > 1 else ""
        return drawn(
            "inoculation",
            "What inoculation gave, and what it cost",
            "Hollow marks at k = 0 are the scores before inoculation, filled ones those of the "
            "chosen checkpoint (the best average on the selection splits over settings and epochs) "
            "after training on k probe examples (log axis), all on the report split. Whiskers are "
            f"95% intervals; with several seeds the lines are means and small dots the seeds."
            f"{models}" + left_out(len(found)),
            canvas,
        )


def _panels(lines: Mapping[Series, list[Dose]]) -> list[list[list[Dose]]]:
    """The lines of one panel belong together: one probe and original task, all models."""
    by_panel: dict[tuple[str, ...], list[list[Dose]]] = {}
    for series, line in lines.items():
        by_panel.setdefault(series[1:], []).append(line)
    return list(by_panel.values())


def trajectory_figure(results: Results) -> Figure | None:
    """Scores on the selection splits, epoch by epoch, and the checkpoint that was chosen."""
    lines = doses(inoculations(results)).values()
    cells = [dose.runs[0] for line in lines for dose in line]
    cells = [cell for cell in cells if len(cell.trajectory.get("aggregate", {})) > 1]
    if not cells:
        return None
    shown = cells[:MAX_PANELS]
    with styled():
        canvas, axes = panels(len(shown))
        scores = [v for c in shown for line in c.trajectory.values() for v in line.values()]
        low, high = limits(scores)
        for place, (axis, cell) in enumerate(zip(axes, shown, strict=True)):
            axis.set_ylim(low, high)
            _trajectory_panel(axis, cell, (high - low) * 0.075)
            if place % 2 == 0:
                axis.set_ylabel("accuracy, %")
        seeds = " One seed of each dose is drawn." if len(cells) < _num_runs(results) else ""
        return drawn(
            "selection",
            "How the checkpoint was chosen",
            "Accuracy on the selection splits, which share no item with the report, after each "
            "epoch (0 = before inoculation). The ring marks the best average of the two: the "
            "checkpoint that is reported." + seeds + left_out(len(cells)),
            canvas,
        )


def _num_runs(results: Results) -> int:
    return sum(cell.chosen for cell in inoculations(results))


def _dose_panel(axis: Axes, lines: list[list[Dose]], gap: float) -> None:
    series = lines[0][0].series
    about = f"original task: {series.original_task or 'unnamed'}"
    about = f"{series.model} · {about}" if len(lines) == 1 else about
    remarks = f" · {series.remarks}" if series.remarks else ""
    head(axis, series.probe.replace("_", " "), about + remarks)
    sizes = [0, *(dose.dose for line in lines for dose in line)]
    positions = example_axis(axis, sizes, "probe examples k")
    first, last = min(positions.values()), max(positions.values())
    labels = []
    for place, line in enumerate(lines):
        for rank, score in enumerate(_scores(place if len(lines) > 1 else None)):
            shift = dodge(2 * place + rank, 2 * len(lines), last - first)
            end = _dose_line(axis, line, score, {k: x + shift for k, x in positions.items()})
            name = (line[0].series.model if len(lines) > 1 else score.name) if end else ""
            # Both lines of a model are named alike: the look tells them apart.
            labels += [(end, name, score.look.color)] if end else []
    labels += _chance_lines(axis, lines[0], first, last)
    end_labels(axis, last + 0.04 * max(last - first, 1), labels, gap)
    if not all(dose.interpretable for line in lines for dose in line):
        axis.text(
            0.01, 0.985, "original task not above chance: cost not interpretable",
            transform=axis.transAxes, fontsize=7.5, color=MUTED, style="italic", va="top",
        )  # fmt: skip


def _scores(model: int | None) -> list[Score]:
    """Both scores; where several models share a panel, the colour is the model's."""
    if model is None:
        return [
            Score("probe", PROBE, "probe_accuracy_before", "probe_accuracy"),
            Score("original task", ORIGINAL, *ORIGINAL_METRICS),
        ]
    color, marker = MODELS[model % len(MODELS)]
    return [
        Score("probe", Line(color, "-", marker), "probe_accuracy_before", "probe_accuracy"),
        Score("original task", Line(color, (0, (4, 2)), marker), *ORIGINAL_METRICS),
    ]


def _dose_line(
    axis: Axes, line: list[Dose], score: Score, positions: Mapping[int, float]
) -> float | None:
    """Draws one score of one model against the dose; returns where its line ends."""
    xs, ys = [], []
    starts = [value for dose in line for value in dose.values(score.before)]
    if starts:
        xs, ys = [positions[0]], [100 * fmean(starts)]
        _spread(axis, positions[0], line[0], score.before, score.look)
    for dose in line:
        if (mean := dose.mean(score.after)) is not None:
            xs.append(positions[dose.dose])
            ys.append(100 * mean)
            _spread(axis, positions[dose.dose], dose, score.after, score.look)
    if not xs:
        return None
    _plot(axis, xs, ys, score.look)
    if starts:
        axis.plot(
            xs[:1], ys[:1], marker=score.look.marker, markersize=5.5, color=PAPER,
            markeredgecolor=score.look.color, markeredgewidth=1.3, linestyle="none",
        )  # fmt: skip
    return ys[-1]


def _chance_lines(
    axis: Axes, line: list[Dose], first: float, last: float
) -> list[tuple[float, str, str]]:
    """Draws the chance levels; one line where both tasks have the same."""
    probe, original = line[0].mean("chance_probe"), line[0].mean("chance_original")
    levels = [(probe, "chance, probe"), (original, "chance, original")]
    if probe == original:
        levels = [(probe, "chance")]
    labels = []
    for level, name in levels:
        if level is not None:
            axis.plot([first, last], [100 * level] * 2, color=MUTED, linewidth=0.9, dashes=(1, 2))
            labels.append((100 * level, f"{name} {percent(level)}", MUTED))
    return labels


def _spread(axis: Axes, x: float, dose: Dose, metric: str, look: Line) -> None:
    low, high = dose.interval(metric)
    if low is not None and high is not None:
        axis.plot([x, x], [100 * low, 100 * high], color=look.color, linewidth=0.9, alpha=0.55)
    seeds = [100 * value for value in dose.values(metric)]
    if len(seeds) > 1:
        axis.plot(
            [x] * len(seeds), seeds, marker=".", markersize=3.5, linestyle="none",
            color=look.color, alpha=0.5,
        )  # fmt: skip


def _plot(axis: Axes, xs: list[float], ys: list[float], look: Line, width: float = 1.7) -> None:
    axis.plot(
        xs, ys, color=look.color, linestyle=look.dash, linewidth=width, marker=look.marker,
        markersize=4.8,
    )  # fmt: skip


def _trajectory_panel(axis: Axes, cell: Inoculation, gap: float) -> None:
    about = f"{cell.model} · rate {rate(cell.learning_rate)}"
    about += "" if cell.seed is None else f" · seed {cell.seed}"
    about += "" if cell.extra == "none" else f" · extra {cell.extra}"
    head(axis, f"{cell.probe.replace('_', ' ')}, k = {count(cell.dose)}", about)
    epochs = sorted(cell.trajectory["aggregate"])
    labels = []
    for look, metric, name in (
        (PROBE, "probe_accuracy", "probe"),
        (ORIGINAL, "original_accuracy", "original"),
        (AVERAGE, "aggregate", "average"),
    ):
        line = cell.trajectory.get(metric, {})
        if line:
            _plot(axis, list(map(float, line)), [100 * v for v in line.values()], look)
            labels.append((100 * line[max(line)], name, look.color))
    chosen = cell.selected_on("aggregate")
    if cell.epoch is not None and chosen is not None:
        top = axis.get_ylim()[1]
        axis.plot([cell.epoch] * 2, [100 * chosen, top], color=MUTED, linewidth=0.7, zorder=1)
        axis.plot(
            [cell.epoch], [100 * chosen], marker="o", markersize=11, color=INK,
            markerfacecolor="none", markeredgewidth=1.2,
        )  # fmt: skip
        axis.text(
            cell.epoch, top, "chosen", fontsize=7.5, ha="center", va="top",
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.0},
        )  # fmt: skip
    axis.set_xticks(epochs)
    axis.set_xlabel("epoch")
    axis.grid(axis="x", visible=False)
    span = epochs[-1] - epochs[0]
    axis.set_xlim(epochs[0] - 0.06 * span, epochs[-1] + 0.34 * span)
    axis.spines["bottom"].set_bounds(epochs[0] - 0.06 * span, epochs[-1])
    end_labels(axis, epochs[-1] + 0.07 * span, labels, gap)
