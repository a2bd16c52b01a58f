from __future__ import annotations

from reports.diagnostics.section import DIAGNOSTICS
from reports.diagnostics.tables import diagnostics_table
from reports.diagnostics.words import words_tables
from reports.sections import sections


def test_the_page_has_what_the_command_prints() -> None:
    assert DIAGNOSTICS in sections()
    assert DIAGNOSTICS.printed == {"diagnose": (diagnostics_table,)}
    assert DIAGNOSTICS.tables == (diagnostics_table, words_tables)
