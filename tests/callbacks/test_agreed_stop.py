from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.exceptions import SIGTERMException

from probelight.callbacks import last_state
from probelight.callbacks.last_state import AgreedStop, LastState, read_state
from probelight.io.process import STOP
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.settings import TrainerSettings
from probelight.training.fit import FitPlan, fit
from probelight.training.settings import Fit
from tests.callbacks.line import Line, batches
from tests.fixtures.checkout import ROOT
from tests.runs.harness import wait_until
from tests.runs.tiny_training import Points, Regression
from tests.training import signalled_fit


def test_a_signal_to_another_process_stops_this_one_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[int]] = []

    def largest(_: pl.Trainer, numbers: list[int]) -> list[int]:
        calls.append(numbers)
        return [len(calls) == 3, *numbers[1:]]

    monkeypatch.setattr(last_state, "largest_of_all", largest)
    run = RunFolder(tmp_path / "runs", "run", {"a": 1})
    settings = TrainerSettings(
        accelerator="cpu", threads=1, progress_bar=False, checkpoint_every=99, accumulate=2
    )
    plan = FitPlan(Fit(epochs=3, batch_size=16), 0, [], "tiny")
    with pytest.raises(SIGTERMException):
        fit(Regression(0.01, 0, 0.0), Points(0), run, plan, RunContext(settings))
    # Behind two steps of two micro-batches each, and at the end of the epoch.
    assert calls == [[0, 1, 0]] * 3
    assert read_state(run.checkpoint_dir / "last.ckpt")["global_step"] == 2


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        # Behind the first step it is known how long one takes: 4 make a second.
        ([0.25] * 20, [1, 5, 9, 13, 17, 20]),
        ([0.001] * 40, [1, 17, 33, 40]),  # 16 at most
        ([2.0] * 5, [1, 2, 3, 4, 5, 5]),
        # Steps that become slow are noticed at the next agreement.
        ([0.25] * 6 + [2.0] * 6, [1, 5, 9, 10, 11, 12, 12]),
    ],
)
def test_several_processes_agree_about_once_a_second_in_one_collective(
    seconds: list[float],
    expected: list[int],
    quiet_trainer: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock_time, agreed = [0.0], []

    class Slow(Line):
        def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
            clock_time[0] += seconds[batch_idx]
            return super().training_step(batch, batch_idx)

    def all_reduce(numbers: torch.Tensor, op: Any) -> None:
        agreed.append(trainer.global_step)
        assert op == torch.distributed.ReduceOp.MAX
        assert numbers.tolist()[::2] == [0, clock_time[0] >= 1.0]  # stop, and save by the clock

    monkeypatch.setattr(STOP, "hold", lambda: None)
    monkeypatch.setattr(pl.Trainer, "world_size", 2)
    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    clock = lambda: clock_time[0]  # noqa: E731
    keep = LastState(str(tmp_path), minutes=1 / 60, at_end=False, clock=clock)
    keep._save = lambda _: None  # type: ignore[method-assign]
    trainer = quiet_trainer(callbacks=[keep, AgreedStop(clock)], enable_checkpointing=True)
    trainer.fit(Slow(), batches(len(seconds)))
    assert agreed == expected


def started(
    folder: Path, devices: int, num_workers: int, seconds: float, *more: object
) -> subprocess.Popen[str]:
    program = "tests.training.signalled_fit"
    options = map(str, (folder, devices, num_workers, seconds, *more))
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
    reference, stopped = tmp_path / "whole", tmp_path / "stopped"
    reference.mkdir()
    stopped.mkdir()
    process = started(stopped, devices, num_workers, 0.3)
    step = stopped / f"step.{devices - 1}"
    wait_until(lambda: step.exists() and step.read_text() >= "6", 300)
    os.killpg(process.pid, signal.SIGTERM)
    errors = ended(process, 120)
    assert process.returncode == 143, errors
    assert "Traceback" not in errors  # nor of the loader processes, which are signalled too
    [state] = stopped.glob("runs/*/checkpoints/last.ckpt")
    assert read_state(state)["global_step"] >= 7
    for folder in (stopped, reference):
        process = started(folder, devices, num_workers, 0.0)
        errors = ended(process, 300)
        assert process.returncode == 0, errors
    assert (stopped / "weights").read_text() == (reference / "weights").read_text()


@pytest.mark.slow
def test_a_fit_in_two_processes_has_few_collectives(tmp_path: Path) -> None:
    process = started(tmp_path, 2, 0, 0.0, 0.3, "32-true", 0)  # states by the clock
    errors = ended(process, 300)
    assert process.returncode == 0, errors
    calls = json.loads((tmp_path / "calls").read_text())
    # Behind the first of 32 quick steps, and at the end of each of 8 epochs of four. Lightning adds
    # two to count the batches, and barriers at the begin and the end of the fit.
    assert calls["all_reduce"] == 9 + 2
    assert calls["barrier"] < 10
    assert "broadcast" not in calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("devices", "precision", "killed"),
    [(2, "32-true", [1, 0]), (4, "32-true", [3, 0]), (2, "bf16-mixed", [0])],
)
def test_killed_processes_go_on_and_end_with_the_weights_of_one(
    devices: int, precision: str, killed: list[int], tmp_path: Path
) -> None:
    """The others end with the one that is killed, the first or not."""
    for number, rank in enumerate(killed):
        process = started(tmp_path, devices, 0, 0.2, 0.0, precision)
        noted, step = tmp_path / f"step.{rank}", 4 * number + 5
        wait_until(lambda: noted.exists() and int(noted.read_text() or 0) >= step, 300)  # noqa: B023
        os.kill(int((tmp_path / f"pid.{rank}").read_text()), signal.SIGKILL)
        errors = ended(process, 120)
        assert process.returncode != 0, errors
    process = started(tmp_path, devices, 0, 0.0, 0.0, precision)
    errors = ended(process, 300)
    assert process.returncode == 0, errors
    # Each start went on from the state of the last whole epoch of four steps.
    assert (tmp_path / "begun").read_text().split() == ["0", "4", "8"][: len(killed) + 1]
    calm = tmp_path / "whole"
    calm.mkdir()
    assert signalled_fit.main(calm, 1, 0, 0.0, 0.0, precision) == 0
    weights, expected = (json.loads((path / "weights").read_text()) for path in (tmp_path, calm))
    # Sums over processes round otherwise.
    tolerance = 1e-6 if precision == "32-true" else 1e-2
    assert weights == pytest.approx(expected, abs=tolerance)
