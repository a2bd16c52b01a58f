"""What the report says of the smaller analyses."""

from __future__ import annotations

from probelight.reports.analyses.tables import taxonomy_distance_table, unigrams_table
from probelight.reports.kit.section import Section

ANALYSES = Section(
    name="analyses",
    title="What the answers follow",
    tables=(taxonomy_distance_table, unigrams_table),
    printed={"taxonomy_distance": (taxonomy_distance_table,), "unigrams": (unigrams_table,)},
)
