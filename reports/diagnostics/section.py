"""What the report says of the psycholinguistic diagnostics."""

from __future__ import annotations

from reports.diagnostics.findings import expectations
from reports.diagnostics.tables import (
    accuracy_table,
    first_words_table,
    sensitivity_table,
    survival_table,
)
from reports.diagnostics.words import words_tables
from reports.kit.section import Section
from reports.kit.text import few

TABLES = (accuracy_table, survival_table, sensitivity_table, first_words_table)
DIAGNOSTICS = Section(
    name="diagnostics",
    title="Psycholinguistic diagnostics",
    tables=(*TABLES, words_tables),
    figures=(
        "reports.diagnostics.figures:accuracy_figure",
        "reports.diagnostics.figures:sensitivity_figure",
    ),
    findings=lambda results: few(expectations(results), "models"),
    printed={"diagnose": TABLES},
)
