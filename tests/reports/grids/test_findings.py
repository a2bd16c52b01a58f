from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from probelight.reports.grids.findings import compared
from probelight.results.load import Results, load_results
from tests.fixtures.grids import OBJECTS, as_in_table_4, write_grid

WriteRun = Callable[..., Path]


def test_the_findings_name_accuracies_and_habits(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for name in "AC":
        write_grid(tmp_path, write_run, rows, name, [20, 30], lambda i, j: 0.1)
    write_grid(tmp_path, write_run, rows, "sizes", OBJECTS, as_in_table_4)
    assert compared(load_results(tmp_path)) == [
        "Asked about every pair of values (paper wording, chance 50%), m was right on 50.0% with "
        "where what (A, 20–30 in steps of 10), 50.0% with where what (C, 20–30 in steps of 10) and "
        "83.9% with where what. It said almost always the same: “older” (A, C)."
    ]
    assert compared(Results("empty", ())) == []
