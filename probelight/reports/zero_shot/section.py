"""What the report says of models before any training."""

from __future__ import annotations

from probelight.reports.kit.section import Section
from probelight.reports.kit.text import few
from probelight.reports.zero_shot.findings import before_training, imported
from probelight.reports.zero_shot.pairs import by_paradigm, paradigms_table
from probelight.reports.zero_shot.rules import flipped_items_table, flips_table, rules_table, unread
from probelight.reports.zero_shot.tables import (
    parts_table,
    predicted_shares_table,
    ranks_table,
    zero_shot_table,
)

ZERO_SHOT = Section(
    name="before",
    title="Before any training",
    tables=(
        zero_shot_table,
        predicted_shares_table,
        parts_table,
        paradigms_table,
        ranks_table,
        rules_table,
        flips_table,
        flipped_items_table,
    ),
    figures=("probelight.reports.zero_shot.figures:zero_shot_figure",),
    findings=lambda results: [
        *imported(results),
        *few(before_training(results), "models"),
        *few(by_paradigm(results), "sets of minimal pairs"),
        *unread(results),
    ],
    printed={
        "zero_shot": (
            zero_shot_table,
            parts_table,
            paradigms_table,
            ranks_table,
            rules_table,
            flips_table,
        )
    },
)
