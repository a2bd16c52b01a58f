"""The Lightning Trainer with the house's defaults."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException
from pytorch_lightning.callbacks import RichProgressBar

from probelight.callbacks import last_state
from probelight.io.errors import UsageError
from probelight.runs.settings import TrainerSettings


class EpochBar(RichProgressBar):
    """A progress bar that counts epochs from 1, as Lightning's own does not."""

    def _get_train_description(self, current_epoch: int) -> str:
        text = f"Epoch {current_epoch + 1}/{self.trainer.max_epochs}"
        return text.ljust(len(self.validation_description))


def make_trainer(settings: TrainerSettings, **options: Any) -> pl.Trainer:
    """Return a Lightning Trainer with the house's defaults.

    Raises:
        UsageError: If this machine or Lightning has no such device, strategy or precision.
    """
    callbacks = list(options.pop("callbacks", []))
    if not any(isinstance(callback, last_state.AgreedStop) for callback in callbacks):
        callbacks.append(last_state.AgreedStop())
    if settings.progress_bar:
        callbacks.append(EpochBar(leave=False))
    quiet_lightning()
    if settings.threads is not None:
        torch.set_num_threads(settings.threads)
    try:
        return pl.Trainer(
            accelerator=settings.accelerator,
            devices=settings.devices,
            strategy=settings.strategy,
            precision=settings.precision,  # type: ignore[arg-type]
            accumulate_grad_batches=settings.accumulate,
            # Our own sampler knows the processes and pads uneven shards with weight 0.
            use_distributed_sampler=False,
            num_sanity_val_steps=0,
            enable_model_summary=False,
            enable_progress_bar=settings.progress_bar,
            callbacks=callbacks,
            **options,
        )
    # A ModuleNotFoundError is about the library of a TPU.
    except (MisconfigurationException, ValueError, ModuleNotFoundError) as error:
        names = ("accelerator", "devices", "strategy", "precision")
        given_options = " ".join(f"--trainer.{name} {getattr(settings, name)}" for name in names)
        raise UsageError(f"{given_options}: {' '.join(str(error).split())}") from error


def quiet_lightning() -> None:
    """Silence hints of Lightning that do not concern a user of the commands."""
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    for message in (
        ".*isinstance\\(treespec, LeafSpec\\).*",
        ".*does not have many workers.*",
        ".*checkpoint directory.*exists and is not empty.*",
        ".*logging interval.*",
        ".*Total length of `\\w+` across ranks is zero.*",  # a fit without evaluation sets
        ".*The dirpath has changed.*",
        ".*lr_scheduler.step.*",
        ".*LightningCLI's args parameter.*",
        ".*callbacks used to create the checkpoint need to be provided.*",
    ):
        warnings.filterwarnings("ignore", message=message)
