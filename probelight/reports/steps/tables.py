"""The tables of what a model knew at each training step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from probelight.probes.diagnostics.sets import SETS
from probelight.reports.kit.columns import (
    ACCURACY,
    SIZE,
    accuracy,
    attributes,
    field,
    number,
    size,
    text,
)
from probelight.reports.kit.table import Across, Column, Declared, Table
from probelight.reports.kit.text import BY_GROUPS, INTERVAL, count
from probelight.reports.steps.facts import Snapshot, by_set, snapshots
from probelight.results.load import Results

NO_REVISION = "as published"


def steps_tables(results: Results) -> list[Table]:
    """Rows are revisions by step; columns are probes, or the measures of a set of diagnostics."""
    made = []
    for name, own in by_set(snapshots(results)).items():
        if name:
            title = f"{SETS[name].title}, by training step"
            made.append(_table(f"training_steps_{name}", title, own, lambda one: one.measure))
        else:
            title = "Accuracy before any training, by training step"
            made.append(_table("training_steps", title, own, _set))
    return [table for table in made if table is not None]


def _set(one: Snapshot) -> str:
    split = one.row.split
    return f"{one.row.probe} ({split})" if split else one.row.probe


def _table(
    name: str, title: str, found: Sequence[Snapshot], column_of: Callable[[Snapshot], str]
) -> Table | None:
    def measured(label: str) -> list[Column[Snapshot]]:
        return [
            accuracy("%", lambda one: one.row, ACCURACY, label),
            size("n", lambda one: one.row, SIZE, label),
        ]

    return Declared[Snapshot](
        name,
        title,
        "The step is the number in a revision's name; those that name none stand last. "
        f"{INTERVAL.replace('accuracy', 'share')} ({BY_GROUPS}).",
        [
            number("step", lambda one: one.step, count, "step"),
            text("revision", lambda one: one.revision or NO_REVISION),
            text("model", lambda one: one.model, "model"),
            field("revision", lambda one: one.revision),
            attributes("probe metric split mode", lambda one: one.row),
        ],
        Across(column_of, lambda one: (one.model, one.revision), measured),
        f"model revision step probe metric {ACCURACY} {SIZE}",
    ).of(found)
