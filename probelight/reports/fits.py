"""What the report says of `train.py fit`: the last and the best validation of each run."""

from __future__ import annotations

from dataclasses import dataclass

from probelight.reports.kit.columns import attributes, number, text, whole
from probelight.reports.kit.table import Column, Declared, Table
from probelight.reports.kit.text import ABSENT
from probelight.results.load import Results, Run
from probelight.results.row import Row


@dataclass(frozen=True)
class Validation:
    """A metric of a fit: its last row, and its best where one value is better than another."""

    run: Run
    last: Row
    best: Row | None


def fits_table(results: Results) -> Table | None:
    """Return the validation metrics of each fit, None where there are none."""
    found = []
    for run in results.of("fit"):
        best = {row.metric: row for row in run.rows if row.extra == "best"}
        last = [row for row in run.rows if row.extra == "last"]
        found += [Validation(run, row, best.get(row.metric)) for row in last]
    columns: list[Column[Validation]] = [
        text("model", lambda e: e.run.model, "model"),
        text("data", lambda e: e.run.probe, "probe"),
        attributes("mode num_train seed learning_rate", lambda e: e.last),
        text("metric", lambda e: e.last.metric, "metric"),
        number("last", lambda e: e.last.value, _value, "last"),
        whole("epoch", lambda e: e.last.epoch, "last_epoch"),
        number("best", lambda e: e.best.value if e.best else None, _value, "best"),
        whole("best epoch", lambda e: e.best.epoch if e.best else None, "best_epoch"),
    ]
    return Declared(
        "fits",
        "What did the fits score?",
        "Metrics of the validation as the LightningModule logs them, accuracies as fractions. The "
        "best is the best epoch's by this metric alone, so it is chosen by what it is measured on.",
        columns,
    ).of(found)


def _value(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.4g}".replace("-", "−")
