"""The figures of the diagnostics: models next to each other, with the two of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from probelight.reports.diagnostics import (
    ACCURACY,
    MARGIN,
    PAPER_MODELS,
    SENSITIVITY,
    at_each_k,
    diagnosed,
    paper,
)
from probelight.reports.figure import INK, LINES, MUTED, PAPER, Figure, drawn, styled
from probelight.reports.published import short_name
from probelight.reports.words import between, percent
from probelight.results.load import Results

PAPER_MARKS = ("x", "+")
LINE = 0.16  # inches of a model's line
ENDS = 112, 131  # where the columns with the numbers and the intervals end
BERT = PAPER_MODELS[0]


def accuracy_figure(results: Results) -> Figure | None:
    """Draw the accuracies of the sets at each k, perturbed as in the paper; tables have parts."""
    metrics = {name: name.removeprefix(ACCURACY) for name in at_each_k(results, ACCURACY)}
    return _figure(
        ("diagnostics_accuracy", "Words that people expect"),
        "An expected word is among the model's k best. Whiskers are 95% intervals of so many "
        "contexts.",
        metrics,
        [
            row
            for row in diagnosed(results).to_dict("records")
            if row["metric"] in metrics and not row["subset"]
            if not row["perturbation"] or paper(BERT, row["metric"], row) is not None
        ],
    )


def sensitivity_figure(results: Results) -> Figure | None:
    """Draw the sensitivities, with the margin and without, that the paper has as well."""
    metrics = {SENSITIVITY: "", MARGIN: "by 0.01"}
    return _figure(
        ("diagnostics_sensitivity", "Good or bad completions"),
        "How often the good completion is more probable than the bad one, and how often it is by "
        "more than 0.01. The upright line is what chance would give; a model whose whisker "
        "reaches it shows nothing. Whiskers are 95% intervals of so many comparisons.",
        metrics,
        [
            row
            for row in diagnosed(results).to_dict("records")
            if row["metric"] in metrics and paper(BERT, row["metric"], row) is not None
        ],
    )


def _figure(
    named: tuple[str, str],
    caption: str,
    metrics: Mapping[str, str],
    rows: Sequence[Mapping[str, Any]],
) -> Figure | None:
    """Draw a group of lines for each number, a line a model; the paper's models share the last.

    Args:
        named: Name and title.
        caption: How to read it.
        metrics: What each metric is called.
        rows: The numbers.
    """
    if not rows:
        return None
    models = list(dict.fromkeys(row["model"] for row in rows))
    parts = dict.fromkeys((row["title"], row["condition"]) for row in rows)
    by_place: dict[tuple[str, str, str], dict[str, Mapping[str, Any]]] = {
        (*part, metric): {} for part in parts for metric in metrics
    }
    for row in rows:
        by_place[row["title"], row["condition"], row["metric"]][row["model"]] = row
    places = [place for place, by_model in by_place.items() if by_model]
    with_paper = any(paper(BERT, row["metric"], row) is not None for row in rows)
    with styled():
        at, ticks = 0.0, []
        canvas = Canvas()
        canvas.set_layout_engine("constrained")
        axis = canvas.subplots()
        for title, of_title in groupby(places, key=lambda place: place[0]):
            axis.text(0, at, title, fontsize=8.5, fontweight="bold", va="center")
            at += 1.3
            for place in of_title:
                lines = _draw(axis, at, models, by_place[place])
                label = ", ".join(filter(None, (place[1], metrics[place[2]]))) or "all"
                ticks.append((at + (lines - 1) / 2, label))
                at += lines + 0.6
            at += 0.5
        axis.set_ylim(at - 0.2, -0.8)
        axis.set_xlim(-2, ENDS[1])
        axis.spines["bottom"].set_bounds(0, 100)
        axis.set_xticks(range(0, 101, 20))
        axis.set_xlabel("%", x=0.4)
        axis.set_yticks([y for y, _ in ticks], [text for _, text in ticks])
        axis.grid(axis="y", visible=False)
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        marks: list[object] = []
        for rank, model in enumerate(models):
            marks += axis.plot([], [], **look(rank), label=model)
        for model, mark in zip(PAPER_MODELS, PAPER_MARKS, strict=True):
            if with_paper:
                label = f"{short_name(model)} (paper)"
                marks += axis.plot([], [], color=INK, marker=mark, linestyle="none", label=label)
        columns = 4 if len("".join(models)) < 45 else 2  # long names need the width
        canvas.legend(handles=marks, loc="outside upper left", ncols=min(columns, len(marks)))
        canvas.set_size_inches(7.4, 0.95 + LINE * at)
        source = " Crosses: Ettinger (2020), without intervals." if with_paper else ""
        return drawn(*named, caption + source, canvas)


def _draw(
    axis: Axes, at: float, models: Sequence[str], by_model: Mapping[str, Mapping[str, Any]]
) -> int:
    """Draw a line for each model, then one with the paper's; return the number of lines."""
    for model, row in by_model.items():
        y, style = at + models.index(model), look(models.index(model))
        if row["ci_low"] is not None and row["ci_high"] is not None:
            ends = [100 * row["ci_low"], 100 * row["ci_high"]]
            axis.plot(ends, [y, y], color=style["color"], linewidth=1.6, solid_capstyle="butt")
        axis.plot([100 * row["value"]], [y], **style, markersize=5)
        axis.text(ENDS[0], y, percent(row["value"]), va="center", ha="right", fontsize=8)
        interval = between(row["ci_low"], row["ci_high"])
        axis.text(ENDS[1], y, interval, va="center", ha="right", fontsize=7, color=MUTED)
    any_row = next(iter(by_model.values()))
    lines = len(models)
    for model, mark in zip(PAPER_MODELS, PAPER_MARKS, strict=True):
        if (value := paper(model, any_row["metric"], any_row)) is not None:
            axis.plot([100 * value], [at + len(models)], color=INK, marker=mark, markersize=5.5)
            lines = len(models) + 1
    if any_row["metric"] == SENSITIVITY:
        span = [at - 0.5, at + lines - 0.5]
        axis.plot([100 * any_row["chance"]] * 2, span, color=INK, linewidth=1.1, zorder=1)
    return lines


def look(rank: int) -> dict[str, Any]:
    """Return colour and mark of a model; from the fifth on the marks are hollow."""
    line, again = LINES[rank % len(LINES)], rank // len(LINES) % 2
    face = PAPER if again else line.color
    return {"color": line.color, "marker": line.marker, "markerfacecolor": face}
