"""The figure of all models' learning curves side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure as Canvas

from probelight.probes.controls import STANDARD
from probelight.reports.curve.figures.panels import BASELINES, Drawn, bands, heading, panel_canvas
from probelight.reports.curve.summary import Summary, summaries
from probelight.reports.figure import (
    LINES,
    MAX_PANELS,
    MUTED,
    Figure,
    Line,
    drawn,
    left_out,
    styled,
)
from probelight.reports.published import short_name
from probelight.results.load import Results

MODELS = (*LINES, Line(MUTED, (0, (3, 1, 1, 1, 1, 1)), "X"))


def models_figure(results: Results) -> Figure | None:
    """The standard curves of all models and baselines, a panel a probe and mode."""
    shown = [s for s in summaries(results) if s.role != "control" and s.curve.mode != "linear"]
    places = dict.fromkeys((s.curve.source, s.curve.mode) for s in shown)
    by_place = [[s for s in shown if (s.curve.source, s.curve.mode) == place] for place in places]
    several = [own for own in by_place if sum(s.role == "model" for s in own) > 1]
    if not several:
        return None
    looks = _model_looks([summary for own in several for summary in own])
    lines = [
        [Drawn(s.curve, STANDARD, "", looks[s.curve.model]) for s in own]
        for own in several[:MAX_PANELS]
    ]
    with styled():
        canvas = panel_canvas(lines, [heading(own[0].curve, "") for own in several[:MAX_PANELS]])
        _legend(canvas, looks)
        return drawn(
            "learning_curve_models",
            "The models' learning curves, side by side",
            "Standard curves alone, against the number of training examples (log axis, the "
            f"untrained model at 0). {bands(shown)}" + left_out(len(several)),
            canvas,
        )


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
