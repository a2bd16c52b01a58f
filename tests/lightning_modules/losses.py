"""What comparisons of a fit with a loop written by hand have in common."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
from torch import nn


class Losses(pl.Callback):
    """The training loss of each step."""

    def __init__(self) -> None:
        self.by_step: list[float] = []

    def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
        self.by_step.append(float(trainer.callback_metrics["train/loss"]))


def without_dropout(module: nn.Module) -> None:
    for layer in module.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
        if hasattr(layer, "attention_dropout"):
            layer.attention_dropout = 0.0
