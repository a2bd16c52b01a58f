"""What a dose did to items of each class of knowledge."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from probelight.metrics.knowledge import CLASSES
from probelight.reports import table as tables
from probelight.reports.estimates import Estimate, named
from probelight.reports.inoculation.runs import Dose, doses, with_controls
from probelight.reports.table import Table, text, whole
from probelight.reports.zero_shot.phrasings import CLASS_NOTE
from probelight.results.load import Results


def classes_table(results: Results) -> Table | None:
    """Make the table of what a dose did to items of each knowledge class."""
    every = [dose for line in doses(with_controls(results)).values() for dose in line]
    return tables.table(
        "knowledge_classes",
        "Does the dose teach what was weakly known, or what was unknown?",
        "The report items by how well the model knew them before the dose. Their class is decided "
        "by its answers in other phrasings than the one that is measured. "
        f"{CLASS_NOTE} k = 0: the same items in the measured phrasing before the dose. "
        "Means over seeds.",
        [record for dose in every for record in _of_classes(dose)],
        [
            text("probe", "probe", "_about"),
            whole("k", "dose"),
            text("known before", "known"),
            whole("n", "num_items"),
            tables.share("items %", "share"),
            tables.share("guesser %", "guessed"),
            tables.share("k = 0", "before", group="accuracy %"),
            tables.share("after", "after", group="accuracy %"),
            tables.accuracy("lost", "forgetting", group="% of the class"),
            tables.accuracy("gained", "transfer", group="% of the class"),
            tables.gap("gain, points", "gain"),
        ],
    )


MEASURED = {
    "before": "probe_accuracy_before",
    "after": "probe_accuracy",
    "forgetting": "probe_forgetting",
    "transfer": "probe_transfer",
    "gain": "probe_net_loss",
}


def _of_classes(dose: Dose) -> Iterator[dict[str, Any]]:
    for name in CLASSES:
        found = [
            {metric: row for part, rows in cell.parts.items() if part.kind == "known"
             and part["name"] == name for metric, row in rows.items()}
            for cell in dose.runs
        ]  # fmt: skip
        if not all("class_share" in of_run for of_run in found):
            continue
        means: dict[str, float | None] = {}
        for label, metric in MEASURED.items():
            rows = [of_run[metric] for of_run in found if metric in of_run]
            mean = None
            if len(rows) == len(found):  # of several seeds no interval is known
                alone = len(rows) == 1
                mean = Estimate.of(rows[0]) if alone else Estimate(fmean(r.value for r in rows))
                mean = mean.negative if label == "gain" else mean
            means |= named(f"{label} {label}_ci_low {label}_ci_high", mean)
        first = found[0].get("probe_accuracy")
        yield {
            **dose.series.columns,
            "dose": dose.dose,
            "known": name,
            "num_items": first.num_items if first else 0,
            "share": found[0]["class_share"].value,
            "guessed": found[0]["class_share_guessed"].value,
            **means,
            "_about": dose.series.about,
            "_runs": [cell.run.key for cell in dose.runs],
        }
