"""configs/sweep/slurm.sh under stand-ins for SLURM: its nodes are addresses of this machine."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from probelight.protocols.jobs.fencing import newest_attempt
from tests.fixtures.checkout import ROOT
from tests.protocols.jobs import tiny_training
from tests.protocols.jobs.harness import log_lines, planned, results, said, wait_until
from tests.protocols.jobs.on_ray.nodes import HEAD, OTHER
from tests.protocols.jobs.on_ray.processes import cells_of

pytestmark = pytest.mark.slow

NUM_CELLS = 3  # of which two run at once, one a node


def submitted(folder: Path, job: int) -> subprocess.Popen[str]:
    fakes = Path(__file__).parent / "fake_slurm"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{fakes}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "FAKE_LOG": str(folder / "slurm.log"),
        "FAKE_JOB_ID": str(job),
        "FAKE_NODES": f"{HEAD},{OTHER}",
        "FAKE_CPUS_PER_TASK": "1",
    }
    with (folder / "run.log").open("a") as log:
        return subprocess.Popen(
            ["sbatch", ROOT / "configs/sweep/slurm.sh", folder],
            cwd=ROOT,
            env=environment,
            stdout=log,
            stderr=log,
            text=True,
        )


def free_job() -> int:
    while True:
        number = random.randrange(10_000)
        with socket.socket() as probe:
            if probe.connect_ex((HEAD, 20_000 + number)):
                return number


def test_a_stopped_job_goes_back_into_the_queue_and_then_finishes(tmp_path: Path) -> None:
    folder, cells = tmp_path / "sweep", tiny_training.cells(NUM_CELLS, seconds=0.5)
    planned(folder, cells)
    job = free_job()
    run = submitted(folder, job)
    wait_until(lambda: len(list(folder.glob("runs/*/begun"))) == 2, seconds=120)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=120) == 0, said(folder)
    noted = (folder / "slurm.log").read_text().splitlines()
    assert noted.count(f"scontrol requeue {job}") == 1
    assert not cells_of(folder)
    stopped = {path.parents[1] for path in folder.glob("runs/*/checkpoints/*.ckpt")}
    assert stopped
    assert not any((run_dir / "result.json").exists() for run_dir in stopped)

    assert submitted(folder, job).wait(timeout=300) == 0, said(folder)
    assert all(newest_attempt(run_dir).number == 2 for run_dir in stopped)
    assert sorted(log_lines(folder)) == sorted(cell.key for cell in cells)
    assert results(folder) == tiny_training.undisturbed(tmp_path / "here", cells)
    assert not Path(f"/tmp/ray-{job}").exists()
