"""A program that fits in one process or two, to be signalled from outside.

usage: python -m tests.protocols.engine.signalled_fit FOLDER DEVICES NUM_WORKERS SECONDS
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import torch
from pytorch_lightning.utilities.exceptions import SIGTERMException
from torch import Tensor
from torch.utils.data import TensorDataset

from probelight.datamodules.loaders import EpochBatchSampler, ResumableLoader
from probelight.encoding.encoded_set import Share
from probelight.protocols.engine.settings import Fit
from probelight.protocols.engine.training import FitPlan, fit
from probelight.protocols.jobs.job import RunContext, TrainerSettings
from probelight.results.run_folder import RunFolder
from tests.protocols.jobs.tiny_training import Points, Regression


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
    """Says which step each process is in."""

    folder = Path()

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        step = self.folder / f"step.{self.trainer.global_rank}"
        step.write_text(str(self.trainer.global_step))
        return super().training_step(batch, batch_idx)


def main(folder: Path, devices: int, num_workers: int, seconds: float) -> int:
    """Fits; the first process leaves the weights' hash."""
    run = RunFolder(folder / "runs", "run", {"a": 1})
    module = Noted(learning_rate=0.01, seed=0, seconds=seconds)
    module.folder = folder
    settings = TrainerSettings(
        accelerator="cpu",
        threads=1,
        progress_bar=False,
        checkpoint_every=1000,
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
    )
    plan = FitPlan(Fit(epochs=8, batch_size=8), 0, [], "tiny")
    try:
        fit(module, Shared(num_workers), run, plan, RunContext(settings))
    except SIGTERMException:
        return 143
    weights = b"".join(p.detach().numpy().tobytes() for p in module.parameters())
    if module.global_rank == 0:
        (folder / "weights").write_text(hashlib.sha256(weights).hexdigest())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
