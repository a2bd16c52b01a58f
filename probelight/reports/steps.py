"""Scores by training step: of a model's revisions, and of a training that a callback watched."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import cycle

import pandas as pd

from probelight.io.files import distinct_ends
from probelight.reports import numbers
from probelight.reports import table as tables
from probelight.reports.charts import Panel, Trace, line_figure
from probelight.reports.figure import LINES, Figure
from probelight.reports.numbers import BY_GROUPS, INTERVAL, Estimate
from probelight.reports.table import ACCURACY, SIZE, Table, accuracy, size, text, whole
from probelight.results.details import WatchDetails
from probelight.results.frames import changes, results_frame, trained_models
from probelight.results.load import WATCH, RunSet, UnreadableResultError

STEP = re.compile(r"(?<![a-z])(?:global[-_]?)?(?:steps?|checkpoint|ckpt|iter)[-_=]?(\d+)([km]?)\b")
WHOLE = re.compile(r"(\d{1,12})([km]?)")
TIMES = {"": 1, "k": 1_000, "m": 1_000_000}
NO_REVISION = "as published"
NO_CHANGE = "no clear change"


def step_of(revision: str) -> int | None:
    """Return the training step in a revision's name ("stage1-step5000-tokens21B"), or None.

    It is the number after step, checkpoint, ckpt or iter, or the whole name. A k or m after it
    means thousands or millions.
    """
    lower = revision.lower().replace("_", "-")
    match = STEP.search(lower) or WHOLE.fullmatch(lower)
    return int(match[1]) * TIMES[match[2]] if match else None


@lru_cache(maxsize=2)
def snapshots(results: RunSet) -> pd.DataFrame:
    """Return the results on whole sets of models with several steps, by model and step.

    They are accuracies and all shares of the diagnostics; revisions without a step come last.
    Further columns: `revision`, `step`, `measure`, and `set`: that of a diagnostic, `WATCH` for a
    callback's training, empty for zero-shot probes. `task` is "original task" if it is one.
    """
    rows = results_frame(results)
    has_steps = rows.protocol.isin(["zero_shot", "diagnose", WATCH])
    rows = rows[has_steps & (rows.role == "model") & rows.control.isin(numbers.WHOLE)]
    sources = [results.by_path[path].source for path in rows.path]
    bases = [source.loaded_from.removesuffix(f"@{source.revision}") for source in sources]
    names = distinct_ends(bases)
    details = [results.by_path[path].detail(WatchDetails) for path in rows.path]
    watched = trained_models(results)
    revisions = [source.revision or "" for source in sources]
    rows = rows.assign(
        model=[watched.get(path, names[b]) for path, b in zip(rows.path, bases, strict=True)],
        task=[detail.task if detail else "" for detail in details],
        revision=revisions,
        step=pd.array([step_of(revision) for revision in revisions], dtype="Int64"),
        measure=[numbers.measure(metric) for metric in rows.metric],
        set=rows.protocol.replace("zero_shot", "").mask(rows.protocol == "diagnose", rows.probe),
    )
    is_whole = (rows.subset == "") & (rows.perturbation == "") & rows.ci_low.notna()
    is_shown = (rows.protocol == "diagnose") | (rows.metric == "accuracy")
    shown_rows = rows[is_whole & is_shown & (rows.scoring == "")]
    several = shown_rows.groupby("model").step.transform("nunique") > 1
    order = ["model", "step", "revision", "task"]
    shown_rows = shown_rows[several | (shown_rows.set == WATCH)]
    return shown_rows.sort_values(order, kind="stable", ignore_index=True)


def _title(name: str) -> str:
    """Return the title of a set's table and figure."""
    from probelight.probes.diagnostics.sets import SETS

    return f"{SETS[name].title if name in SETS else 'Accuracy'}, by training step"


