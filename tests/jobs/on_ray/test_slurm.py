"""configs/sweep/slurm.sh under stand-ins for SLURM: its nodes are addresses of this machine."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from jobs.cells.driver_claim import last_driver
from jobs.context import RunContext, TrainerSettings
from jobs.job import Job
from results.provenance import ROOT
from results.run_folder import RunFolder
from tests.jobs import tiny_training
from tests.jobs.harness import log_lines, planned, results, said, wait_until
from tests.jobs.on_ray.processes import cells_of

pytestmark = pytest.mark.slow

HEAD, OTHER = "127.0.0.2", "127.0.0.3"
NUM_CELLS = 3  # of which two run at once, one a node


def submitted(folder: Path, job: int) -> subprocess.Popen[str]:
    """`sbatch slurm.sh FOLDER`; all that is said goes to FOLDER/run.log."""
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
    """A job whose port nobody has."""
    while True:
        number = random.randrange(10_000)
        with socket.socket() as probe:
            if probe.connect_ex((HEAD, 20_000 + number)):
                return number


def states(folder: Path) -> list[Path]:
    """The states that cells have saved."""
    return list(folder.glob("runs/*/checkpoints/*"))


def undisturbed(folder: Path, jobs: Sequence[Job]) -> dict[str, Any]:
    """The results of all cells, one after another in this process."""
    torch.set_num_threads(1)
    context = RunContext(TrainerSettings(accelerator="cpu", threads=1, progress_bar=False))
    for job in jobs:
        run = RunFolder(folder / "runs", job.name, job.config)
        tiny_training.run(run, job.config, context, seconds=0.0)
    return results(folder)


def test_a_job_that_is_told_to_stop_goes_back_into_the_queue_and_then_finishes(
    tmp_path: Path,
) -> None:
    cells = tiny_training.cells(NUM_CELLS)
    planned(tmp_path, cells)
    job = free_job()
    run = submitted(tmp_path, job)
    wait_until(lambda: len(cells_of(tmp_path)) == 2 and states(tmp_path), seconds=120)
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=60) == 0, said(tmp_path)
    noted = (tmp_path / "slurm.log").read_text().splitlines()
    assert noted.count(f"scontrol requeue {job}") == 1
    assert not cells_of(tmp_path)
    assert len(results(tmp_path)) < NUM_CELLS

    assert submitted(tmp_path, job).wait(timeout=120) == 0, said(tmp_path)
    assert sorted(log_lines(tmp_path)) == sorted(cell.key for cell in cells)
    assert results(tmp_path) == undisturbed(tmp_path / "here", cells)
    driver = last_driver(tmp_path)
    assert driver is not None
    assert (driver.number, driver.is_gone) == (2, True)
    assert not Path(f"/tmp/ray-{job}").exists()
