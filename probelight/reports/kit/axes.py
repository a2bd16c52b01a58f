"""Axes and labels that figures of several protocols share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes

from probelight.reports.kit.figure import MAX_PANELS, MUTED, PAPER


def limits(values: Sequence[float | None]) -> tuple[float, float]:
    """Limits of an accuracy axis in per cent: what is shown, with a margin, within 0 to 100."""
    known = [100 * value for value in values if value is not None]
    margin = max(4.0, 0.08 * (max(known) - min(known)))
    return max(0.0, min(known) - margin), min(102.0, max(known) + margin)


def left_out(number: int, most: int | None = None) -> str:
    """Says how many panels, or whatever a figure has at `most`, it lacks."""
    most = MAX_PANELS if most is None else most
    return "" if number <= most else f" The first {most} of {number} are drawn."


def example_axis(axis: Axes, sizes: Sequence[int], label: str) -> dict[int, float]:
    """Makes x an axis of numbers of examples and gives each number's position."""
    positions = log_positions(sizes)
    axis.set_xticks([positions[s] for s in positions], [short_count(s) for s in positions])
    axis.set_xlabel(label)
    axis.grid(axis="x", visible=False)
    first, last = min(positions.values()), max(positions.values())
    span = max(last - first, 1.0)
    axis.set_xlim(first - 0.06 * span, last + 0.42 * span)  # the labels of the lines stand right
    axis.spines["bottom"].set_bounds(first - 0.06 * span, last)
    if 0 in positions and len(positions) > 1:
        axis.text(
            first + 0.6, 0, "//", transform=axis.get_xaxis_transform(), fontsize=7, color=MUTED,
            ha="center", va="center", bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.6},
        )  # fmt: skip
    return positions


def end_labels(axis: Axes, x: float, labels: Sequence[tuple[float, str, str]], gap: float) -> None:
    """Writes (y, text, color) right of `x`, moved apart so that none covers another."""
    # Grid lines end where the labels begin.
    axis.axvspan(x, axis.get_xlim()[1], color=PAPER, linewidth=0, zorder=0.6)
    for y, (at, text, color) in zip(
        apart([label[0] for label in labels], gap), labels, strict=True
    ):
        axis.annotate(
            text,
            (x, at),
            xytext=(x, y),
            textcoords="data",
            color=color,
            fontsize=8,
            va="center",
            annotation_clip=False,
        )


def apart(values: Sequence[float], gap: float) -> list[float]:
    """The values moved as little as needed for neighbours to be `gap` apart, order kept."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    groups: list[tuple[float, list[int]]] = []  # (mean wanted, members), merged while they collide
    for index in order:
        groups.append((values[index], [index]))
        while len(groups) > 1:
            (low, below), (high, above) = groups[-2:]
            if high - low >= gap * (len(below) + len(above)) / 2:
                break
            members = below + above
            groups[-2:] = [(math.fsum(values[i] for i in members) / len(members), members)]
    placed = [0.0] * len(values)
    for centre, members in groups:
        for rank, index in enumerate(members):
            placed[index] = centre + gap * (rank - (len(members) - 1) / 2)
    return placed


def dodge(rank: int, number: int, span: float) -> float:
    """A shift that keeps the whiskers of neighbouring lines off each other."""
    return (rank - (number - 1) / 2) * 0.012 * span


def log_positions(sizes: Sequence[int]) -> dict[int, float]:
    """Where numbers of examples stand on a log axis; 0 has a place of its own left of it."""
    positive = sorted({size for size in sizes if size > 0})
    positions = {size: math.log2(size) for size in positive}
    if 0 in sizes:
        positions[0] = math.log2(positive[0]) - 1.2 if positive else 0.0
    return positions


def short_count(number: int) -> str:
    """A tick label: 1,000 as 1k."""
    return f"{number // 1000}k" if number >= 1000 and number % 1000 == 0 else f"{number:,}"
