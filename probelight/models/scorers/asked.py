"""How a scorer meets Lightning: its predict loop brings devices, processes and signals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytorch_lightning as pl
from torch import Tensor

from probelight.models.batches import Batch, batch_scores
from probelight.models.scorers.base import Question, Scorer

if TYPE_CHECKING:
    from probelight.encoding.encoded_set import ChoiceEncoder


class Asked(pl.LightningModule):
    """One question to one scorer, for `Trainer.predict` with a `ChoiceDataModule`.

    Args:
        scorer: Who is asked; Lightning moves it to where the batches are.
        question: One of the scorer's own.

    Attributes:
        evaluation_names: Names of the sets, one a loader.
    """

    def __init__(self, scorer: Scorer, question: Question) -> None:
        super().__init__()
        self.scorer = scorer
        self.question = question
        self.evaluation_names: list[str] = []

    def encoder(self) -> ChoiceEncoder:
        """What poses the records."""
        return self.question.encoder

    def predict_step(
        self, batch: Batch, batch_idx: int, dataloader_idx: int = 0
    ) -> dict[str, Tensor]:
        """The batch_scores to a batch, see `batch_scores`."""
        return batch_scores(batch, self.question.answer(batch))
