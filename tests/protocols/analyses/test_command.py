from __future__ import annotations

from pathlib import Path

import pytest

from probelight.protocols import cli
from tests.fixtures.rows import read_results

GRID = ["grid", "--grid.panels=[A]", "--grid.first_age=20", "--grid.last_age=40", "--grid.step=10"]
QUIET = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]


def test_a_grid_is_filled_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*GRID, f"--output_dir={tmp_path}", *QUIET]
    assert cli.main(command) == 0
    rows = read_results(tmp_path / "results.csv")
    [accuracy] = [row for row in rows if row["metric"] == "accuracy"]
    # Three ages in both orders: six sentences about three pairs.
    assert (accuracy["num_items"], accuracy["num_groups"]) == ("6", "3")
    before = (tmp_path / "results.csv").read_bytes()
    capsys.readouterr()
    assert cli.main(command) == 0
    assert "complete" in capsys.readouterr().out
    assert (tmp_path / "results.csv").read_bytes() == before


def test_a_baseline_has_no_answers_before_it_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [*GRID, "--models=esim", f"--output_dir={tmp_path / 'out'}", *QUIET]
    assert cli.main(command) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("train.py grid: error: ")
    assert "ESIM" in line
    assert not (tmp_path / "out").exists()


def test_what_results_there_are_is_said_where_no_two_models_can_be_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zero_shot = ["zero-shot", "--probes=age_small", f"--output_dir={tmp_path / 'zero'}", *QUIET]
    assert cli.main(zero_shot) == 0
    command = ["unigrams", f"--results={tmp_path / 'zero'}", f"--output_dir={tmp_path / 'out'}"]
    command += ["--counts_a=a.txt", "--counts_b=b.txt", "--model_a=embedded", "--model_b=other"]
    capsys.readouterr()
    assert cli.main([*command, "--measure=zero_shot"]) == cli.USAGE_ERROR
    [line] = capsys.readouterr().err.strip().splitlines()
    assert "fewer than two probes have results of both embedded and other" in line
    assert "results of embedded" in line
    assert not (tmp_path / "out").exists()
