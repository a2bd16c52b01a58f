"""The figure of what models scored before any training."""

from __future__ import annotations

import pandas as pd

from probelight.reports.figure import INK, PAPER, Figure, Line, model_looks
from probelight.reports.row_figure import row_figure
from probelight.reports.zero_shot.scores import zero_shots
from probelight.results.load import Results

MAJORITY = "always the most frequent answer"


def zero_shot_figure(results: Results) -> Figure | None:
    """Draw accuracy before any training, with intervals and the chance level of each probe."""
    found = zero_shots(results)
    if found.empty:
        return None
    names = found.probe.str.replace("_", " ")
    if found.split.nunique() > 1:
        names += (" (" + found.split + ")").where(found.split != "", "")
    found = found.assign(
        heading="", name=names, look=found.model, value=found.accuracy, chance=found.floor,
        over=(found.accuracy - found.floor.fillna(0)).groupby(names).transform("max"),
    ).sort_values("over", ascending=False, kind="stable")  # fmt: skip
    majority = found.dropna(subset="majority_accuracy").drop_duplicates("name")
    return row_figure(
        "zero_shot",
        "Accuracy before any training",
        "Lines are 95% intervals. The upright line on each probe is chance; the diamond is what "
        "always giving the most frequent answer would score. A model whose interval reaches the "
        "chance line shows nothing.",
        pd.concat([found, majority.assign(look=MAJORITY, value=majority.majority_accuracy)]),
        {**model_looks(found.model.unique()), MAJORITY: Line(INK, "none", "D", PAPER)},
        "accuracy, %",
    )
