"""What a run refuses before a cell has started: no Ray, and what no node has."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from probelight.protocols import cli
from tests.protocols.jobs.harness import planned, run_to_end, said
from tests.protocols.jobs.trivial import cells

pytestmark = pytest.mark.slow


def test_without_ray_its_extra_is_named_and_all_else_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    sweep, folder = tmp_path / "sweep", tmp_path / "curve"
    planned(sweep, cells(1))
    assert cli.main(["sweep", "run", f"--output_dir={sweep}"]) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("train.py sweep run: error: cells on Ray need Ray (")
    assert line.endswith("; pip install -e '.[sweep]'")
    assert cli.main(["sweep", "status", f"--output_dir={sweep}"]) == 0
    curve = ["curve", "--probes=age_small", "--grid.sizes=[62]", "--grid.seeds=[1]"]
    assert cli.main([*curve, "--grid.epochs=1", f"--output_dir={folder}"]) == 0
    assert (folder / "results.csv").exists()


def test_what_no_node_has_is_refused_by_name(tmp_path: Path) -> None:
    planned(tmp_path, cells(1))
    assert run_to_end(tmp_path, "--engine.memory_per_cell=100000") == 2
    last = said(tmp_path).splitlines()[-1]
    wanted = "a cell takes 100000 GB of memory, and no node of Ray "
    assert last.startswith(f"train.py sweep run: error: {wanted}")
    assert last.endswith("; set --engine.memory_per_cell")
    assert "Traceback" not in said(tmp_path)
