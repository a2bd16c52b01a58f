"""Accuracy against the number of training examples."""

from __future__ import annotations

import math
from typing import Any

import pytorch_lightning as pl

ACCURACY_SUFFIX = "accuracy"


class LearningCurve(pl.Callback):
    """Logs every validation accuracy beside the number of examples trained on so far.

    In W&B, `learning_curve/num_examples` is the x axis of the `learning_curve/` metrics. Examples
    seen again in a later epoch count again.

    Args:
        batch_size: Examples in an optimiser step, all processes and accumulated batches together.
        num_train: Examples in an epoch; its last step may have fewer than the others.
    """

    def __init__(self, batch_size: int, num_train: int) -> None:
        self.batch_size = batch_size
        self.num_train = num_train

    def num_examples(self, num_steps: int) -> int:
        """Examples in the first steps of a fit."""
        epochs, steps = divmod(num_steps, math.ceil(self.num_train / self.batch_size))
        return epochs * self.num_train + min(steps * self.batch_size, self.num_train)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the point of the curve that this validation is."""
        if trainer.sanity_checking:
            return
        points: dict[str, Any] = {
            f"learning_curve/{name.removeprefix('val/')}": float(value)
            for name, value in trainer.callback_metrics.items()
            if name.startswith("val/") and name.endswith(ACCURACY_SUFFIX)
        }
        if points:
            points["learning_curve/num_examples"] = float(self.num_examples(trainer.global_step))
            for logger in trainer.loggers:
                logger.log_metrics(points, max(0, trainer.global_step - 1))
