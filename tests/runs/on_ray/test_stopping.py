from __future__ import annotations

import operator
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch

from tests.fixtures.small_disk import fill
from tests.runs import tiny_training, trivial
from tests.runs.harness import (
    log_lines,
    planned,
    results,
    run_to_end,
    start_run,
    wait_until,
    written_text,
)
from tests.runs.on_ray.processes import alive, attempts_of, family
from tests.runs.trivial import begun

pytestmark = pytest.mark.slow


@pytest.fixture
def ended() -> Iterator[list[psutil.Process]]:
    """Processes that a test fails of if they outlive it."""
    processes: list[psutil.Process] = []
    yield processes
    running = alive(processes)
    for process in running:
        process.kill()
    assert not running


def stop(run: subprocess.Popen[str], number: int) -> None:
    """SIGTERM goes to the driver, as from a scheduler; Ctrl-C to its group, as from a terminal."""
    if number == signal.SIGINT:
        os.killpg(run.pid, number)
    else:
        run.send_signal(number)


def test_cells_save_their_state_and_the_same_command_goes_on(
    tmp_path: Path, ended: list[psutil.Process]
) -> None:
    folder, jobs = tmp_path / "sweep", tiny_training.cells(2, seconds=1.0)
    planned(folder, jobs, checkpoint_every=100)  # no state but those saved for a signal
    states = [folder / "runs" / job.key / "checkpoints" / "last.ckpt" for job in jobs]
    steps = [0, 0]
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        for mark in folder.glob("runs/*/begun"):
            mark.unlink()
        run = start_run(folder)
        wait_until(lambda: begun(folder) == 2, seconds=120)
        ended += family(run.pid)
        time.sleep(1)
        stop(run, number)
        assert run.wait(timeout=120) == code, written_text(folder)
        wait_until(lambda: not alive(ended), seconds=10)  # noqa: B023
        assert "stopping; runs have 120 s to save their state" in written_text(folder)
        assert "rerun the same command to resume" in written_text(folder).splitlines()[-1]
        steps_before = steps
        steps = [torch.load(state, weights_only=True)["global_step"] for state in states]
        assert all(map(operator.lt, steps_before, steps))
        assert max(steps) < tiny_training.NUM_STEPS
    assert run_to_end(folder) == 0, written_text(folder)
    tiny_training.check_finished(folder, jobs)


def test_a_second_ctrl_c_ends_cells_at_once(tmp_path: Path, ended: list[psutil.Process]) -> None:
    planned(tmp_path, trivial.cells(2, seconds=300, stubborn=True), stop_seconds=300)
    run = start_run(tmp_path)
    wait_until(lambda: begun(tmp_path) == 2, seconds=120)
    ended += family(run.pid)
    stop(run, signal.SIGINT)
    wait_until(lambda: "stopping" in written_text(tmp_path), seconds=10)
    time.sleep(3)
    assert len(attempts_of(tmp_path)) == 2
    stop(run, signal.SIGINT)
    assert run.wait(timeout=20) == 130, written_text(tmp_path)
    wait_until(lambda: not alive(ended), seconds=10)


def test_ctrl_c_while_ray_starts_leaves_nothing(
    tmp_path: Path, ended: list[psutil.Process]
) -> None:
    planned(tmp_path, trivial.cells(1))
    run = start_run(tmp_path)
    wait_until(lambda: len(family(run.pid)) > 1, seconds=60)
    stop(run, signal.SIGINT)
    while run.poll() is None:
        ended += [process for process in family(run.pid) if process not in ended]
        time.sleep(0.1)
    assert run.returncode == 130, written_text(tmp_path)
    wait_until(lambda: not alive(ended), seconds=10)
    assert "Traceback" not in written_text(tmp_path)
    assert results(tmp_path) == {}


def test_cells_fail_on_a_full_disk_and_the_same_command_goes_on(disk: Path, tmp_path: Path) -> None:
    (disk / "run.log").symlink_to(tmp_path / "run.log")
    jobs = trivial.cells(3, waits=True)
    planned(disk, jobs, max_retries=0)
    run = start_run(disk)
    wait_until(lambda: begun(disk) == 2, seconds=120)
    (disk / "go").touch()
    ballast = fill(disk / "ballast")
    assert run.wait(timeout=120) == 1, written_text(disk)
    assert all(f"{job.key}: failed for good" in written_text(disk) for job in jobs)
    assert written_text(disk).count("No space left on device") >= len(jobs)
    assert results(disk) == {}
    assert run_to_end(disk) == 1  # it cannot even say that it drives
    last = written_text(disk).splitlines()[-1]
    assert last.startswith("train.py sweep run: failed: ")
    assert last.endswith(
        "No space left on device; make room there, then rerun the same command to resume"
    )
    ballast.unlink()
    assert run_to_end(disk) == 0, written_text(disk)
    assert sorted(log_lines(disk)) == sorted(job.key for job in jobs)