def steps_tables(results: RunSet) -> list[Table | None]:
    """Make the tables of revisions by step; columns are probes, or measures of a set."""
    step_rows = snapshots(results)
    if step_rows.empty:
        return []
    set_tables = []
    for name, set_rows in step_rows.groupby("set"):
        set_labels = (set_rows.split + ", " + set_rows.task).str.strip(", ")
        probe_labels = set_rows.probe + (" (" + set_labels + ")").where(set_labels != "", "")
        revision = "The step is the number in a revision's name; revisions without one come last. "
        set_tables.append(
            tables.table(
                f"training_steps_{name}".rstrip("_"),
                _title(name),
                f"{'' if name == WATCH else revision}{INTERVAL.replace('accuracy', 'share')} "
                f"({BY_GROUPS}).",
                set_rows.assign(
                    accuracy=set_rows.value,
                    _across=probe_labels if name in ("", WATCH) else set_rows.measure,
                    _revision=None if name == WATCH else set_rows.revision.replace("", NO_REVISION),
                ),
                [whole("step", "step"), text("revision", "_revision"), text("model", "model")],
                rows="model revision",
                across="_across",
                each=[accuracy("%"), size()],
                csv=f"model revision step probe metric {ACCURACY} {SIZE} split mode",
            )
        )
    return set_tables


def steps_figures(results: RunSet) -> list[Figure]:
    """Draw each measure against the training step: a figure per set, a panel per measure."""
    from probelight.probes.diagnostics.sets import SETS

    bands = "Bands are 95% intervals, dotted lines are chance."
    of_revisions = " Steps are in revisions' names; the axis is logarithmic, 0 is on its left."
    step_rows = snapshots(results)
    chances = numbers.chance_levels(results)
    figures = []
    for name, set_rows in step_rows[step_rows.step.notna()].groupby("set"):
        looks = dict(zip(set_rows.model.unique(), cycle(LINES), strict=False))
        panels = [
            Panel(
                SETS[probe].title if name == probe else numbers.in_words(probe),
                numbers.dotted(task, measure, split),
                [
                    Trace([(row.step, Estimate.of(row)) for row in rows.itertuples()], looks[model])
                    for model, rows in panel_rows.groupby("model")
                ],
                {} if name == probe else {"chance": chances.get(probe)},
            )
            for (task, probe, split, measure), panel_rows in set_rows.groupby(
                ["task", "probe", "split", "measure"], sort=False
            )
        ]
        figures.append(
            line_figure(
                f"training_steps_{name}".rstrip("_"),
                _title(name),
                bands if name == WATCH else bands + of_revisions,
                panels,
                "training step",
                "%",
                looks=looks,
                log=name != WATCH,
                shared=False,
            )
        )
    return figures


def changes_table(results: RunSet) -> Table | None:
    """Make the table of each probe before a training and after it, original tasks last."""
    try:
        rows = changes(results)
    except UnreadableResultError:
        return None  # the section of all items says so
    verdicts, reasons = [], []
    for row in rows.itertuples():
        is_clear = row.ci_low > 0 or row.ci_high < 0
        smallest = numbers.percent(row.could_see) if row.could_see < 1 else "over 100"
        against_chance = numbers.verdict_of((row.after_ci_low, row.after_ci_high), row.chance)
        verdicts.append(NO_CHANGE if not is_clear else "better" if row.change > 0 else "worse")
        reasons.append(
            f"now {numbers.VERDICTS[against_chance]}"
            if is_clear
            else f"detectable from {smallest} points"
        )
    return tables.table(
        "training_changes",
        "Before and after, on the same items",
        f"Accuracy at the first step and at the last, with 95% intervals ({BY_GROUPS}). Better, "
        "worse: the interval of the change does not include 0. No clear change: next to it is the "
        "smallest change that would be found with probability 80%. Lost: items that were right "
        "before and are wrong after; gained: the other way round; “Every item” shows them. p is "
        "below 0.05 exactly if the interval of the change does not include 0.",
        rows.assign(verdict=verdicts, reason=reasons),
        [
            tables.Column(
                "probe", lambda row: tables.Cell(row.probe, row.task or row.split), "left"
            ),
            text("model", "model"),
            tables.share("chance", "chance"),
            whole("step", "first_step", group="before"),
            accuracy("accuracy %", "before", group="before"),
            whole("step", "last_step", group="after"),
            accuracy("accuracy %", "after", group="after"),
            tables.gap("change, points", "change ci_low ci_high"),
            text("verdict", "verdict", "reason"),
            tables.Column(
                "lost / gained", lambda row: tables.flips(row.lost, row.gained, row.p_value)
            ),
            size(),
        ],
    )
