"""What was known of each item over several phrasings, and what a dose did to each class."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from probelight.metrics.knowledge import CLASSES
from probelight.reports import table as tables
from probelight.reports import words
from probelight.reports.inoculation.runs import Dose, doses, with_controls
from probelight.reports.table import Table, text, whole
from probelight.results.frames import results_frame
from probelight.results.load import Results

SHARES = {"class_share": "share", "class_share_guessed": "guessed"}
CLASS_NOTE = (
    "HighlyKnown: right in all of them; MaybeKnown: in some; WeaklyKnown: in none, but the right "
    "answer more probable than an even guess in some; Unknown: the rest (after Gekhman et al. "
    "2024). With two choices nothing is WeaklyKnown, with one phrasing nothing is MaybeKnown. "
    "Guesser: the same scores, were any choice the right one."
)


def phrasings_table(results: Results) -> Table | None:
    """Make the table of accuracy and consistency over phrasings, and of knowledge classes."""
    rows = results_frame(results).query("protocol == 'zero_shot'")
    rows = rows[rows.run.isin(rows[rows.metric == "consistency"].run)]
    records = []
    for _, of_run in rows.groupby("path", sort=False):
        one = {row.metric: row for row in of_run.itertuples() if not row.subset}
        consistency = one["consistency"]
        record: dict[str, Any] = {
            "probe": consistency.probe,
            "split": consistency.split,
            "model": consistency.model,
            "phrasings": (of_run.subset_kind == "phrasing").sum(),
            "num_items": consistency.num_items,
            "num_groups": consistency.num_groups,
            "consistency": consistency.value,
            "consistency_ci_low": consistency.ci_low,
            "consistency_ci_high": consistency.ci_high,
            **{n: one[f"phrasings_{n}"].value for n in ("mean", "lowest", "best")},
            "_runs": consistency.run,
        }
        for row in of_run[of_run.metric.isin(SHARES)].itertuples():
            record[f"{row.part['name']}_{SHARES[row.metric]}"] = row.value
        records.append(record)
    known = [
        column
        for name in CLASSES
        for column in (
            tables.share("items %", f"{name}_share", group=name),
            tables.share("guesser %", f"{name}_guessed", group=name),
        )
    ]
    return tables.table(
        "phrasings",
        "What was known, in other words too",
        "Accuracy over the phrasings of each item, its own among them; consistency: the share of "
        f"pairs of phrasings with the same answer (Elazar et al. 2021). {CLASS_NOTE}",
        records,
        [
            text("probe", "probe", "split"),
            text("model", "model"),
            whole("phrasings", "phrasings"),
            tables.size(),
            tables.share("mean", "mean", group="accuracy %"),
            tables.share("lowest", "lowest", group="accuracy %"),
            tables.share("best", "best", group="accuracy %"),
            tables.accuracy("consistency %", "consistency"),
            *known,
        ],
    )


def classes_table(results: Results) -> Table | None:
    """Make the table of what a dose did to items of each knowledge class."""
    every = [dose for line in doses(with_controls(results)).values() for dose in line]
    return tables.table(
        "knowledge_classes",
        "Does the dose teach what was weakly known, or what was unknown?",
        "Classes of the report items by the answers of the model before the dose in other "
        "phrasings than the one that is measured, so that no class was drawn by the answers that "
        f"change. {CLASS_NOTE} k = 0: the same items in the measured phrasing before the dose. "
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
            tables.number("gain, points", "gain", words.points),
        ],
    )


def _of_classes(dose: Dose) -> Iterator[dict[str, Any]]:
    for name in CLASSES:
        found = [
            {metric: row for part, rows in cell.parts.items() if part.kind == "known"
             and part["name"] == name for metric, row in rows.items()}
            for cell in dose.runs
        ]  # fmt: skip
        if not all("class_share" in of_run for of_run in found):
            continue
        before, after = (
            fmean(of_run[metric].value for of_run in found)
            if all(metric in of_run for of_run in found)
            else None
            for metric in ("probe_accuracy_before", "probe_accuracy")
        )
        first = found[0].get("probe_accuracy")
        yield {
            **dose.series._asdict(),
            "dose": dose.dose,
            "known": name,
            "num_items": first.num_items if first else 0,
            "share": found[0]["class_share"].value,
            "guessed": found[0]["class_share_guessed"].value,
            "before": before,
            "after": after,
            "gain": None if before is None or after is None else after - before,
            "_about": dose.series.about,
            "_runs": [cell.run.key for cell in dose.runs],
        }
