"""A real training in a run: a network with dropout, fitted by `training.fit.fit`."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from probelight.datamodules.loaders import EpochBatchSampler, ResumableData, ResumableLoader
from probelight.io.process import is_first_process
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.settings import TrainerSettings
from probelight.runs.spec import Job
from probelight.training.fit import FitPlan, fit
from probelight.training.settings import Fit
from tests.runs.harness import log_lines, results
from tests.runs.runner_spec import folder_of, runner_job
from tests.runs.trivial import note_when_finished

NUM_STEPS = 12  # three epochs of four steps


def cells(num_cells: int, **more: Any) -> list[Job]:
    runner = "tests.runs.tiny_training:run"
    configs = [
        {"learning_rate": 0.01 * (1 + i % 3), "seed": i // 3, "threads": 1, **more}
        for i in range(num_cells)
    ]
    return [
        runner_job(f"train{i}", config, runner, num_steps=NUM_STEPS)
        for i, config in enumerate(configs)
    ]


def run(
    run: RunFolder, config: Mapping[str, Any], context: RunContext, seconds: float | None = None
) -> RunRecord:
    """Trains, each step as slowly as it is told; the result holds every bit of the weights."""
    seconds = config.get("seconds", 0.1) if seconds is None else seconds
    module = Regression(config["learning_rate"], config["seed"], seconds, run.path / "begun")
    plan = FitPlan(Fit(epochs=3, batch_size=8), config["seed"], callbacks=[], description="tiny")
    notices = fit(module, Points(config["seed"]), run, plan, context)
    weights = b"".join(p.detach().numpy().tobytes() for p in module.parameters())
    value = float(next(module.parameters()).detach().sum())
    if is_first_process():
        note_when_finished(run)
    return RunRecord(
        protocol="tiny",
        notices=notices,
        model_sha256=hashlib.sha256(weights).hexdigest(),
        facts={"value": value},
    )


def check_finished(folder: Path, jobs: Sequence[Job]) -> None:
    """Each job has finished once, with the bits of jobs one after another in this process."""
    torch.set_num_threads(1)
    settings = TrainerSettings(accelerator="cpu", threads=1, progress_bar=False)
    for job in jobs:
        undisturbed = folder_of(job, folder / "undisturbed" / "runs")
        undisturbed.finish(run(undisturbed, job.spec.values, RunContext(settings), 0.0))
    assert sorted(log_lines(folder)) == sorted(job.key for job in jobs)
    assert results(folder) == results(folder / "undisturbed")


class Points(ResumableData):
    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed

    def train_dataloader(self) -> ResumableLoader:
        points = torch.randn(32, 4, generator=torch.Generator().manual_seed(7))
        data = TensorDataset(points, points.sum(dim=1, keepdim=True))
        sampler = EpochBatchSampler(len(data), batch_size=8, seed=self.seed)
        return self.resumable(ResumableLoader(data, sampler, num_workers=0))


class Regression(pl.LightningModule):
    """Two layers and dropout; a step takes as long as it is told, so that it can be killed."""

    def __init__(
        self, learning_rate: float, seed: int, seconds: float, begun: Path | None = None
    ) -> None:
        super().__init__()
        self.begun = begun
        torch.manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
        self.learning_rate, self.seconds = learning_rate, seconds

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        if self.begun is not None:
            self.begun.touch()
        time.sleep(self.seconds)
        loss = nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.log("train/loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.learning_rate)
