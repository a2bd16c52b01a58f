"""Figures of learning curves: each model with its controls, its random weights and baselines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from probelight.probes.controls import STANDARD
from probelight.reports.curve.facts import NO_LANGUAGE, PERTURBED
from probelight.reports.curve.figures.panels import (
    BASELINES,
    LINEAR,
    Drawn,
    bands,
    heading,
    panel_canvas,
)
from probelight.reports.curve.summary import Summary, rivals, summaries
from probelight.reports.figure import (
    INK,
    LINES,
    MAX_PANELS,
    MUTED,
    Figure,
    Line,
    drawn,
    left_out,
    styled,
)
from probelight.results.load import Results

IN_ONE_FIGURE = 6  # panels; a probe has a figure of its own where there would be more
LOOKS = dict(zip((STANDARD, NO_LANGUAGE, PERTURBED), LINES, strict=False))
# Of controls that have no look of their own, in the order of their names.
FURTHER = (
    Line(INK, (0, (1, 2)), "*"),
    Line(MUTED, (0, (3, 1, 1, 1)), "d"),
    Line(INK, (0, (4, 1, 1, 1, 1, 1)), "x"),
)
RANDOM = LINES[3]


def control_figures(results: Results) -> list[Figure]:
    """Each model with its controls, its random weights and the baselines (figures 1, 2 and 4)."""
    found = summaries(results)
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
        heading(summary.curve, "probe" if several else "model") for summary in shown[:MAX_PANELS]
    ]
    looks = {line.look for own in lines for line in own}
    said = f"{bands(shown)} "
    said += "The line without marks trains the last layer alone. " if LINEAR in looks else ""
    said += "What a model owes to language is the gap between its standard line and its controls"
    below = looks & {RANDOM, *BASELINES}
    said += "; what it owes to pre-training, the gap to the others." if below else "."
    with styled():
        return drawn(
            name,
            f"Accuracy against the number of training examples{of}",
            f"N is on a log axis, with the untrained model at 0. {said}" + left_out(len(shown)),
            panel_canvas(lines, heads),
        )


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
        if other.role == "control":
            lines.append(Drawn(other.curve, STANDARD, "random weights", RANDOM))
        else:
            name = other.curve.model.split(" (")[0]
            lines.append(Drawn(other.curve, STANDARD, name, next(baselines)))
    return lines
