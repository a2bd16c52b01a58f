"""The training dynamics of the dose (Swayamdipta et al. 2020), and forgetting events."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from statistics import fmean
from typing import TYPE_CHECKING, Any

import pandas as pd

from probelight.reports import table as tables
from probelight.reports.estimates import count, in_words
from probelight.reports.inoculation.runs import Dose, doses, drawn, with_controls
from probelight.reports.table import Table, text, whole
from probelight.results.load import Results, UnreadableResultError
from probelight.results.predictions import DOSE, read_item_lines

if TYPE_CHECKING:
    from probelight.reports.figure import Figure  # matplotlib takes a second to import

SETS = {DOSE: "dose", "probe": "probe, selection", "original": "original task, selection"}
MEANS = ("confidence", "variability", "correctness", "forgotten_share", "forgetting_events")
LEAST_EPOCHS = 2  # with one epoch nothing varies
CORRECT = ("right in no epoch", "in some epochs", "in all epochs")


def dynamics_table(results: Results) -> Table | None:
    """Make the table of the means over the items that the training looked at after each epoch."""
    rows = [
        row for line in doses(with_controls(results)).values() for dose in line for row in _of(dose)
    ]
    if not rows:
        return None
    return tables.table(
        "dynamics",
        "Training dynamics, epoch by epoch",
        "How items change from epoch to epoch; means over seeds. Confidence: the probability of a "
        "dose item's right answer, averaged over epochs; variability: its standard deviation; "
        "correct: the share of epochs in which it is right (Swayamdipta et al. 2020). Forgotten: "
        "items that turned from right to wrong at least once; events: how often this happened per "
        "item (Toneva et al. 2019). Selection items are scored before training too. Of a large "
        "dose only the first items are scored, as many as make an epoch a tenth longer.",
        rows,
        [
            text("items", "items", "_about"),
            whole("k", "dose"),
            whole("epochs", "epochs"),
            whole("n", "num_items"),
            tables.share("confidence %", "confidence"),
            tables.share("variability", "variability"),
            tables.share("correct %", "correctness"),
            tables.share("forgotten %", "forgotten_share"),
            tables.number("events", "forgetting_events", "{:.2f}".format),
        ],
    )


def _of(dose: Dose) -> Iterator[dict[str, Any]]:
    epochs = max(len(run.trajectory.get("aggregate", {})) - 1 for run in dose.runs)
    for name, label in SETS.items():
        # Those of the dose are measured on no split of the probe, others on the selection items.
        found = [
            {
                metric: row
                for metric in MEANS
                for row in run.run.rows
                if row.metric == f"{name}_{metric}" and row.split in (DOSE, "selection")
            }
            for run in dose.runs
        ]
        if not all(found):
            continue
        yield {
            **dose.series.columns,
            "items": label,
            "dose": dose.dose,
            "epochs": epochs,
            "num_items": next(iter(found[0].values())).num_items,
            **{
                metric: fmean(of_run[metric].value for of_run in found)
                for metric in MEANS
                if all(metric in of_run for of_run in found)
            },
            "_about": dose.series.about,
            "_runs": [run.run.key for run in dose.runs],
        }


@lru_cache(maxsize=2)
def dose_items(results: Results) -> pd.DataFrame:
    """Return a row for each dose item of the chosen runs that trained for several epochs."""
    rows = []
    for line in doses(drawn(results)).values():
        for dose in line:
            for cell in dose.runs:
                if len(cell.trajectory.get("aggregate", {})) - 1 < LEAST_EPOCHS:
                    continue
                try:
                    items = read_item_lines(results, cell.run)
                except UnreadableResultError:
                    continue  # the section of all items says so
                rows += [
                    (cell.series, cell.dose, one.confidence, one.variability, one.correctness)
                    for one in items
                    if one.set == DOSE and one.confidence is not None
                ]
    columns = ["series", "dose", "confidence", "variability", "correctness"]
    return pd.DataFrame(rows, columns=columns)


def data_map_figure(results: Results) -> Figure | None:
    """Draw confidence against variability of each dose item, one panel per dose."""
    found = dose_items(results)
    if found.empty:
        return None
    from probelight.reports import figure as figures

    looks = {
        CORRECT[0]: figures.Line(figures.ORANGE, "none", "x", size=3.6),
        CORRECT[1]: figures.Line(figures.PURPLE, "none", "s", figures.PAPER, size=3.2),
        CORRECT[2]: figures.Line(figures.BLUE, "none", "o", size=2.8),
    }
    panels = [*found.groupby(["series", "dose"], sort=False)]
    shown = panels[: figures.MAX_PANELS]
    with figures.styled():
        canvas, axes = figures.panels(len(shown), height=3.0)
        for axis, ((series, dose), items) in zip(axes, shown, strict=True):
            title = f"{in_words(series.probe)}, k = {count(dose)}"
            figures.head(axis, title, series.about)
            right = items.correctness.map(lambda c: CORRECT[0 if c == 0 else 2 if c == 1 else 1])
            for label, look in looks.items():
                part = items[right == label]
                style = {**look.style, "alpha": 0.75, "markeredgewidth": 0.8}
                axis.plot(100 * part.variability, 100 * part.confidence, **style)
            axis.set_xlim(-1, 51)
            axis.set_ylim(-2, 102)
            axis.set_xlabel("variability, percentage points")
            axis.set_ylabel("confidence %")
        figures.legend(canvas, looks)
        return figures.drawn(
            "data_map",
            "How the model learned the dose",
            "Each mark is an item of the dose (all seeds), scored in eval mode after each epoch: "
            "the mean probability of its right answer over epochs against its standard deviation "
            "(Swayamdipta et al. 2020). Top left: learned at once; bottom left: not learned; "
            f"right: in between.{figures.left_out(len(panels), figures.MAX_PANELS)}",
            canvas,
        )
