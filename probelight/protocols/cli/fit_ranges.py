"""The numbers of `train.py fit | validate | test | predict` that no class of ours declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from probelight.io.ranges import (
    GradNorm,
    Minutes,
    NumDevices,
    NumEpochs,
    NumSteps,
    PathText,
    Seed,
    Share,
    Within,
)

NumEpochsOrNoLimit = Annotated[int, Within(1, 10_000, also=((-1, "no limit"),))]
NumStepsOrNoLimit = Annotated[int, Within(1, 10_000_000, also=((-1, "no limit"),))]
NumOrShare = Annotated[float, Within(0, 10_000_000)]  # of batches; 1.0 is all of them, 1 is one


@dataclass(frozen=True)
class LightningTrainer:
    """Lightning's Trainer; it looks at some of its numbers late, and at others never."""

    num_nodes: Annotated[int, Within(1, 10_000)]
    devices: NumDevices
    fast_dev_run: Annotated[int, Within(0, 10_000_000)]
    max_epochs: NumEpochsOrNoLimit
    min_epochs: NumEpochs
    max_steps: NumStepsOrNoLimit
    min_steps: NumSteps
    limit_train_batches: NumOrShare
    limit_val_batches: NumOrShare
    limit_test_batches: NumOrShare
    limit_predict_batches: NumOrShare
    overfit_batches: NumOrShare
    val_check_interval: Annotated[float, Within(0, 10_000_000, above=True)]
    check_val_every_n_epoch: NumEpochs
    num_sanity_val_steps: Annotated[int, Within(0, 10_000_000, also=((-1, "all"),))]
    log_every_n_steps: Annotated[int, Within(0, 10_000_000)]
    accumulate_grad_batches: Annotated[int, Within(1, 65_536)]
    gradient_clip_val: GradNorm
    reload_dataloaders_every_n_epochs: Annotated[int, Within(0, 10_000)]


def lightning_options(
    trainer: LightningTrainer,
    model: Any,
    data: Any,
    seed_everything: Seed | bool = 0,
    checkpoint_every: NumSteps | None = None,
    checkpoint_minutes: Minutes = 2.0,
    checkpoint_share: Share = 0.1,
    output_dir: PathText = "runs/fit",
    ckpt_path: PathText | None = None,
) -> None:
    """The options as they are checked; `model` and `data` are classes that declare their own."""
