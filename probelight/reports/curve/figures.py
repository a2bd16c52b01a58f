"""The figures of learning curves: models side by side, and each model with its controls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Literal

from probelight.probes.controls import STANDARD
from probelight.reports.charts import Panel, Trace, in_panels, line_figure
from probelight.reports.curve.comparisons import rivals, standard_curves
from probelight.reports.curve.curves import NO_LANGUAGE, PERTURBED, ProbeCurve
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
    by_source: dict[object, list[ProbeCurve]] = {}
    for curve in standard_curves(results):
        if curve.role != "control" and curve.mode != "linear":
            by_source.setdefault((curve.source, curve.mode), []).append(curve)
    groups = [group for group in by_source.values() if sum(c.role == "model" for c in group) > 1]
    if not groups:
        return None
    drawn_curves = [curve for group in groups for curve in group]
    pages = [page for group in groups for page in in_panels(group)]
    looks: dict[str, Line] = {}
    for role, role_looks in (("model", MODELS), ("baseline", BASELINES)):
        names = dict.fromkeys(curve.model for curve in drawn_curves if curve.role == role)
        looks |= zip(names, cycle(role_looks), strict=False)
    panels = []
    for page in pages:
        title, subtitle = heading(page[0], "")
        if len(pages) > len(groups):  # looks come again
            subtitle = dotted(", ".join(short_name(curve.model) for curve in page), subtitle)
        traces = [Trace(_points(curve), looks[curve.model]) for curve in page]
        panels.append(Panel(title, subtitle, traces, {"chance": page[0].chance}))
    return line_figure(
        "learning_curve_models",
        "Learning curves of all models",
        "Standard curves only, by number of training examples (log axis; 0 is the untrained "
        f"model). {bands(drawn_curves)}",
        panels,
        AXIS,
        looks={short_name(model): look for model, look in looks.items()},
    )


def control_figures(results: RunSet) -> list[Figure]:
    """Draw models with controls and rivals (Talmor et al. 2020, figures 1, 2 and 4)."""
    all_curves = standard_curves(results)
    # What is drawn in a model's panel needs no panel.
    models = [curve for curve in all_curves if curve.role == "model"]
    companions = {companion for curve in models for companion in _companions(curve, all_curves)}
    own_panel = [curve for curve in all_curves if curve not in companions]
    probes = list(dict.fromkeys(curve.probe for curve in own_panel))
    if len(own_panel) <= IN_ONE_FIGURE or len(probes) == 1:
        return [_control_figure("learning_curve", "", own_panel, all_curves)] if own_panel else []
    return [
        _control_figure(
            f"learning_curve_{probe}",
            f": {in_words(probe)}",
            [curve for curve in own_panel if curve.probe == probe],
            all_curves,
        )
        for probe in probes
    ]


def _control_figure(
    name: str, subject: str, curves: Sequence[ProbeCurve], all_curves: Sequence[ProbeCurve]
) -> Figure:
    several = len({curve.probe for curve in curves}) > 1
    panels = [
        Panel(
            *heading(curve, "probe" if several else "model"),
            _control_traces(curve, all_curves),
            {"chance": curve.chance},
        )
        for curve in curves
    ]
    return line_figure(
        name,
        f"Accuracy by number of training examples{subject}",
        "Accuracy on the full question (standard) and under controls, after training on N examples "
        "(log axis; 0 is the untrained model). The gap between a model's standard line and its "
        "controls shows what it owes to language. The gap to random weights and baselines shows "
        f"what it owes to pre-training. {bands(curves)} Linear: only the last layer is trained.",
        panels,
        AXIS,
    )


def _companions(curve: ProbeCurve, all_curves: Sequence[ProbeCurve]) -> list[ProbeCurve]:
    """Return the curves that a model's panel also shows: linear, controls and rivals."""
    identity = (curve.source, curve.model, "linear")
    linear = [c for c in all_curves if (c.source, c.model, c.mode) == identity]
    linear = linear if curve.mode == "mlp" and len(linear) == 1 else []
    return [*linear, *rivals(curve, all_curves)]


def _control_traces(curve: ProbeCurve, all_curves: Sequence[ProbeCurve]) -> list[Trace]:
    further = sorted(curve.points.keys() - LOOKS.keys())
    looks = LOOKS | dict(zip(further, cycle(FURTHER), strict=False))
    traces = [Trace(_points(curve, c), looks[c], c.replace("_", " ")) for c in curve.points]
    baselines = cycle(BASELINES)
    for companion in _companions(curve, all_curves) if curve.role == "model" else ():
        points = _points(companion)
        if companion.model == curve.model:  # without its band, which would cover that of the curve
            points = [(size, Estimate(estimate.value)) for size, estimate in points]
            traces.append(Trace(points, LINEAR, "standard, linear"))
        elif companion.role == "control":
            traces.append(Trace(points, RANDOM, "random weights"))
        else:
            traces.append(Trace(points, next(baselines), companion.model.split(" (")[0]))
    return traces


def _points(curve: ProbeCurve, control: str = STANDARD) -> list[tuple[int, Estimate]]:
    return [(size, point.estimate) for size, point in curve.line(control).items()]


def bands(drawn_curves: Sequence[ProbeCurve]) -> str:
    """Return what the bands around the lines show."""
    has_hits = all(curve.hits for curve in drawn_curves)
    unknown = "items alone, where runs did not record which items were right"
    source = "groups of items and seeds" if has_hits else unknown
    return f"Lines are means over seeds; bands are 95% intervals over {source}."


def heading(curve: ProbeCurve, first: Literal["probe", "model", ""]) -> tuple[str, str]:
    """Return a panel's title and subtitle, without a model that all panels share."""
    probe, model = in_words(curve.probe), short_name(curve.model)
    trained = TRAINED.get(curve.mode, curve.mode)
    if not first:
        return probe, dotted(trained, curve.where)
    title, second = (probe, model) if first == "probe" else (model, probe)
    at_rate = f"rate {rate(curve.learning_rate)}" if curve.learning_rate else ""
    return title, dotted(second, trained, curve.where, at_rate)
