"""Figures of learning curves: each model with its controls, and the models side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probes.controls import STANDARD
from reports.curve.facts import NO_LANGUAGE, PERTURBED, Curve
from reports.curve.summary import Summary, rivals, summaries
from reports.curve.summary_tables import TRAINED
from reports.kit.axes import end_labels, example_axis, left_out, limits
from reports.kit.figure import (
    BLUE,
    GREEN,
    INK,
    MAX_PANELS,
    MUTED,
    ORANGE,
    PURPLE,
    Figure,
    Line,
    drawn,
    head,
    panels,
    styled,
)
from reports.kit.published import short_name
from reports.kit.text import percent, rate
from results.load import Results

IN_ONE_FIGURE = 6  # panels; a probe has a figure of its own where there would be more
LOOKS = {
    STANDARD: Line(BLUE, "-", "o"),
    NO_LANGUAGE: Line(ORANGE, (0, (5, 2)), "s"),
    PERTURBED: Line(GREEN, (0, (1.5, 1.5)), "^"),
}
# Of controls that have no look of their own, in the order of their names.
FURTHER = (
    Line(INK, (0, (1, 2)), "*"),
    Line(MUTED, (0, (3, 1, 1, 1)), "d"),
    Line(INK, (0, (4, 1, 1, 1, 1, 1)), "x"),
)
LINEAR = Line(MUTED, "-", "")
RANDOM = Line(PURPLE, (0, (6, 2, 1.5, 2)), "D")
BASELINES = (Line(INK, (0, (3, 1.2)), "v"), Line(INK, (0, (1, 1)), "P"))
MODELS = (
    Line(BLUE, "-", "o"),
    Line(ORANGE, (0, (5, 2)), "s"),
    Line(GREEN, (0, (1.5, 1.5)), "^"),
    Line(PURPLE, (0, (6, 2, 1.5, 2)), "D"),
    Line(MUTED, (0, (3, 1, 1, 1, 1, 1)), "X"),
)


@dataclass(frozen=True)
class Drawn:
    """One line of a panel."""

    curve: Curve
    control: str
    label: str
    look: Line


def curve_figures(results: Results) -> list[Figure]:
    """The figures of all curves; none where there is no curve."""
    found = summaries(results)
    return [*_model_figures(found), *_control_figures(found)]


def _control_figures(found: Sequence[Summary]) -> list[Figure]:
    """Each model with its controls, its random weights and the baselines (figures 1, 2 and 4)."""
    # What is drawn in a model's panel needs none of its own.
    lower = {id(other) for s in found if s.role == "model" for other in _others(s, found)}
    shown = [summary for summary in found if id(summary) not in lower]
    probes = list(dict.fromkeys(summary.curve.probe for summary in shown))
    if len(shown) <= IN_ONE_FIGURE or len(probes) == 1:
        figure = _control_figure("learning_curve", "", shown, found) if shown else None
        return [figure] if figure else []
    return [
        _control_figure(
            f"learning_curve_{probe}",
            f": {probe.replace('_', ' ')}",
            [summary for summary in shown if summary.curve.probe == probe],
            found,
        )
        for probe in probes
    ]


def _control_figure(
    name: str, of: str, shown: Sequence[Summary], found: Sequence[Summary]
) -> Figure:
    lines = [_controls(summary, found) for summary in shown[:MAX_PANELS]]
    several = len({summary.curve.probe for summary in shown}) > 1
    heads = [
        _head(summary.curve, "probe" if several else "model") for summary in shown[:MAX_PANELS]
    ]
    looks = {line.look for own in lines for line in own}
    said = f"{_bands(shown)} "
    said += "The line without marks trains the last layer alone. " if LINEAR in looks else ""
    said += "What a model owes to language is the gap between its standard line and its controls"
    below = looks & {RANDOM, *BASELINES}
    said += "; what it owes to pre-training, the gap to the others." if below else "."
    with styled():
        return drawn(
            name,
            f"Accuracy against the number of training examples{of}",
            f"N is on a log axis, with the untrained model at 0. {said}" + left_out(len(shown)),
            _canvas(lines, heads),
        )


def _model_figures(found: Sequence[Summary]) -> list[Figure]:
    """The standard curves of all models and baselines, a panel a probe and mode."""
    shown = [s for s in found if s.role != "random" and s.curve.mode != "linear"]
    places = dict.fromkeys((s.curve.source, s.curve.mode) for s in shown)
    by_place = [[s for s in shown if (s.curve.source, s.curve.mode) == place] for place in places]
    several = [own for own in by_place if sum(s.role == "model" for s in own) > 1]
    if not several:
        return []
    looks = _model_looks([summary for own in several for summary in own])
    lines = [
        [Drawn(s.curve, STANDARD, "", looks[s.curve.model]) for s in own]
        for own in several[:MAX_PANELS]
    ]
    with styled():
        canvas = _canvas(lines, [_head(own[0].curve, "") for own in several[:MAX_PANELS]])
        _legend(canvas, looks)
        return [
            drawn(
                "learning_curve_models",
                "The models' learning curves, side by side",
                "Standard curves alone, against the number of training examples (log axis, the "
                f"untrained model at 0). {_bands(shown)}" + left_out(len(several)),
                canvas,
            )
        ]


def _legend(canvas: Canvas, looks: Mapping[str, Line]) -> None:
    handles = [
        canvas.axes[0].plot(
            [], [], color=look.color, linestyle=look.dash, marker=look.marker, markersize=4.2,
            linewidth=1.7, label=short_name(model),
        )[0]
        for model, look in looks.items()
    ]  # fmt: skip
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = 4 if longest < 16 else 3 if longest < 30 else 2
    canvas.legend(handles=handles, loc="outside upper left", ncols=columns, handlelength=3.4)


def _model_looks(found: Sequence[Summary]) -> dict[str, Line]:
    models = dict.fromkeys(s.curve.model for s in found if s.role == "model")
    lower = dict.fromkeys(s.curve.model for s in found if s.role == "baseline")
    repeats = len(found)
    return {
        **dict(zip(models, MODELS * repeats, strict=False)),
        **dict(zip(lower, BASELINES * repeats, strict=False)),
    }


def _linear(summary: Summary, found: Sequence[Summary]) -> Summary | None:
    """The curve of the same model with its last layer alone trained, beside that of the head."""
    curve = summary.curve
    place = (curve.source, curve.model, "linear")
    own = [s for s in found if (s.curve.source, s.curve.model, s.curve.mode) == place]
    return own[0] if curve.mode == "mlp" and len(own) == 1 else None


def _others(summary: Summary, found: Sequence[Summary]) -> list[Summary]:
    """The curves that stand in the panel of a model, besides its own."""
    linear = _linear(summary, found)
    return [*([linear] if linear else []), *rivals(summary, found)]


def _controls(summary: Summary, found: Sequence[Summary]) -> list[Drawn]:
    curve = summary.curve
    looks = LOOKS | dict(
        zip(sorted(curve.points.keys() - LOOKS.keys()), cycle(FURTHER), strict=False)
    )
    lines = [Drawn(curve, c, c.replace("_", " "), looks[c]) for c in curve.points]
    if summary.role != "model":
        return lines
    if linear := _linear(summary, found):
        lines.append(Drawn(linear.curve, STANDARD, "standard, linear", LINEAR))
    baselines = cycle(BASELINES)
    for other in rivals(summary, found):
        if other.role == "random":
            lines.append(Drawn(other.curve, STANDARD, "random weights", RANDOM))
        else:
            name = other.curve.model.split(" (")[0]
            lines.append(Drawn(other.curve, STANDARD, name, next(baselines)))
    return lines


def _bands(shown: Sequence[Summary]) -> str:
    known = all(summary.curve.hits for summary in shown)
    source = "groups of items and seeds" if known else "the items alone where hits were not kept"
    return f"Lines are means over seeds, bands 95% intervals from {source}."


def _head(curve: Curve, first: Literal["probe", "model", ""]) -> tuple[str, str]:
    """Title of a panel, and what else identifies it; the model is left out where all share it."""
    probe, model = curve.probe.replace("_", " "), short_name(curve.model)
    trained = TRAINED.get(curve.mode, curve.mode)
    if not first:
        return probe, " · ".join(text for text in (trained, curve.where) if text)
    title, other = (probe, model) if first == "probe" else (model, probe)
    rate_said = f"rate {rate(curve.learning_rate)}" if curve.learning_rate else ""
    return title, " · ".join(text for text in (other, trained, curve.where, rate_said) if text)


def _canvas(lines: Sequence[Sequence[Drawn]], heads: Sequence[tuple[str, str]]) -> Canvas:
    """Panels that share their y axis; lines with a label have it at their end."""
    most = max(len([line for line in own if line.label]) for own in lines)
    canvas, axes = panels(len(lines), height=max(2.6, 1.35 + 0.24 * most))
    low, high = limits(
        [
            bound
            for own in lines
            for line in own
            for n, mean in line.curve.means(line.control).items()
            for bound in (mean, *line.curve.interval(line.control, n), line.curve.chance)
        ]
    )
    for place, (axis, own, said) in enumerate(zip(axes, lines, heads, strict=True)):
        axis.set_ylim(low, high)
        head(axis, *said)
        _panel(axis, own, (high - low) * 0.075)
        if place % 2 == 0:
            axis.set_ylabel("accuracy, %")
    return canvas


def _panel(axis: Axes, lines: Sequence[Drawn], gap: float) -> None:
    sizes = sorted({n for line in lines for n in line.curve.means(line.control)})
    positions = example_axis(axis, sizes, "training examples N")
    labels = []
    for rank, line in enumerate(lines):
        end = _line(axis, line, positions, 1 - rank / len(lines))
        if line.label:
            labels.append((100 * end, line.label, line.look.color))
    first, last = min(positions.values()), max(positions.values())
    if (chance := lines[0].curve.chance) is not None:
        level = 100 * chance
        axis.plot([first, last], [level] * 2, color=MUTED, linewidth=0.9, dashes=(1, 2))
        labels.append((level, f"chance {percent(chance)}", MUTED))
    end_labels(axis, last + 0.04 * max(last - first, 1), labels, gap)


def _line(axis: Axes, line: Drawn, positions: Mapping[int, float], order: float) -> float:
    """Draws a line over its band and gives its last value."""
    curve, look = line.curve, line.look
    means = curve.means(line.control)
    known = [
        (positions[n], 100 * low, 100 * high)
        for n, (low, high) in ((n, curve.interval(line.control, n)) for n in means)
        if low is not None and high is not None
    ]
    if len(known) > 1 and look != LINEAR:
        xs, lows, highs = (list(values) for values in zip(*known, strict=True))
        axis.fill_between(xs, lows, highs, color=look.color, alpha=0.13, linewidth=0)
    elif look != LINEAR:
        for x, low, high in known:
            axis.plot([x, x], [low, high], color=look.color, linewidth=0.9, alpha=0.55)
    axis.plot(
        [positions[n] for n in means], [100 * mean for mean in means.values()], color=look.color,
        linestyle=look.dash, linewidth=1.1 if look == LINEAR else 1.7, marker=look.marker,
        markersize=4.2, zorder=2 + order,
    )  # fmt: skip
    return list(means.values())[-1]
