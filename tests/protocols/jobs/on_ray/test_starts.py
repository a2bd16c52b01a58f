"""Starts of Ray on a busy machine, whose processes are killed: each is recovered from, or named."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.protocols.jobs.harness import planned, results, said, start_run
from tests.protocols.jobs.on_ray.processes import alive, family
from tests.protocols.jobs.trivial import cells

pytestmark = pytest.mark.slow

KILLED = ("raylet", "gcs_server")
NUM_STARTS, NUM_BUSY = 4, 2


@contextmanager
def busy(num_processes: int) -> Iterator[None]:
    """Keeps CPUs busy for the block."""
    command = [sys.executable, "-c", "while True: pass"]
    spinning = [subprocess.Popen(command) for _ in range(num_processes)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def one_start(folder: Path, num_kills: int, rng: random.Random) -> tuple[int, str]:
    """Run a sweep of one job and kill what starts for it; return its exit code and output."""
    planned(folder, cells(1))
    run = start_run(folder)
    os.setpriority(os.PRIO_PROCESS, run.pid, 5)
    killed: list[psutil.Process] = []
    seen: set[psutil.Process] = set()
    while run.poll() is None and len(killed) < num_kills:
        found = [one for one in _family(run.pid) if one.name() in KILLED and one not in killed]
        if {*found} <= seen:  # one kill for each that starts, at whatever moment
            time.sleep(0.01)
            continue
        seen |= {*found}
        time.sleep(rng.choice([0.0, rng.uniform(0, 0.5), rng.uniform(0, 4)]))
        for process in alive(rng.sample(found, 1)):
            process.kill()
            killed.append(process)
    try:
        code = run.wait(timeout=900)
    finally:
        left = alive(_family(run.pid))
        for process in left:
            process.kill()
    return code, said(folder)


def _family(pid: int) -> list[psutil.Process]:
    try:
        found = family(pid)
        return [one for one in found if one.is_running() and one.name()]
    except psutil.Error:
        return []


def test_starts_whose_processes_are_killed_end_by_name_or_well(tmp_path: Path) -> None:
    rng = random.Random(0)
    for number in range(NUM_STARTS):
        with busy(NUM_BUSY):
            code, text = one_start(tmp_path / str(number), (1, 1, 2, 9)[number], rng)
        assert "Traceback" not in text
        assert code == 0 or (
            code == 1 and "failed: Ray did not start" in text.strip().splitlines()[-1]
        ), text
        assert (len(results(tmp_path / str(number))) == 1) == (code == 0)
