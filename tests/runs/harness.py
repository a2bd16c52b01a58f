"""Plan jobs, and run them as people and schedulers do: from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from probelight.io.process import Process, host_id, this_process
from probelight.io.wandb import DEFAULT_WANDB
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.fencing import ATTEMPT, Attempt
from probelight.runs.plan import PlannedJob, StoredPlan, plan_jobs
from probelight.runs.settings import RaySettings, TrainerSettings
from probelight.runs.spec import Job
from tests.fixtures.checkout import ROOT
from tests.fixtures.results import MEASURED

DEAD = Process(host_id(), 2**22 + 1, 1)  # beyond the largest number that Linux gives out
_STARTED: list[subprocess.Popen[str]] = []


def planned(
    folder: Path, jobs: Sequence[Job], devices: int = 1, checkpoint_every: int = 1, **engine: Any
) -> tuple[PlannedJob, ...]:
    plan = plan_jobs(folder, jobs)
    trainer = TrainerSettings(
        accelerator="cpu",
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        checkpoint_every=checkpoint_every,
        threads=1,
    )
    settings = RaySettings(**{"cpus_per_cell": devices, **engine})
    StoredPlan(RunContext(trainer, DEFAULT_WANDB), settings, plan).keep(folder)
    return plan


def finish(run: RunFolder, seconds: float) -> None:
    attempt = Attempt(1, 1, this_process(), since=100.0, left=100.0 + seconds)
    (run.path / ATTEMPT).write_text(json.dumps(asdict(attempt)))
    run.finish(RunRecord(protocol="test"))


def start_run(folder: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    """Start `sweep run` as a process that writes OUTPUT_DIR/run.log.

    It has a process group of its own, as behind a shell, whose Ctrl-C reaches the whole group.
    """
    command = [sys.executable, ROOT / "train.py", "sweep", "run", f"--output_dir={folder}"]
    with (folder / "run.log").open("a") as log:
        run = subprocess.Popen(
            [*map(str, command), *options],
            stdout=log,
            stderr=log,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            process_group=0,
        )
    _STARTED.append(run)
    return run


def end_runs() -> None:
    while _STARTED:
        run = _STARTED.pop()
        run.kill()
        run.wait()


def run_to_end(folder: Path, *options: str) -> int:
    return start_run(folder, *options).wait(timeout=600)


def written_text(folder: Path) -> str:
    return (folder / "run.log").read_text()


def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.02)


def results(folder: Path) -> dict[str, Any]:
    """Return result.json by job, without what differs between any two runs or checkouts."""
    by_run = {}
    for path in sorted(folder.glob("runs/*/result.json")):
        result = json.loads(path.read_text())
        ignored = MEASURED | {"git_commit"}
        by_run[path.parent.name] = {k: v for k, v in result.items() if k not in ignored}
    return by_run


def log_lines(folder: Path) -> list[str]:
    """Return the jobs that finished, in that order, as they noted it themselves."""
    path = folder / "log"
    return path.read_text().split() if path.exists() else []
