"""The figures of the diagnostics: models side by side, with the two of the paper beside them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probelight.reports.diagnostics.facts import (
    ACCURACY,
    BERT,
    MARGIN,
    PAPER_MODELS,
    SENSITIVITY,
    Asked,
    asked,
    at_each_k,
)
from probelight.reports.figure import INK, LINES, MUTED, PAPER, Figure, drawn, styled
from probelight.reports.kit.text import between, percent
from probelight.reports.published import short_name
from probelight.results.load import Results

PAPER_MARKS = ("x", "+")
_LINE = 0.16  # inches of a model's line
_ENDS = 112, 131  # where the columns with the numbers and the intervals end


def accuracy_figure(results: Results) -> Figure | None:
    """Accuracies of the sets at each k, perturbed as in the paper; tables have the parts."""
    metrics = {name: name.removeprefix(ACCURACY) for name in at_each_k(results, ACCURACY)}
    found = [one for one in asked(results, metrics) if one.part is None]
    return _figure(
        ("diagnostics_accuracy", "Words that people expect"),
        "An expected word is among the model's k best. Whiskers are 95% intervals of so many "
        "contexts.",
        [
            (one, metric)
            for one in found
            for metric in metrics
            if not one.perturbation or one.paper(BERT, metric) is not None
        ],
        metrics,
    )


def sensitivity_figure(results: Results) -> Figure | None:
    """Sensitivities, with the margin and without, that the paper has as well."""
    metrics = {SENSITIVITY: "", MARGIN: "by 0.01"}
    found = asked(results, metrics)
    return _figure(
        ("diagnostics_sensitivity", "Good or bad completions"),
        "How often the good completion is more probable than the bad one, and how often it is by "
        "more than 0.01. The upright line is what chance would give; a model whose whisker "
        "reaches it shows nothing. Whiskers are 95% intervals of so many comparisons.",
        [
            (one, metric)
            for one in found
            for metric in metrics
            if one.paper(BERT, metric) is not None
        ],
        metrics,
    )


def _figure(
    named: tuple[str, str],
    caption: str,
    found: list[tuple[Asked, str]],
    metrics: Mapping[str, str],
) -> Figure | None:
    """Groups of lines: a group a number, a line a model; the paper's models share the last one.

    Args:
        named: Name and title.
        caption: How to read it.
        found: What was measured, and by which metric.
        metrics: What each metric is called.
    """
    places = dict.fromkeys(
        (one.title, one.condition, metric) for one, metric in found if metric in one.rows
    )
    if not places:
        return None
    labels = list(dict.fromkeys(one.label for one, _ in found))
    with_paper = any(one.paper(BERT, metric) is not None for one, metric in found)
    with styled():
        at, ticks, bold = 0.0, [], []
        by_place = {(one.label, one.title, one.condition): one for one, _ in found}
        canvas = Canvas()
        canvas.set_layout_engine("constrained")
        axis = canvas.subplots()
        for group, own in groupby(places, key=lambda place: place[0]):
            bold.append((at, group))
            at += 1.3
            for place in own:
                several = [by_place.get((label, *place[:2])) for label in labels]
                lines = _draw(axis, at, several, place[2])
                ticks.append((at + (lines - 1) / 2, _label(place, metrics)))
                at += lines + 0.6
            at += 0.5
        _frame(axis, at, ticks, bold)
        _legend(canvas, axis, labels, with_paper)
        canvas.set_size_inches(7.4, 0.95 + _LINE * at)
        paper = " Crosses: Ettinger (2020), without intervals." if with_paper else ""
        return drawn(*named, caption + paper, canvas)


def _draw(axis: Axes, at: float, several: list[Asked | None], metric: str) -> int:
    """A line a model, then one with the paper's models; the number of lines."""
    for rank, one in enumerate(several):
        if one is None or metric not in one.rows:
            continue
        row, y, look = one.rows[metric], at + rank, _look(rank)
        if row.ci_low is not None and row.ci_high is not None:
            ends = [100 * row.ci_low, 100 * row.ci_high]
            axis.plot(ends, [y, y], color=look["color"], linewidth=1.6, solid_capstyle="butt")
        axis.plot([100 * row.value], [y], **look, markersize=5)
        axis.text(_ENDS[0], y, percent(row.value), va="center", ha="right", fontsize=8)
        interval = between(row.ci_low, row.ci_high)
        axis.text(_ENDS[1], y, interval, va="center", ha="right", fontsize=7, color=MUTED)
    known = [one for one in several if one is not None]
    papers = [known[0].paper(model, metric) for model in PAPER_MODELS]
    lines = len(several) + any(value is not None for value in papers)
    for value, mark in zip(papers, PAPER_MARKS, strict=True):
        if value is not None:
            axis.plot([100 * value], [at + len(several)], color=INK, marker=mark, markersize=5.5)
    chance = known[0].chance
    if metric == SENSITIVITY and chance is not None:
        span = [at - 0.5, at + lines - 0.5]
        axis.plot([100 * chance] * 2, span, color=INK, linewidth=1.1, zorder=1)
    return lines


def _look(rank: int) -> dict[str, Any]:
    """Colour and mark of a model; from the fifth on the marks are hollow."""
    line, again = LINES[rank % len(LINES)], rank // len(LINES) % 2
    face = PAPER if again else line.color
    return {"color": line.color, "marker": line.marker, "markerfacecolor": face}


def _label(place: tuple[str, str, str], metrics: Mapping[str, str]) -> str:
    _, condition, metric = place
    return ", ".join(filter(None, (condition, metrics[metric]))) or "all"


def _frame(
    axis: Axes, end: float, ticks: list[tuple[float, str]], bold: list[tuple[float, str]]
) -> None:
    axis.set_ylim(end - 0.2, -0.8)
    axis.set_xlim(-2, _ENDS[1])
    axis.spines["bottom"].set_bounds(0, 100)
    axis.set_xticks(range(0, 101, 20))
    axis.set_xlabel("%", x=0.4)
    axis.set_yticks([y for y, _ in ticks], [text for _, text in ticks])
    for y, text in bold:
        axis.text(0, y, text, fontsize=8.5, fontweight="bold", va="center")
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)


def _legend(canvas: Canvas, axis: Axes, labels: list[str], with_paper: bool) -> None:
    marks: list[object] = []
    for rank, label in enumerate(labels):
        marks += axis.plot([], [], **_look(rank), label=label)
    for model, mark in zip(PAPER_MODELS, PAPER_MARKS, strict=True):
        if with_paper:
            label = f"{short_name(model)} (paper)"
            marks += axis.plot([], [], color=INK, marker=mark, linestyle="none", label=label)
    columns = 4 if len("".join(labels)) < 45 else 2  # long names need the width
    canvas.legend(handles=marks, loc="outside upper left", ncols=min(columns, len(marks)))
