"""The figures of learning curves: models side by side, and each model with its controls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Literal

from probelight.probes.controls import STANDARD
from probelight.reports.charts import Panel, Trace, in_panels, line_figure
from probelight.reports.curve.comparisons import rivals, standard_curves
from probelight.reports.curve.curves import NO_LANGUAGE, PERTURBED, Curve
from probelight.reports.curve.tables import TRAINED
from probelight.reports.figure import INK, LINES, MUTED, Figure, Line
from probelight.reports.numbers import Estimate, dotted, in_words, rate
from probelight.reports.published import short_name
from probelight.results.load import RunSet

IN_ONE_FIGURE = 6  # panels; a probe has a figure of its own where there would be more
LOOKS = dict(zip((STANDARD, NO_LANGUAGE, PERTURBED), LINES, strict=False))
FURTHER = (  # for other controls, in the order of their names
    Line(INK, (0, (1, 2)), "*"),
    Line(MUTED, (0, (3, 1, 1, 1)), "d"),
    Line(INK, (0, (4, 1, 1, 1, 1, 1)), "x"),
)
RANDOM = LINES[3]
LINEAR = Line(MUTED, width=1.1)
BASELINES = (Line(INK, (0, (3, 1.2)), "v"), Line(INK, (0, (1, 1)), "P"))
MODELS = (*LINES, Line(MUTED, (0, (3, 1, 1, 1, 1, 1)), "X"))
AXIS = "training examples N"


def models_figure(results: RunSet) -> Figure | None:
    """Draw the standard curves of all models and baselines, one panel per probe and mode."""
    by_place: dict[object, list[Curve]] = {}
    for curve in standard_curves(results):
        if curve.role != "control" and curve.mode != "linear":
            by_place.setdefault((curve.source, curve.mode), []).append(curve)
    several = [group for group in by_place.values() if sum(s.role == "model" for s in group) > 1]
    if not several:
        return None
    shown = [curve for group in several for curve in group]
    parts = [part for group in several for part in in_panels(group)]
    looks: dict[str, Line] = {}
    for role, of_role in (("model", MODELS), ("baseline", BASELINES)):
        names = dict.fromkeys(curve.model for curve in shown if curve.role == role)
        looks |= zip(names, cycle(of_role), strict=False)
    panels = []
    for part in parts:
        title, subtitle = heading(part[0], "")
        if len(parts) > len(several):  # looks come again
            subtitle = dotted(", ".join(short_name(curve.model) for curve in part), subtitle)
        traces = [Trace(_points(curve), looks[curve.model]) for curve in part]
        panels.append(Panel(title, subtitle, traces, {"chance": part[0].chance}))
    return line_figure(
        "learning_curve_models",
        "Learning curves of all models",
        "Standard curves only, by number of training examples (log axis; 0 is the untrained "
        f"model). {bands(shown)}",
        panels,
        AXIS,
        looks={short_name(model): look for model, look in looks.items()},
    )


def control_figures(results: RunSet) -> list[Figure]:
    """Draw models with controls and rivals (Talmor et al. 2020, figures 1, 2 and 4)."""
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
            f": {in_words(probe)}",
            [curve for curve in shown if curve.probe == probe],
            found,
        )
        for probe in probes
    ]


def _control_figure(name: str, of: str, shown: Sequence[Curve], found: Sequence[Curve]) -> Figure:
    several = len({curve.probe for curve in shown}) > 1
    panels = [
        Panel(
            *heading(curve, "probe" if several else "model"),
            _controls(curve, found),
            {"chance": curve.chance},
        )
        for curve in shown
    ]
    return line_figure(
        name,
        f"Accuracy by number of training examples{of}",
        "Accuracy on the full question (standard) and under controls, after training on N examples "
        "(log axis; 0 is the untrained model). The gap between a model's standard line and its "
        "controls shows what it owes to language. The gap to random weights and baselines shows "
        f"what it owes to pre-training. {bands(shown)} Linear: only the last layer is trained.",
        panels,
        AXIS,
    )


def _others(curve: Curve, found: Sequence[Curve]) -> list[Curve]:
    """Return the other curves of a model's panel: the last layer alone, and the rivals."""
    place = (curve.source, curve.model, "linear")
    linear = [s for s in found if (s.source, s.model, s.mode) == place]
    linear = linear if curve.mode == "mlp" and len(linear) == 1 else []
    return [*linear, *rivals(curve, found)]


def _controls(curve: Curve, found: Sequence[Curve]) -> list[Trace]:
    further = sorted(curve.points.keys() - LOOKS.keys())
    looks = LOOKS | dict(zip(further, cycle(FURTHER), strict=False))
    traces = [Trace(_points(curve, c), looks[c], c.replace("_", " ")) for c in curve.points]
    baselines = cycle(BASELINES)
    for other in _others(curve, found) if curve.role == "model" else ():
        points = _points(other)
        if other.model == curve.model:  # without its band, which would cover that of the curve
            points = [(size, Estimate(estimate.value)) for size, estimate in points]
            traces.append(Trace(points, LINEAR, "standard, linear"))
        elif other.role == "control":
            traces.append(Trace(points, RANDOM, "random weights"))
        else:
            traces.append(Trace(points, next(baselines), other.model.split(" (")[0]))
    return traces


def _points(curve: Curve, control: str = STANDARD) -> list[tuple[int, Estimate]]:
    return [(size, point.estimate) for size, point in curve.line(control).items()]


def bands(shown: Sequence[Curve]) -> str:
    """Return what the bands around the lines show."""
    known = all(curve.hits for curve in shown)
    unknown = "items alone, where runs did not record which items were right"
    source = "groups of items and seeds" if known else unknown
    return f"Lines are means over seeds; bands are 95% intervals over {source}."


def heading(curve: Curve, first: Literal["probe", "model", ""]) -> tuple[str, str]:
    """Return a panel's title and subtitle, without a model that all panels share."""
    probe, model = in_words(curve.probe), short_name(curve.model)
    trained = TRAINED.get(curve.mode, curve.mode)
    if not first:
        return probe, dotted(trained, curve.where)
    title, other = (probe, model) if first == "probe" else (model, probe)
    at_rate = f"rate {rate(curve.learning_rate)}" if curve.learning_rate else ""
    return title, dotted(other, trained, curve.where, at_rate)
