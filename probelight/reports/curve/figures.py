"""The figures of learning curves: models side by side, and each model with its controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probelight.probes.controls import STANDARD
from probelight.reports import figure as figures
from probelight.reports.curve.curves import NO_LANGUAGE, PERTURBED, Curve
from probelight.reports.curve.scores import rivals, standard_curves
from probelight.reports.curve.tables import TRAINED
from probelight.reports.figure import INK, LINES, MAX_PANELS, MUTED, Figure, Line
from probelight.reports.published import short_name
from probelight.reports.words import percent, rate
from probelight.results.load import Results

IN_ONE_FIGURE = 6  # panels; a probe has a figure of its own where there would be more
LOOKS = dict(zip((STANDARD, NO_LANGUAGE, PERTURBED), LINES, strict=False))
FURTHER = (  # for other controls, in the order of their names
    Line(INK, (0, (1, 2)), "*"),
    Line(MUTED, (0, (3, 1, 1, 1)), "d"),
    Line(INK, (0, (4, 1, 1, 1, 1, 1)), "x"),
)
RANDOM = LINES[3]
LINEAR = Line(MUTED, "-", "")
BASELINES = (Line(INK, (0, (3, 1.2)), "v"), Line(INK, (0, (1, 1)), "P"))
MODELS = (*LINES, Line(MUTED, (0, (3, 1, 1, 1, 1, 1)), "X"))


class Drawn(NamedTuple):
    """A line of a panel."""

    curve: Curve
    control: str
    label: str
    look: Line


def models_figure(results: Results) -> Figure | None:
    """Draw the standard curves of all models and baselines, a panel a probe and mode."""
    shown = [s for s in standard_curves(results) if s.role != "control" and s.mode != "linear"]
    by_place: dict[object, list[Curve]] = {}
    for curve in shown:
        by_place.setdefault((curve.source, curve.mode), []).append(curve)
    several = [group for group in by_place.values() if sum(s.role == "model" for s in group) > 1]
    if not several:
        return None
    looks: dict[str, Line] = {}
    for role, of_role in (("model", MODELS), ("baseline", BASELINES)):
        names = dict.fromkeys(s.model for group in several for s in group if s.role == role)
        looks |= zip(names, cycle(of_role), strict=False)
    lines = [
        [Drawn(s, STANDARD, "", looks[s.model]) for s in group] for group in several[:MAX_PANELS]
    ]
    with figures.styled():
        canvas = _panels(lines, [heading(group[0], "") for group in several[:MAX_PANELS]])
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
        return figures.drawn(
            "learning_curve_models",
            "The models' learning curves, side by side",
            "Standard curves alone, against the number of training examples (log axis, the "
            f"untrained model at 0). {bands(shown)}" + figures.left_out(len(several)),
            canvas,
        )


def control_figures(results: Results) -> list[Figure]:
    """Draw each model with its controls, its random weights and the baselines.

    Talmor et al. 2020, figures 1, 2 and 4.
    """
    found = standard_curves(results)
    # What is drawn in a model's panel needs no panel.
    lower = {other for s in found if s.role == "model" for other in _others(s, found)}
    shown = [curve for curve in found if curve not in lower]
    probes = list(dict.fromkeys(curve.probe for curve in shown))
    if len(shown) <= IN_ONE_FIGURE or len(probes) == 1:
        return [_control_figure("learning_curve", "", shown, found)] if shown else []
    return [
        _control_figure(
            f"learning_curve_{probe}",
            f": {probe.replace('_', ' ')}",
            [curve for curve in shown if curve.probe == probe],
            found,
        )
        for probe in probes
    ]


def _control_figure(name: str, of: str, shown: Sequence[Curve], found: Sequence[Curve]) -> Figure:
    lines = [_controls(curve, found) for curve in shown[:MAX_PANELS]]
    several = len({curve.probe for curve in shown}) > 1
    heads = [heading(s, "probe" if several else "model") for s in shown[:MAX_PANELS]]
    looks = {line.look for panel in lines for line in panel}
    caption = f"N is on a log axis, with the untrained model at 0. {bands(shown)} "
    if LINEAR in looks:
        caption += "The line without marks trains the last layer alone. "
    caption += "What a model owes to language is the gap between its standard line and its controls"
    below = looks & {RANDOM, *BASELINES}
    caption += "; what it owes to pre-training, the gap to the others." if below else "."
    with figures.styled():
        return figures.drawn(
            name,
            f"Accuracy against the number of training examples{of}",
            caption + figures.left_out(len(shown)),
            _panels(lines, heads),
        )


def _others(curve: Curve, found: Sequence[Curve]) -> list[Curve]:
    """Return what is in a model's panel with its curve: the last layer alone, and the rivals."""
    place = (curve.source, curve.model, "linear")
    linear = [s for s in found if (s.source, s.model, s.mode) == place]
    linear = linear if curve.mode == "mlp" and len(linear) == 1 else []
    return [*linear, *rivals(curve, found)]


