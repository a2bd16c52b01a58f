"""Keeps the score of every choice of every validation item, epoch by epoch."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytorch_lightning as pl
from torch import Tensor

from probelight.models.answering import Answers, gather_scores

Scores = dict[int, list[float]]


class ItemHistory(pl.Callback):
    """Records the scores of all validation items, to see what changes from epoch to epoch.

    It resumes with the run, and every process has the items of all processes.

    Attributes:
        epochs: By epoch (from 1), set name and place of the item: its scores (K,).
    """

    def __init__(self) -> None:
        self.epochs: dict[int, dict[str, Scores]] = {}
        self._answers: defaultdict[int, Answers] = defaultdict(Answers)

    def on_validation_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._answers.clear()

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        assert isinstance(outputs, Tensor)
        self._answers[dataloader_idx].add([(batch, outputs)])

    def on_validation_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        names: list[str] = pl_module.evaluation_names  # type: ignore[assignment]
        # A process whose share of a set is empty takes part in gathering it too.
        set_scores = [gather_scores(self._answers[index].by_item()) for index in range(len(names))]
        if not trainer.sanity_checking:
            # A run that resumes repeats the validation after its state.
            self.epochs[trainer.current_epoch + 1] = dict(zip(names, set_scores, strict=True))

    def state_dict(self) -> dict[str, Any]:
        return {"epochs": self.epochs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.epochs = state_dict["epochs"]
