"""A full disk, damaged files, a folder that goes: trouble of one cell, said; the others go on."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.protocols import cli
from probelight.protocols.jobs.job import Job
from tests.fixtures.small_disk import fill
from tests.protocols.jobs.harness import (
    log_lines,
    planned,
    results,
    run_to_end,
    said,
    start_run,
    wait_until,
)
from tests.protocols.jobs.trivial import RUNNER, begun, cells

pytestmark = pytest.mark.slow


def lines(folder: Path, start: str) -> list[str]:
    """What the runs said with that beginning."""
    return [line for line in said(folder).splitlines() if line.startswith(start)]


def test_cells_fail_on_a_full_disk_and_the_same_command_goes_on(disk: Path, tmp_path: Path) -> None:
    (disk / "run.log").symlink_to(tmp_path / "run.log")
    jobs = cells(3, waits=True)
    planned(disk, jobs, max_retries=0)
    run = start_run(disk)
    wait_until(lambda: begun(disk) == 2, seconds=120)
    (disk / "go").touch()
    ballast = fill(disk / "ballast")
    assert run.wait(timeout=120) == 1, said(disk)
    assert all(f"{job.key}: failed for good" in said(disk) for job in jobs)
    assert said(disk).count("No space left on device") >= len(jobs)
    assert results(disk) == {}
    assert run_to_end(disk) == 1  # it cannot even say that it drives
    last = said(disk).splitlines()[-1]
    assert last.startswith("train.py sweep run: failed: ")
    assert last.endswith("No space left on device; make room there; the same command then goes on")
    ballast.unlink()
    assert run_to_end(disk) == 0, said(disk)
    assert sorted(log_lines(disk)) == sorted(job.key for job in jobs)


def test_a_damaged_file_is_the_failure_of_its_cell_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, config, attempt, drawn, good = jobs = cells(5)
    behind = Job("behind", {"number": 9}, RUNNER, needs=(result.key,))
    planned(tmp_path, [*jobs, behind], max_retries=0)
    runs = tmp_path / "runs"
    damaged = {
        runs / result.key / "result.json": '{"format": 2, "rows": [',
        runs / config.key / "config.yaml": "number: [1",
        runs / attempt.key / "attempt.json": '{"number": 1}',
        runs / drawn.key / "drawn.json": "{",
    }
    before = {path: path.read_text() for path in damaged if path.exists()}
    for path, text in damaged.items():
        path.write_text(text)
    assert run_to_end(tmp_path) == 1
    assert log_lines(tmp_path) == [good.key]
    for path, text in damaged.items():
        [line] = lines(tmp_path, f"failed: {path.parent.name}")
        assert str(path) in line
        assert path.read_text() == text
    assert "result.json alone, and `sweep run` makes the cell anew" in said(tmp_path)
    assert f"not started: {behind.key}: it needs {result.key}" in said(tmp_path)
    assert "Traceback" not in said(tmp_path)
    assert cli.main(["sweep", "status", f"--output_dir={tmp_path}"]) == 0
    numbers = "1 done, 0 running, 0 waiting, 4 failed, 1 not started behind a failed one"
    assert numbers in capsys.readouterr().out
    for path in damaged:
        path.unlink()
    for path, text in before.items():
        path.write_text(text)
    assert run_to_end(tmp_path) == 0, said(tmp_path)
    assert sorted(log_lines(tmp_path)) == sorted([*(job.key for job in jobs), behind.key])


def test_a_folder_that_goes_while_its_cell_runs_is_said(tmp_path: Path) -> None:
    gone, good, late = jobs = cells(3, waits=True)
    planned(tmp_path, [gone, good, replace(late, needs=(good.key,))], max_retries=0)
    run = start_run(tmp_path)
    wait_until(lambda: begun(tmp_path) == 2, seconds=120)
    folder = tmp_path / "runs" / gone.key
    shutil.rmtree(folder)
    (tmp_path / "go").touch()
    assert run.wait(timeout=120) == 1, said(tmp_path)
    assert log_lines(tmp_path) == [good.key, late.key]
    [line] = lines(tmp_path, f"failed: {gone.key}")
    assert f"{folder} is gone; `train.py sweep plan` makes it again" in line
    assert "Traceback" not in said(tmp_path)
    planned(tmp_path, jobs)
    assert run_to_end(tmp_path) == 0
    assert sorted(log_lines(tmp_path)) == sorted(job.key for job in jobs)
