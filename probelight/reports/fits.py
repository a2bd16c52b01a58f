"""What the report shows of `train.py fit`: the last and the best validation of each run."""

from __future__ import annotations

from probelight.reports.table import Table, number, table, text, whole
from probelight.results.frames import results_frame
from probelight.results.load import Results


def fits_table(results: Results) -> Table | None:
    """Make the table of the validation metrics of each fit."""
    rows = results_frame(results).query("protocol == 'fit'")
    last = rows[rows.extra == "last"].rename(columns={"value": "last", "epoch": "last_epoch"})
    # A metric of which no value is better than another has no best one.
    best = rows[rows.extra == "best"].rename(columns={"value": "best", "epoch": "best_epoch"})
    place = ["path", "metric"]
    found = last.merge(best[[*place, "best", "best_epoch"]], how="left", on=place)
    return table(
        "fits",
        "What did the fits score?",
        "Metrics of the validation as the LightningModule logs them, accuracies as fractions. The "
        "best is the best epoch's by this metric alone, so it is chosen by what it is measured on.",
        found.assign(_runs=found.run),
        [
            text("model", "model"),
            text("data", "probe"),
            text("metric", "metric"),
            number("last", "last", _value),
            whole("epoch", "last_epoch"),
            number("best", "best", _value),
            whole("best epoch", "best_epoch"),
        ],
        csv="model probe mode num_train seed learning_rate metric last last_epoch best best_epoch",
    )


def _value(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")
