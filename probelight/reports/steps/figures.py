"""The figure of what a model knew at each training step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probelight.probes.diagnostics.sets import SETS
from probelight.reports.estimates import chance_levels
from probelight.reports.figure import (
    LINES,
    MAX_PANELS,
    MUTED,
    Figure,
    Line,
    drawn,
    example_axis,
    head,
    left_out,
    limits,
    panels,
    styled,
)
from probelight.reports.steps.facts import Snapshot, by_set, snapshots
from probelight.results.load import Results

_MOST_TICKS = 6
Place = tuple[str, str, str]  # probe, split and metric


def steps_figures(results: Results) -> list[Figure]:
    """Each measure against the training step: a figure a set, a panel a measure, a line a model."""
    found = [one for one in snapshots(results) if one.step is not None]
    chance = chance_levels(results)
    return [_figure(name, own, chance) for name, own in by_set(found).items()]


def _figure(name: str, found: Sequence[Snapshot], chance: Mapping[str, float]) -> Figure:
    places = list(dict.fromkeys(map(_place, found)))
    models = list(dict.fromkeys(one.model for one in found))
    looks = dict(zip(models, LINES * len(models), strict=False))
    what = SETS[name].title if name else "What was known"
    with styled():
        canvas, axes = panels(len(places[:MAX_PANELS]), shared=False)
        for place, axis in zip(places, axes, strict=False):
            own = [one for one in found if _place(one) == place]
            _panel(axis, place, own, looks, None if name else chance.get(place[0]))
        _legend(canvas, axes[0], looks)
        return drawn(
            f"training_steps_{name}".rstrip("_"),
            f"{what}, at each training step",
            "Shares against the training step that a revision's name holds (log axis, step 0 on "
            "its left); bands are 95% intervals, dotted lines chance. Revisions without a step are "
            "in the table alone." + left_out(len(places)),
            canvas,
        )


def _panel(
    axis: Axes,
    place: Place,
    found: Sequence[Snapshot],
    looks: Mapping[str, Line],
    chance: float | None,
) -> None:
    probe, split, metric = place
    title = SETS[probe].title if probe in SETS else probe.replace("_", " ")
    head(axis, title, " · ".join(filter(None, (metric, split))))
    rows = [one.row for one in found]
    axis.set_ylim(
        *limits([chance, *(v for row in rows for v in (row.value, row.ci_low, row.ci_high))])
    )
    axis.set_ylabel("%")
    steps = sorted({one.step for one in found if one.step is not None})
    positions = example_axis(axis, steps, "training step")
    shown = steps[:: -(-len(steps) // _MOST_TICKS)]
    axis.set_xticks([positions[step] for step in shown], [_short(step) for step in shown])
    first, last = min(positions.values()), max(positions.values())
    axis.set_xlim(first - 0.06 * (last - first), last + 0.06 * (last - first))
    if chance is not None:
        axis.plot([first, last], [100 * chance] * 2, color=MUTED, linewidth=0.9, dashes=(1, 2))
    for model, look in looks.items():
        own = [one for one in found if one.model == model]
        xs = [positions[one.step] for one in own if one.step is not None]
        lows, highs = ([100 * (b or 0.0) for b in _bounds(own, end)] for end in (0, 1))
        axis.fill_between(xs, lows, highs, color=look.color, alpha=0.13, linewidth=0)
        axis.plot(
            xs, [100 * one.row.value for one in own], color=look.color, linestyle=look.dash,
            marker=look.marker, markersize=4.2, linewidth=1.7,
        )  # fmt: skip


def _place(one: Snapshot) -> Place:
    return one.row.probe, one.row.split, one.measure


def _bounds(found: Sequence[Snapshot], end: int) -> list[float | None]:
    return [(one.row.ci_low, one.row.ci_high)[end] for one in found]


def _short(step: int) -> str:
    """A tick label: 1,000 as 1k, 2,000,000 as 2M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if step >= size and step % (size // 10) == 0:
            return f"{step / size:g}{letter}"
    return f"{step:,}"


def _legend(canvas: Canvas, axis: Axes, looks: Mapping[str, Line]) -> None:
    handles = [
        axis.plot(
            [], [], color=look.color, linestyle=look.dash, marker=look.marker, markersize=4.2,
            linewidth=1.7, label=model,
        )[0]
        for model, look in looks.items()
    ]  # fmt: skip
    canvas.legend(handles=handles, loc="outside upper left", ncols=2, handlelength=3.4)
