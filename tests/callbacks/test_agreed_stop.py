from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pytorch_lightning.strategies import SingleDeviceStrategy
from pytorch_lightning.utilities.exceptions import SIGTERMException

from probelight.callbacks.last_state import read_state
from probelight.protocols.engine.settings import Fit
from probelight.protocols.engine.training import FitPlan, fit
from probelight.protocols.jobs.job import RunContext, TrainerSettings
from probelight.results.run_folder import RunFolder
from tests.fixtures.checkout import ROOT
from tests.protocols.jobs.harness import wait_until
from tests.protocols.jobs.tiny_training import Points, Regression


def test_a_signal_to_another_process_stops_this_one_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def reduce(self: Any, decision: bool, all: bool = True) -> bool:
        asked.append(decision)
        return len(asked) == 3

    monkeypatch.setattr(SingleDeviceStrategy, "reduce_boolean_decision", reduce)
    run = RunFolder(tmp_path / "runs", "run", {"a": 1})
    settings = TrainerSettings(
        accelerator="cpu", threads=1, progress_bar=False, checkpoint_every=99, accumulate=2
    )
    plan = FitPlan(Fit(epochs=3, batch_size=16), 0, [], "tiny")
    with pytest.raises(SIGTERMException):
        fit(Regression(0.01, 0, 0.0), Points(0), run, plan, RunContext(settings))
    # Behind two steps of two micro-batches each, and at the end of the epoch.
    assert asked == [False] * 3
    assert read_state(run.checkpoint_dir / "last.ckpt")["global_step"] == 2


def started(folder: Path, devices: int, num_workers: int, seconds: float) -> subprocess.Popen[str]:
    program = "tests.protocols.engine.signalled_fit"
    options = [str(folder), str(devices), str(num_workers), str(seconds)]
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-X", "faulthandler", "-m", program, *options],
        cwd=ROOT,
        process_group=0,
        text=True,
        stderr=subprocess.PIPE,
    )


def ended(process: subprocess.Popen[str], seconds: float) -> str:
    """What the processes errors till they all ended; if they do not, where each of them is."""
    try:
        return process.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGABRT)
        errors = process.communicate(timeout=60)[1]
        raise AssertionError(f"not ended in {seconds} s\n{errors}") from None


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "num_workers"), [(1, 2), (2, 0), (2, 1)])
def test_sigterm_to_the_whole_group_saves_the_state_and_exits_with_143(
    devices: int, num_workers: int, tmp_path: Path
) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    whole.mkdir()
    stopped.mkdir()
    process = started(stopped, devices, num_workers, 0.3)
    step = stopped / f"step.{devices - 1}"
    wait_until(lambda: step.exists() and step.read_text() >= "6", 300)
    os.killpg(process.pid, signal.SIGTERM)
    errors = ended(process, 120)
    assert process.returncode == 143, errors
    [state] = stopped.glob("runs/*/checkpoints/last.ckpt")
    assert read_state(state)["global_step"] >= 7
    for folder in (stopped, whole):
        process = started(folder, devices, num_workers, 0.0)
        errors = ended(process, 300)
        assert process.returncode == 0, errors
    assert (stopped / "weights").read_text() == (whole / "weights").read_text()
