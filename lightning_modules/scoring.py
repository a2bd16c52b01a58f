"""A scorer in Lightning's predict loop, which brings several devices and processes."""

from __future__ import annotations

import pytorch_lightning as pl

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.models.answering import answer_batch, give_memory_back
from probelight.models.networks import Batch
from probelight.models.scorer import Question, Scorer

_TRIM_EVERY = 32  # batches


class ScorerModule(pl.LightningModule):
    """A scorer's answers to one of its questions, for `Trainer.predict` with a `ChoiceDataModule`.

    Lightning moves the scorer's network to the device of the batches.
    """

    def __init__(self, scorer: Scorer, question: Question) -> None:
        super().__init__()
        self.network = scorer.network
        self.question = question
        self.evaluation_names: list[str] = []

    def encoder(self) -> ChoiceEncoder:
        return self.question.encoder

    def predict_step(self, batch: Batch, batch_idx: int, dataloader_idx: int = 0) -> Batch:
        """Return the scores of a batch, see `answer_batch`."""
        if batch_idx % _TRIM_EVERY == _TRIM_EVERY - 1:
            give_memory_back()
        return answer_batch(self.question, batch, self.device)
