from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.diagnostics.runs import labelled_runs
from probelight.results.load import load_results
from tests.fixtures.results import accuracy

WriteRun = Callable[..., Path]


def test_runs_stand_set_by_set_and_those_of_one_name_have_their_folder(
    tmp_path: Path, write_run: WriteRun
) -> None:
    for name, probe in (("a", "neg_nat"), ("b", "neg_nat"), ("c", "role"), ("d", "cprag")):
        write_run(tmp_path, name, [accuracy(1, 2, protocol="diagnose", model="m", probe=probe)])
    [cprag, role, first, second] = labelled_runs(load_results(tmp_path))
    assert [cprag[0].probe, role[0].probe] == ["cprag", "role"]
    assert [cprag[1], role[1]] == ["m", "m"]
    assert first[1] == f"m ({first[0].path})"
    assert second[1] == f"m ({second[0].path})"
    assert first[1] != second[1]
