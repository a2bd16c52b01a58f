"""A scorer in Lightning's predict loop, for several devices and processes."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import pytorch_lightning as pl

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.models.answering import Answers, answer_planned
from probelight.models.networks import Batch
from probelight.models.scorer import Question, Scorer


class ScorerModule(pl.LightningModule):
    """Runs a scorer on one of its questions, for `Trainer.predict` with a `ChoiceDataModule`.

    Lightning moves the scorer's network to the device of the batches. `answers` has the answers of
    this process for each evaluation set.
    """

    def __init__(self, scorer: Scorer, question: Question, per_choice: bool = True) -> None:
        super().__init__()
        self.network = scorer.network
        self.question = question
        self.evaluation_names: list[str] = []
        self.answers: defaultdict[int, Answers] = defaultdict(partial(Answers, per_choice))

    def encoder(self) -> ChoiceEncoder:
        return self.question.encoder

    def predict_step(self, batch: Batch, batch_idx: int, dataloader_idx: int = 0) -> dict[str, Any]:
        """Keep the scores of a batch; return nothing, as Lightning would copy it to the CPU."""
        loader = self.trainer.predict_dataloaders[dataloader_idx]  # type: ignore[index]
        outputs = answer_planned(self.question.answer, loader, batch_idx, batch, self.device)
        self.answers[dataloader_idx].add(outputs)
        return {}
