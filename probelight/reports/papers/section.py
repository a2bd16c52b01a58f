"""What the report sets beside the papers' own numbers, for those who reproduce them."""

from __future__ import annotations

from probelight.reports.kit.section import Section
from probelight.reports.papers.findings import reproduced
from probelight.reports.papers.science_models import science_models_table
from probelight.reports.papers.tables import listed_table, paper_tables

PAPERS = Section(
    name="papers",
    title="Beside the papers",
    tables=(listed_table, paper_tables, science_models_table),
    findings=reproduced,
)
