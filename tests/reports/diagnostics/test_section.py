from __future__ import annotations

from reports.diagnostics.section import DIAGNOSTICS
from reports.diagnostics.tables import (
    accuracy_table,
    first_words_table,
    sensitivity_table,
    survival_table,
)
from reports.diagnostics.words import words_tables
from reports.sections import sections


def test_the_page_has_what_the_command_prints() -> None:
    assert DIAGNOSTICS in sections()
    printed = (accuracy_table, survival_table, sensitivity_table, first_words_table)
    assert DIAGNOSTICS.printed == {"diagnose": printed}
    assert DIAGNOSTICS.tables == (*printed, words_tables)