def _controls(curve: Curve, found: Sequence[Curve]) -> list[Drawn]:
    further = sorted(curve.points.keys() - LOOKS.keys())
    looks = LOOKS | dict(zip(further, cycle(FURTHER), strict=False))
    lines = [Drawn(curve, c, c.replace("_", " "), looks[c]) for c in curve.points]
    baselines = cycle(BASELINES)
    for other in _others(curve, found) if curve.role == "model" else ():
        label, look = other.model.split(" (")[0], RANDOM
        if other.model == curve.model:
            label, look = "standard, linear", LINEAR
        elif other.role == "control":
            label = "random weights"
        else:
            look = next(baselines)
        lines.append(Drawn(other, STANDARD, label, look))
    return lines


def bands(shown: Sequence[Curve]) -> str:
    """Return what the bands of lines are."""
    known = all(curve.hits for curve in shown)
    source = "groups of items and seeds" if known else "the items alone where hits were not kept"
    return f"Lines are means over seeds, bands 95% intervals from {source}."


def heading(curve: Curve, first: Literal["probe", "model", ""]) -> tuple[str, str]:
    """Return the title of a panel, and what else identifies it but a model that all share."""
    probe, model = curve.probe.replace("_", " "), short_name(curve.model)
    trained = TRAINED.get(curve.mode, curve.mode)
    if not first:
        return probe, " · ".join(filter(None, (trained, curve.where)))
    title, other = (probe, model) if first == "probe" else (model, probe)
    at_rate = f"rate {rate(curve.learning_rate)}" if curve.learning_rate else ""
    return title, " · ".join(filter(None, (other, trained, curve.where, at_rate)))


def _panels(lines: Sequence[Sequence[Drawn]], heads: Sequence[tuple[str, str]]) -> Canvas:
    """Draw panels that share their y axis; lines with a label have it at their end."""
    most = max(len([line for line in panel if line.label]) for panel in lines)
    canvas, axes = figures.panels(len(lines), height=max(2.6, 1.35 + 0.24 * most))
    shown: list[float | None] = []
    for line in (line for panel in lines for line in panel):
        estimates = (point.estimate for point in line.curve.line(line.control).values())
        shown += [end for found in estimates for end in (found.value, *found.bounds)]
        shown.append(line.curve.chance)
    low, high = figures.limits(shown)
    for place, (axis, panel, words) in enumerate(zip(axes, lines, heads, strict=True)):
        axis.set_ylim(low, high)
        figures.head(axis, *words)
        _panel(axis, panel, (high - low) * 0.075)
        if place % 2 == 0:
            axis.set_ylabel("accuracy, %")
    return canvas


def _panel(axis: Axes, lines: Sequence[Drawn], gap: float) -> None:
    sizes = sorted({n for line in lines for n in line.curve.means(line.control)})
    positions = figures.example_axis(axis, sizes, "training examples N")
    labels = []
    for rank, line in enumerate(lines):
        end = _line(axis, line, positions, 1 - rank / len(lines))
        if line.label:
            labels.append((100 * end, line.label, line.look.color))
    first, last = min(positions.values()), max(positions.values())
    if (chance := lines[0].curve.chance) is not None:
        axis.plot([first, last], [100 * chance] * 2, color=MUTED, linewidth=0.9, dashes=(1, 2))
        labels.append((100 * chance, f"chance {percent(chance)}", MUTED))
    figures.end_labels(axis, last + 0.04 * max(last - first, 1), labels, gap)


def _line(axis: Axes, line: Drawn, positions: Mapping[int, float], order: float) -> float:
    """Draw a line over its band and return its last value."""
    curve, look = line.curve, line.look
    means = curve.means(line.control)
    known = [
        (positions[n], 100 * low, 100 * high)
        for n, point in curve.line(line.control).items()
        for low, high in [point.estimate.bounds]
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
