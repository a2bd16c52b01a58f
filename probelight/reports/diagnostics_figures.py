"""The figures of the diagnostics: models next to each other, with the two of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

import pandas as pd
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


def accuracy_figure(results: Results) -> Figure | None:
    """Draw the accuracies of the sets at each k, perturbed as in the paper; tables have parts."""
    rows = diagnosed(results)
    return _figure(
        "diagnostics_accuracy",
        "Words that people expect",
        "An expected word is among the model's k best. Whiskers are 95% intervals of so many "
        "contexts.",
        {name: at.removesuffix(" %") for name, at in at_each_k(results, ACCURACY).items()},
        rows[(rows.subset == "") & ((rows.perturbation == "") | _in_paper(rows))],
    )


def sensitivity_figure(results: Results) -> Figure | None:
    """Draw the sensitivities, with the margin and without, that the paper has as well."""
    rows = diagnosed(results)
    return _figure(
        "diagnostics_sensitivity",
        "Good or bad completions",
        "How often the good completion is more probable than the bad one, and how often it is by "
        "more than 0.01. The upright line is what chance would give; a model whose whisker "
        "reaches it shows nothing. Whiskers are 95% intervals of so many comparisons.",
        {SENSITIVITY: "", MARGIN: "by 0.01"},
        rows[_in_paper(rows)],
    )


def _in_paper(rows: pd.DataFrame) -> pd.Series:
    found = [paper(PAPER_MODELS[0], row["metric"], row) for row in rows.to_dict("records")]
    return pd.Series(found, rows.index, dtype="float64").notna()


def _figure(
    name: str, title: str, caption: str, metrics: Mapping[str, str], rows: pd.DataFrame
) -> Figure | None:
    """Draw a group of lines for each number, a line a model; the paper's models share the last."""
    rows = rows[rows.metric.isin([*metrics])]
    if rows.empty:
        return None
    models, with_paper = [*rows.model.unique()], _in_paper(rows).any()
    parts = [*dict.fromkeys(zip(rows.title, rows.condition, strict=True))]
    sorted_rows = sorted(
        rows.to_dict("records"),
        key=lambda r: (parts.index((r["title"], r["condition"])), [*metrics].index(r["metric"])),
    )
    with styled():
        at, ticks = 0.0, []
        canvas = Canvas()
        canvas.set_layout_engine("constrained")
        axis = canvas.subplots()
        for set_title, of_set in groupby(sorted_rows, key=itemgetter("title")):
            axis.text(0, at, set_title, fontsize=8.5, fontweight="bold", va="center")
            at += 1.3
            for place, of_place in groupby(of_set, key=itemgetter("condition", "metric")):
                lines = _draw(axis, at, models, [*of_place])
                label = ", ".join(filter(None, (place[0], metrics[place[1]]))) or "all"
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
        return drawn(name, title, caption + source, canvas)


def _draw(axis: Axes, at: float, models: list[str], rows: list[dict[str, Any]]) -> int:
    """Draw a line for each model, then one with the paper's; return the number of lines."""
    for row in rows:
        rank = models.index(row["model"])
        y, style = at + rank, look(rank)
        if row["ci_low"] is not None and row["ci_high"] is not None:
            ends = [100 * row["ci_low"], 100 * row["ci_high"]]
            axis.plot(ends, [y, y], color=style["color"], linewidth=1.6, solid_capstyle="butt")
        axis.plot([100 * row["value"]], [y], **style, markersize=5)
        axis.text(ENDS[0], y, percent(row["value"]), va="center", ha="right", fontsize=8)
        interval = between(row["ci_low"], row["ci_high"])
        axis.text(ENDS[1], y, interval, va="center", ha="right", fontsize=7, color=MUTED)
    lines = len(models)
    for model, mark in zip(PAPER_MODELS, PAPER_MARKS, strict=True):
        if (value := paper(model, rows[0]["metric"], rows[0])) is not None:
            axis.plot([100 * value], [at + len(models)], color=INK, marker=mark, markersize=5.5)
            lines = len(models) + 1
    if rows[0]["metric"] == SENSITIVITY:
        span = [at - 0.5, at + lines - 0.5]
        axis.plot([100 * rows[0]["chance"]] * 2, span, color=INK, linewidth=1.1, zorder=1)
    return lines


def look(rank: int) -> dict[str, Any]:
    """Return colour and mark of a model; from the fifth on the marks are hollow."""
    line, again = LINES[rank % len(LINES)], rank // len(LINES) % 2
    face = PAPER if again else line.color
    return {"color": line.color, "marker": line.marker, "markerfacecolor": face}
