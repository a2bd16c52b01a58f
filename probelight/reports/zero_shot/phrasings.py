"""What a model knew of items that were asked in several phrasings."""

from __future__ import annotations

from typing import Any

from probelight.metrics.knowledge import CLASSES
from probelight.reports import table as tables
from probelight.reports.table import Table, text, whole
from probelight.results.frames import results_frame
from probelight.results.load import Results

SHARES = {"class_share": "share", "class_share_guessed": "guessed"}
CLASS_NOTE = (
    "HighlyKnown: right in all phrasings. MaybeKnown: right in some. WeaklyKnown: right in none, "
    "but in some the right answer is more probable than an even guess. Unknown: the rest (after "
    "Gekhman et al. 2024). With two choices no item is WeaklyKnown, with one phrasing none is "
    "MaybeKnown. Guesser: the shares that the same answers would give if the right choice of each "
    "item were drawn at random."
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
        "Does the model still know it in other words?",
        "Accuracy: over all phrasings of each item, including its own. Consistency: the share of "
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
