from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.diagnostics.section import DIAGNOSTICS
from probelight.reports.kit.forms.plain import to_csv
from probelight.reports.sections import printed, sections
from tests.fixtures.diagnostics import results_of, share
from tests.fixtures.report import labels


def test_the_page_has_what_the_command_prints_and_the_papers_numbers_elsewhere(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    assert DIAGNOSTICS in sections()
    rows = [share(8, 34), share(1, 34, "sensitivity"), share(1, 9, "repeated_subject")]
    results = results_of(tmp_path, write_run, rows)
    page, terminal = DIAGNOSTICS.made(results).tables, printed("diagnose", results)
    assert [table.name for table in page] == [table.name for table in terminal]
    assert [labels(table) for table in page[:2]] == [["set", "m: @1 %"], ["set", "m: prefers %"]]
    assert [len(labels(table)) for table in terminal[:2]] == [4, 6]
    assert [to_csv(table) for table in page] == [to_csv(table) for table in terminal]
    assert ["Paper" in table.note for table in (*page[:2], *terminal[:2])] == [False] * 2 + [
        True
    ] * 2
