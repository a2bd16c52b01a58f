"""What the report says of the psycholinguistic diagnostics."""

from __future__ import annotations

from functools import partial

from probelight.reports.diagnostics.findings import expectations
from probelight.reports.diagnostics.runs import unread
from probelight.reports.diagnostics.tables import (
    accuracy_table,
    first_words_table,
    sensitivity_table,
    survival_table,
)
from probelight.reports.diagnostics.words import words_tables
from probelight.reports.kit.section import Section
from probelight.reports.kit.text import few

# The page has the paper's numbers in a section of their own, a terminal beside ours.
OURS = (
    partial(accuracy_table, with_paper=False),
    survival_table,
    partial(sensitivity_table, with_paper=False),
    first_words_table,
)
DIAGNOSTICS = Section(
    name="diagnostics",
    title="Psycholinguistic diagnostics",
    tables=(*OURS, words_tables),
    figures=(
        "probelight.reports.diagnostics.figures:accuracy_figure",
        "probelight.reports.diagnostics.figures:sensitivity_figure",
    ),
    findings=lambda results: [*few(expectations(results), "models"), *unread(results)],
    printed={"diagnose": (accuracy_table, survival_table, sensitivity_table, first_words_table)},
)
