"""Cells in Weights & Biases, offline: what is killed, stopped or fails is there once, and whole."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from probelight.io.wandb import PENDING, WandbSettings
from probelight.protocols.jobs.job import Job, RunContext
from probelight.protocols.jobs.plan import wandb_group
from probelight.results.record import RunRecord
from probelight.results.run_folder import METRICS_FILE, RunFolder, read_metrics
from tests.fixtures.wandb_offline import OfflineRun, points_of, read_offline_runs
from tests.protocols.jobs import tiny_training
from tests.protocols.jobs.harness import planned, run_to_end, said

ENDS = ("killed", "stopped", "failed", "failed always")


def run(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """A training whose first start ends as the config says."""
    end, tried = config["end"], run.path / "tried"
    is_first = not tried.exists()
    tried.touch()
    if end == "failed always":
        raise ValueError("no model")
    if is_first and end in ("killed", "stopped"):
        number = signal.SIGKILL if end == "killed" else signal.SIGTERM
        threading.Thread(target=signal_soon, args=(run, number), daemon=True).start()
    if is_first and end == "failed":
        run.best_dir.mkdir(parents=True)
        run.write = fail  # type: ignore[method-assign]
    return tiny_training.run(run, config, context, seconds=0.3)


def signal_soon(run: RunFolder, number: int) -> None:
    """Sends itself a signal behind the step that is logged, once W&B's client is there."""
    metrics, client = run.path / METRICS_FILE, "wandb/offline-run-*/*.wandb"
    while not metrics.exists() or not read_metrics(metrics) or not any(run.path.glob(client)):
        time.sleep(0.02)
    os.kill(os.getpid(), number)


def fail(name: str, value: object) -> None:
    """What a full disk does."""
    raise OSError(f"{name}: no space left")


@pytest.mark.slow
def test_each_cell_is_one_run_however_often_it_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing tells W&B to be offline but that there is no key.
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "home" / ".netrc"))
    jobs = [
        Job(end, {"end": end, "learning_rate": 0.01, "seed": 0, "threads": 1}, f"{__name__}:run")
        for end in ENDS
    ]
    planned(tmp_path, jobs, max_retries=1)
    assert run_to_end(tmp_path, "--wandb.project=p") == 1, said(tmp_path)
    found: dict[str, list[OfflineRun]] = {}
    for job in jobs:
        runs = found[job.name] = read_offline_runs(tmp_path / "runs" / job.key)
        assert [one.id for one in runs] == [job.key] * 2
    codes = {end: [one.exit_code for one in runs] for end, runs in found.items()}
    assert codes == {
        "killed": [None, 0],
        "stopped": [143, 0],
        "failed": [1, 0],
        "failed always": [1, 1],
    }
    assert [one.was_interrupted for one in found["stopped"]] == [True, False]
    group = wandb_group(tmp_path, WandbSettings())
    for end in ENDS[:-1]:
        last = found[end][-1]
        assert (last.group, last.config["end"]) == (group, end)
        run_dir = tmp_path / "runs" / found[end][0].id
        points = last.points()
        assert points == points_of(run_dir / METRICS_FILE)
        losses = [step for step, name, _ in points if name == "train/loss"]
        assert losses == list(range(tiny_training.NUM_STEPS))
        assert not (run_dir / PENDING).exists()
