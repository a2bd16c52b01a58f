"""Writes predictions.jsonl of `train.py predict`: the score of every choice of every item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import Callback

from probelight.models.answering import gather_scores, scores_by_item
from probelight.probes.record import Record
from probelight.results.predictions import prediction_lines, write_predictions


class PredictionWriter(Callback):
    """Gathers the scores of all processes and writes them in the order of the sets.

    The complete file is written when the prediction has ended.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._scores: dict[int, dict[int, list[float]]] = {}

    def on_predict_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._scores = {}

    def on_predict_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        self._scores.setdefault(dataloader_idx, {}).update(scores_by_item(outputs))

    def on_predict_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        sets: Mapping[str, Sequence[Record]] = trainer.datamodule.evaluation  # type: ignore[attr-defined]
        gathered = [gather_scores(self._scores.get(index, {})) for index in range(len(sets))]
        if trainer.is_global_zero:
            lines = []
            for (name, records), scores in zip(sets.items(), gathered, strict=True):
                indices = sorted(scores)
                items = [records[i] for i in indices]
                lines += prediction_lines(name, items, [scores[i] for i in indices])
            write_predictions(self.path, lines)
