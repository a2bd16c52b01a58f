"""Signals and a killed driver: states are saved, nothing stays behind, the same command goes on."""

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

from tests.protocols.jobs import tiny_training, trivial
from tests.protocols.jobs.harness import (
    log_lines,
    planned,
    results,
    run_to_end,
    said,
    start_run,
    wait_until,
)
from tests.protocols.jobs.on_ray.processes import alive, cells_of, family
from tests.protocols.jobs.trivial import begun

pytestmark = pytest.mark.slow


@pytest.fixture
def ended() -> Iterator[list[psutil.Process]]:
    """Processes that a test fails of if they outlive it."""
    found: list[psutil.Process] = []
    yield found
    left = alive(found)
    for process in left:
        process.kill()
    assert not left


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
        assert run.wait(timeout=120) == code, said(folder)
        wait_until(lambda: not alive(ended), seconds=10)  # noqa: B023
        assert "stopping: cells have 120 s to save their state" in said(folder)
        assert "the same command goes on" in said(folder).splitlines()[-1]
        before = steps
        steps = [torch.load(state, weights_only=True)["global_step"] for state in states]
        assert all(map(operator.lt, before, steps))
        assert max(steps) < tiny_training.NUM_STEPS
    assert run_to_end(folder) == 0, said(folder)
    assert sorted(log_lines(folder)) == sorted(job.key for job in jobs)
    assert results(folder) == tiny_training.undisturbed(tmp_path / "undisturbed", jobs)


def test_a_second_ctrl_c_ends_cells_at_once(tmp_path: Path, ended: list[psutil.Process]) -> None:
    planned(tmp_path, trivial.cells(2, seconds=300, stubborn=True), stop_seconds=300)
    run = start_run(tmp_path)
    wait_until(lambda: begun(tmp_path) == 2, seconds=120)
    ended += family(run.pid)
    stop(run, signal.SIGINT)
    wait_until(lambda: "stopping" in said(tmp_path), seconds=10)
    time.sleep(3)
    assert len(cells_of(tmp_path)) == 2
    stop(run, signal.SIGINT)
    assert run.wait(timeout=20) == 130, said(tmp_path)
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
    assert run.returncode == 130, said(tmp_path)
    wait_until(lambda: not alive(ended), seconds=10)
    assert "Traceback" not in said(tmp_path)
    assert results(tmp_path) == {}


def test_all_ends_with_a_killed_driver(tmp_path: Path, ended: list[psutil.Process]) -> None:
    jobs = trivial.cells(2, seconds=5)
    planned(tmp_path, jobs)
    run = start_run(tmp_path)
    wait_until(lambda: begun(tmp_path) == 2, seconds=120)
    ended += family(run.pid)
    run.kill()
    assert run.wait() == -signal.SIGKILL
    [room] = Path("/tmp").glob(f"pl.*-{run.pid}-*.tmp")
    wait_until(lambda: not alive(ended), seconds=30)
    assert results(tmp_path) == {}
    assert run_to_end(tmp_path) == 0, said(tmp_path)
    assert not room.exists()
    assert sorted(log_lines(tmp_path)) == sorted(job.key for job in jobs)
