"""A program that fits in one process or several, to be signalled from outside.

usage: python -m tests.training.signalled_fit FOLDER DEVICES NUM_WORKERS SECONDS \
    [DROPOUT [PRECISION [CHECKPOINT_EVERY]]]
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.utilities.exceptions import SIGTERMException
from torch import Tensor
from torch.utils.data import TensorDataset

from probelight.datamodules.loaders import EpochBatchSampler, ResumableLoader
from probelight.encoding.encoded_set import Share
from probelight.io.process import follow_first_process
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.settings import TrainerSettings
from probelight.training.fit import FitPlan, fit
from probelight.training.settings import Fit
from tests.runs.tiny_training import Points, Regression


class Shared(Points):
    """The points, shared among the processes and made by loader processes."""

    def __init__(self, num_workers: int) -> None:
        super().__init__(seed=0)
        self.num_workers = num_workers

    def train_dataloader(self) -> ResumableLoader:
        assert self.trainer is not None
        points = torch.randn(32, 4, generator=torch.Generator().manual_seed(7))
        data = TensorDataset(points, points.sum(dim=1, keepdim=True))
        sampler = EpochBatchSampler(
            len(data), batch_size=8, share=Share(self.trainer.global_rank, self.trainer.world_size)
        )
        return self.resumable(ResumableLoader(data, sampler, num_workers=self.num_workers))


class Noted(Regression):
    """Says which step each process is in, which it began with, and its number."""

    folder = Path()

    def on_train_start(self) -> None:
        rank, step = self.trainer.global_rank, self.trainer.global_step
        (self.folder / f"pid.{rank}").write_text(str(os.getpid()))
        if rank == 0:
            with (self.folder / "begun").open("a") as file:
                file.write(f"{step} ")

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        step = self.folder / f"step.{self.trainer.global_rank}"
        step.write_text(str(self.trainer.global_step))
        return super().training_step(batch, batch_idx)


def main(
    folder: Path,
    devices: int,
    num_workers: int,
    seconds: float,
    dropout: float = 0.3,
    precision: str = "32-true",
    checkpoint_every: int = 1000,
) -> int:
    """Fits; the first process leaves the weights and how often it called each collective."""
    run = RunFolder(folder / "runs", "run", {"a": 1})
    module = Noted(learning_rate=0.01, seed=0, seconds=seconds)
    module.folder = folder
    module.net[2].p = dropout
    settings = TrainerSettings(
        accelerator="cpu",
        threads=1,
        progress_bar=False,
        checkpoint_every=checkpoint_every or None,
        precision=precision,
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
    )
    plan = FitPlan(Fit(epochs=8, batch_size=8), 0, [], "tiny")
    try:
        fit(module, Shared(num_workers), run, plan, RunContext(settings))
    except SIGTERMException:
        return 143
    if module.global_rank == 0:
        weights = torch.cat([parameter.detach().flatten() for parameter in module.parameters()])
        (folder / "weights").write_text(json.dumps(weights.tolist()))
        (folder / "calls").write_text(json.dumps(calls))
    return 0


calls: dict[str, int] = {}


def count(name: str) -> None:
    """Counts the calls of a collective."""
    call = getattr(torch.distributed, name)

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls[name] = calls.get(name, 0) + 1
        return call(*args, **kwargs)

    setattr(torch.distributed, name, counted)


if __name__ == "__main__":
    follow_first_process()
    for name in ("all_reduce", "broadcast", "barrier"):
        count(name)
    kinds = (Path, int, int, float, float, str, int)
    options: list[Any] = [kind(text) for kind, text in zip(kinds, sys.argv[1:], strict=False)]
    sys.exit(main(*options))
