"""Table 7 of Richardson & Sabharwal 2020, groups 3 and 4: science models, theirs and ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pandas as pd

from probelight.reports import table as tables
from probelight.reports.estimates import Estimate
from probelight.reports.inoculation.doses import Dose, best_dose, doses, starts
from probelight.reports.inoculation.runs import ON_REPORTED, Series, inoculations, series_of
from probelight.reports.published import difference, lies, published
from probelight.reports.released import on_paper_task, on_released, paper_model
from probelight.reports.table import Cell, Column, Table, accuracy, gap, text, whole
from probelight.reports.words import NOT_INTERPRETABLE
from probelight.results.load import Results
from probelight.results.row import Row

ZERO_SHOT, INOCULATED = "science_zero_shot", "inoculated"
GROUPS = {
    "random": "guessing",
    ZERO_SHOT: "before (k = 0)",
    INOCULATED: "inoculated",
    "human": "people",
}
SPLITS = ("dev", "test")
PAPER_DOSE = 3000  # group 4 is after so many examples
CHANGE = "original_task_change change_ci_low change_ci_high"
PEOPLE = "ours_minus_people people_ci_low people_ci_high"
MINUS_PAPER = "ours − paper, points"


def science_models_table(results: Results) -> Table | None:
    """Make the table of groups 3 and 4 for each probe of the paper that there are results of."""
    ours = science_rows(results)
    probes = list(dict.fromkeys(row["probe"] for row in ours))
    groups = list(GROUPS)
    rows = [*_theirs(probes), *ours]
    rows.sort(key=lambda row: (probes.index(row["probe"]), groups.index(row["group"])))

    def change(row: Any) -> Cell | str:
        shown = gap("", CHANGE).show(row)
        return shown if row.cost_interpretable is not False else NOT_INTERPRETABLE

    return tables.table(
        "science_models",
        "Richardson & Sabharwal 2020, table 7: science models before and after inoculation",
        "Rows marked as the paper's are published numbers, the others ours with their 95% "
        "intervals (means over seeds). Dev is silver and, for hypernymy, hyponymy and "
        "dictionary_qa, test was filtered by people: the two columns cannot be compared. "
        "Inoculated: M*_k at the k with the best average on the selection items; the paper's "
        "after 3,000 examples. Original task: accuracy after minus before, negative = lost. Other "
        "models, other original tasks or other vectors are set side by side, not compared. What "
        "the paper printed is taken as exact, but for people on definitions and synonymy: they "
        "were asked 500 questions, so the difference has an interval, of two independent "
        "proportions (Newcombe 1998)." + _left_out(results),
        [{name: row.get(name) for name in COLUMNS} for row in rows],
        [
            text("probe", "probe"),
            Column("", lambda row: GROUPS[row.group], "left"),
            text("model", "model", "_paper"),
            whole("k", "dose"),
            *(accuracy(split, f"{split}_accuracy {split}_ci_low {split}_ci_high") for split in SPLITS),
            Column("original task, points", change),
            gap("accuracy", "ours_minus_paper", group=MINUS_PAPER),
            text("the paper's lies", "paper_lies", group=MINUS_PAPER),
            gap("original task", "change_minus_paper", group=MINUS_PAPER),
            gap("ours − people, points", PEOPLE),
        ],
    )
