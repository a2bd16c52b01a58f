"""Scores of a model's revisions, such as pre-training checkpoints, by training step."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import cycle
from typing import TYPE_CHECKING

import pandas as pd

from probelight.reports import table as tables
from probelight.reports.estimates import Estimate, chance_levels
from probelight.reports.table import ACCURACY, SIZE, Table, accuracy, size, text, whole
from probelight.reports.words import BY_GROUPS, INTERVAL, dotted, in_words, measure
from probelight.results.frames import results_frame
from probelight.results.load import Results, distinct_ends

if TYPE_CHECKING:  # matplotlib takes a second to import
    from probelight.reports.figure import Figure

STEP = re.compile(r"(?<![a-z])(?:global[-_]?)?(?:steps?|checkpoint|ckpt|iter)[-_=]?(\d+)([km]?)\b")
WHOLE = re.compile(r"(\d{1,12})([km]?)")
TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
NO_REVISION = "as published"


def step_of(revision: str) -> int | None:
    """Return the training step in a revision's name ("stage1-step5000-tokens21B"), or None.

    It is the number after step, checkpoint, ckpt or iter, or the whole name. A k or m after it
    means thousands or millions.
    """
    lower = revision.lower().replace("_", "-")
    found = STEP.search(lower) or WHOLE.fullmatch(lower)
    return int(found[1]) * TIMES[found[2]] if found else None


@lru_cache(maxsize=2)
def snapshots(results: Results) -> pd.DataFrame:
    """Return the results on whole sets of models with several steps, by model and step.

    They are zero-shot accuracies and all shares of the diagnostics; revisions without a step come
    last. Further columns: `revision`, `step`, `measure`, and `set`, empty for zero-shot probes.
    """
    rows = results_frame(results)
    rows = rows[rows.protocol.isin(["zero_shot", "diagnose"]) & (rows.role == "model")]
    sources = [results.by_path[path].source for path in rows.path]
    bases = [source.loaded_from.removesuffix(f"@{source.revision}") for source in sources]
    names = distinct_ends(bases)
    revisions = [source.revision or "" for source in sources]
    rows = rows.assign(
        model=[names[base] for base in bases],
        revision=revisions,
        step=pd.array([step_of(revision) for revision in revisions], dtype="Int64"),
        measure=[measure(metric) for metric in rows.metric],
        set=rows.probe.where(rows.protocol == "diagnose", ""),
        _runs=rows.run,
    )
    is_whole = (rows.subset == "") & (rows.perturbation == "") & rows.ci_low.notna()
    is_shown = (rows.protocol == "diagnose") | (rows.metric == "accuracy")
    found = rows[is_whole & is_shown & (rows.scoring == "")]
    found = found[found.groupby("model").step.transform("nunique") > 1]
    return found.sort_values(["model", "step", "revision"], kind="stable", ignore_index=True)


def steps_tables(results: Results) -> list[Table | None]:
    """Make the tables of revisions by step; columns are probes, or measures of a set."""
    every = snapshots(results)
    if every.empty:
        return []
    from probelight.probes.diagnostics.sets import SETS

    made = []
    for name, found in every.groupby("set"):
        place = found.probe + (" (" + found.split + ")").where(found.split != "", "")
        made.append(
            tables.table(
                f"training_steps_{name}".rstrip("_"),
                f"{SETS[name].title if name else 'Accuracy before any training'}, by training step",
                "The step is the number in a revision's name; revisions without one come last. "
                f"{INTERVAL.replace('accuracy', 'share')} ({BY_GROUPS}).",
                found.assign(
                    accuracy=found.value,
                    _across=found.measure if name else place,
                    _revision=found.revision.replace("", NO_REVISION),
                ),
                [whole("step", "step"), text("revision", "_revision"), text("model", "model")],
                rows="model revision",
                across="_across",
                each=[accuracy("%"), size()],
                csv=f"model revision step probe metric {ACCURACY} {SIZE} split mode",
            )
        )
    return made


def steps_figures(results: Results) -> list[Figure]:
    """Draw each measure against the training step: a figure per set, a panel per measure."""
    from probelight.probes.diagnostics.sets import SETS
    from probelight.reports.figure import LINES
    from probelight.reports.line_figure import Panel, Trace, line_figure

    found = snapshots(results)
    chances = chance_levels(results)
    made = []
    for name, of_set in found[found.step.notna()].groupby("set"):
        looks = dict(zip(of_set.model.unique(), cycle(LINES), strict=False))
        panels = [
            Panel(
                SETS[probe].title if name else in_words(probe),
                dotted(what, split),
                [
                    Trace([(row.step, Estimate.of(row)) for row in rows.itertuples()], looks[model])
                    for model, rows in of_panel.groupby("model")
                ],
                {} if name else {"chance": chances.get(probe)},
            )
            for (probe, split, what), of_panel in of_set.groupby(
                ["probe", "split", "measure"], sort=False
            )
        ]
        made.append(
            line_figure(
                f"training_steps_{name}".rstrip("_"),
                f"{SETS[name].title if name else 'Accuracy before any training'}, by training step",
                "Shares by the training step in a revision's name (log axis; step 0 is on the "
                "left). Bands are 95% intervals, dotted lines are chance. Revisions without a step "
                "are only in the table.",
                panels,
                "training step",
                "%",
                looks=looks,
                shared=False,
            )
        )
    return made
