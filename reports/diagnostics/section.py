"""What the report says of the psycholinguistic diagnostics."""

from __future__ import annotations

from reports.diagnostics.tables import diagnostics_table
from reports.diagnostics.words import words_tables
from reports.kit.section import Section

DIAGNOSTICS = Section(
    name="diagnostics",
    title="Psycholinguistic diagnostics",
    tables=(diagnostics_table, words_tables),
    printed={"diagnose": (diagnostics_table,)},
)
