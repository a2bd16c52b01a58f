"""The figures of the diagnostics: models next to each other, with the two of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from probelight.reports.diagnostics import ACCURACY, MARGIN, SENSITIVITY, at_each_k, diagnosed
from probelight.reports.figure import INK, Figure, Line
from probelight.reports.published import published
from probelight.reports.row_figure import model_looks, row_figure
from probelight.results.load import Results

PAPER_LOOKS = {"BERT-B (paper)": Line(INK, "none", "x"), "BERT-L (paper)": Line(INK, "none", "+")}
NUMBER = ["probe", "metric", "subset", "perturbation"]  # which one it is, ours or the paper's


def accuracy_figure(results: Results) -> Figure | None:
    """Draw the accuracies of the sets at each k, perturbed as in the paper; tables have parts."""
    rows = diagnosed(results)
    is_shown = (rows.perturbation == "") | _is_in_paper(rows)
    return _figure(
        "diagnostics_accuracy",
        "Words that people expect",
        "An expected word is among the model's k best. Lines are 95% intervals.",
        {name: at.removesuffix(" %") for name, at in at_each_k(results, ACCURACY).items()},
        rows[is_shown & (rows.subset == "")],
    )


def sensitivity_figure(results: Results) -> Figure | None:
    """Draw the sensitivities, with the margin and without, that the paper has as well."""
    rows = diagnosed(results)
    return _figure(
        "diagnostics_sensitivity",
        "Good or bad completions",
        "How often the good completion is more probable than the bad one, and how often it is by "
        "more than 0.01. The upright line is what chance would give; a model whose 95% interval "
        "reaches it shows nothing.",
        {SENSITIVITY: "", MARGIN: "by 0.01"},
        rows[_is_in_paper(rows)],
    )


def _figure(
    name: str, title: str, caption: str, metrics: Mapping[str, str], rows: pd.DataFrame
) -> Figure | None:
    """Draw the numbers of each metric on each part of a set, the paper's on the last line."""
    rows = rows[rows.metric.isin([*metrics])]
    if rows.empty:
        return None
    labels = [
        ", ".join(filter(None, (row.condition, metrics[row.metric]))) or "all"
        for row in rows.itertuples()
    ]
    rows = rows.assign(
        heading=rows.title,
        name=labels,
        look=rows.model,
        chance=rows.chance.where(rows.metric == SENSITIVITY),
        _part=rows.groupby(["title", "condition"], sort=False).ngroup(),
        _rank=rows.metric.map([*metrics].index),
    ).sort_values(["_part", "_rank"], kind="stable")
    places = rows.drop_duplicates(["heading", "name"]).drop(columns=["look", "value"])
    of_paper = places.merge(_paper(), on=NUMBER)
    return row_figure(
        name,
        title,
        caption + ("" if of_paper.empty else " Crosses: Ettinger (2020), without intervals."),
        pd.concat([rows, of_paper]),
        {**model_looks(rows.model.unique()), **PAPER_LOOKS},
        "%",
    )


def _paper() -> pd.DataFrame:
    """Return the paper's numbers, in columns named like ours."""
    found = published().query("paper == 'Ettinger 2020'").rename(columns={"part": "subset"})
    return found.assign(look=found.name + " (paper)")[[*NUMBER, "look", "value"]]


def _is_in_paper(rows: pd.DataFrame) -> Any:
    """Return of each number whether the paper has it as well."""
    return pd.MultiIndex.from_frame(rows[NUMBER]).isin(pd.MultiIndex.from_frame(_paper()[NUMBER]))
