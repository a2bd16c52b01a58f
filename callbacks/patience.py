"""Early stopping that an interrupted run takes up where it was."""

from __future__ import annotations

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback

from probelight.callbacks.aggregate_checkpoint import AggregateCheckpoint


class Patience(Callback):
    """Stops after so many validations without a better one than the checkpoint kept.

    It has no state of its own: the history that the checkpoint keeps and restores decides, so a
    run that was killed between its last validation and its end does not train another epoch.

    Args:
        keep: Keeps the best model and the scores of every validation.
        patience: Validations without improvement that are waited for.
    """

    def __init__(self, keep: AggregateCheckpoint, patience: int) -> None:
        if patience < 1:
            raise ValueError(f"patience={patience}: it must be at least 1, or none")
        self.keep = keep
        self.patience = patience

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Ends a run that goes on from a state in which it had waited long enough."""
        self._stop_if_due(trainer)

    # Not at the end of the validation: Lightning calls checkpoints after all other callbacks.
    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stops if the newest validation was one too many."""
        self._stop_if_due(trainer)

    def _stop_if_due(self, trainer: pl.Trainer) -> None:
        best, history = self.keep.best, self.keep.history
        if best is not None and len(history) - 1 - history.index(best) >= self.patience:
            trainer.should_stop = True
