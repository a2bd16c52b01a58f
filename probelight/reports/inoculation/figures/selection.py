"""The way to M*_k: scores on the selection splits after each epoch."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from probelight.reports.figure import (
    INK,
    MAX_PANELS,
    MUTED,
    PAPER,
    Figure,
    Line,
    drawn,
    end_labels,
    head,
    left_out,
    limits,
    panels,
    styled,
)
from probelight.reports.inoculation.doses import doses
from probelight.reports.inoculation.figures.marks import ORIGINAL, PROBE, plot_line
from probelight.reports.inoculation.runs import ON_REPORTED, Inoculation, with_controls
from probelight.reports.kit.text import count, rate
from probelight.results.load import Results

AVERAGE = Line(MUTED, (0, (1.2, 1.6)), "^")


def trajectory_figure(results: Results) -> Figure | None:
    """Scores on the selection splits, epoch by epoch, and the checkpoint that was chosen."""
    lines = doses(with_controls(results)).values()
    cells = [dose.runs[0] for line in lines for dose in line]
    cells = [cell for cell in cells if len(cell.trajectory.get("aggregate", {})) > 1]
    if not cells:
        return None
    shown = cells[:MAX_PANELS]
    with styled():
        canvas, axes = panels(len(shown), height=2.8)
        scores = [v for c in shown for line in c.trajectory.values() for v in line.values()]
        low, high = limits(scores)
        top = high + 0.12 * (high - low)  # the label of the chosen checkpoint stands there
        for place, (axis, cell) in enumerate(zip(axes, shown, strict=True)):
            axis.set_ylim(low, top)
            _trajectory_panel(axis, cell, (top - low) * 0.075)
            axis.set_yticks([tick for tick in axis.get_yticks() if low <= tick <= min(high, 100)])
            if place % 2 == 0:
                axis.set_ylabel("accuracy, %")
        num_runs = sum(cell.chosen for cell in with_controls(results))
        seeds = " One seed of each dose is drawn." if len(cells) < num_runs else ""
        return drawn(
            "selection",
            "How the checkpoint was chosen",
            f"Accuracy on the selection items{_selected_on(shown)}, after each epoch (0 = before "
            "inoculation, which is no candidate). The ring marks the best average of the two: the "
            "checkpoint that is reported." + seeds + left_out(len(cells)),
            canvas,
        )


def _selected_on(cells: Sequence[Inoculation]) -> str:
    """What the selection items have to do with the reported ones."""
    on_reported = [cell.selection == ON_REPORTED for cell in cells]
    if all(on_reported):
        return ", of which the probe's are the reported ones"
    text = ", which share no item with the report"
    if any(on_reported):
        text += " but where a panel says that it was chosen on the reported items (the probe's)"
    return text


def _trajectory_panel(axis: Axes, cell: Inoculation, gap: float) -> None:
    setting = [
        f"rate {rate(cell.learning_rate)}",
        "" if cell.seed is None else f"seed {cell.seed}",
        "" if cell.extra == "none" else f"extra {cell.extra}",
        cell.series.remarks,
    ]
    about = (
        f"{cell.model} · original task: {cell.original_task or 'unnamed'}\n"
        f"{' · '.join(filter(None, setting))}"
    )
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
            plot_line(axis, list(map(float, line)), [100 * v for v in line.values()], look)
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
