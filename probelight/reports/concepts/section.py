"""What the report says of concepts that were asked about several times."""

from __future__ import annotations

from probelight.reports.concepts.clusters import clusters_table, known, left_out
from probelight.reports.concepts.concepts import concepts_table
from probelight.reports.concepts.difficulty import difficulty_table
from probelight.reports.kit.section import Section
from probelight.reports.kit.text import few

CONCEPTS = Section(
    name="concepts",
    title="What a model knows, concept by concept",
    tables=(clusters_table, concepts_table, difficulty_table),
    figures=("probelight.reports.concepts.figures:difficulty_figure",),
    findings=lambda results: [*few(known(results), "models"), *left_out(results)],
)
