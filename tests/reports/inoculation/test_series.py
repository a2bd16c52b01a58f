from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from reports.inoculation.doses import doses
from reports.inoculation.facts import inoculations
from results.load import load_results
from tests.fixtures.inoculations import cell

WriteRun = Callable[..., Path]


def test_splits_and_ways_of_choosing_are_lines_of_their_own(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = cell(rows, 1e-5, [(0.2, 0.6), (0.5, 0.5)])
    for name, facts in (
        ("a", {"selection": "train", "report_split": "dev"}),
        ("b", {"selection": "train", "report_split": "test"}),
        ("c", {"selection": "paper", "report_split": "test"}),
    ):
        write_run(tmp_path, name, found, **facts)
    lines = doses(inoculations(load_results(tmp_path)))
    remarks = [series.remarks for series in lines]
    assert remarks == ["chosen on the reported items (test)", "dev", "test"]
