"""The state a run goes on from: every few steps, after every epoch and on SIGTERM."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.utilities.exceptions import SIGTERMException

from callbacks.lightning_internals import recount_batches, stepped

LAST_NAME = "last"
SCORES = "scores"  # in a state: the last value of each metric


class LastState(ModelCheckpoint):
    """Keeps only the newest training state, apart from the checkpoint that is selected.

    A `ModelCheckpoint` that both monitors a score and saves the last state lets the last state go
    stale, so the two are apart.

    Args:
        dirpath: Folder of the checkpoint.
        every_n_train_steps: Steps between two states within an epoch.
    """

    def __init__(self, dirpath: str, every_n_train_steps: int = 50) -> None:
        super().__init__(
            dirpath=dirpath,
            filename=LAST_NAME,
            monitor=None,
            save_top_k=1,
            every_n_train_steps=every_n_train_steps,
            enable_version_counter=False,
        )
        self._accumulated: int | None = None

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Says how many batches make a step, on which Lightning's counts depend, and the scores."""
        checkpoint["accumulate"] = trainer.accumulate_grad_batches
        checkpoint[SCORES] = scores_of(trainer)

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Remembers how many batches made a step."""
        self._accumulated = checkpoint.get("accumulate")

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Counts the batches of the epoch so far anew if a step is now made of more or fewer."""
        super().on_train_start(trainer, pl_module)
        if self._accumulated not in (None, trainer.accumulate_grad_batches):
            recount_batches(trainer, self._accumulated)

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Saves within the epoch, but not where a validation is due, nor between two steps.

        A run that resumes from such a state would not repeat the validation behind it, or would
        miss the gradients of the micro-batches already accumulated.
        """
        due = (batch_idx + 1) % (trainer.val_check_batch or float("inf")) == 0
        if not trainer.is_last_batch and not due and stepped(trainer):
            super().on_train_batch_end(trainer, pl_module, outputs, batch, batch_idx)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Saves behind the epoch's validation."""
        self._save(trainer)

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Saves when a SIGTERM stopped the training, which Lightning does between two batches.

        Any other exception may come from the middle of a batch, whose state is of no step at all.
        A state of a validation that was stopped would count as one from behind it; without it the
        run goes on from an earlier state and validates again.
        """
        stopped = isinstance(exception, SIGTERMException)
        if stopped and trainer.global_step and trainer.training and stepped(trainer):
            self._save(trainer)

    def _save(self, trainer: pl.Trainer) -> None:
        self._save_checkpoint(trainer, self.format_checkpoint_name({}))

    def _save_checkpoint(self, trainer: pl.Trainer, filepath: str) -> None:
        for logger in trainer.loggers:
            logger.save()  # what was logged before this state is not logged again
        super()._save_checkpoint(trainer, filepath)


def scores_of(trainer: pl.Trainer) -> dict[str, float]:
    """The last value of each metric."""
    return {name: float(value) for name, value in trainer.callback_metrics.items()}
