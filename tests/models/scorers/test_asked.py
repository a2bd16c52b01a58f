"""Any question goes through Lightning's predict loop, and leaves the scorer as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch

from probelight.datamodules.choices import ChoiceDataModule
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.models.scorers.asked import Asked
from probelight.models.scorers.base import Question
from probelight.models.scorers.masked import MaskedScorer
from probelight.probes.record import Record

RECORDS = [
    Record("1", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0),
    Record("2", "the [MASK] is red .", ("dog", "cat"), 1),
]


def predicted(scorer: MaskedScorer, question: Question) -> dict[str, Any]:
    trainer = pl.Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        use_distributed_sampler=False,
    )
    data = ChoiceDataModule(train=None, evaluation={"a": RECORDS})
    [batch] = trainer.predict(Asked(scorer, question), datamodule=data)  # type: ignore[misc]
    return batch


def test_answers_come_back_on_the_cpu_with_their_items(checkpoint: Callable[..., Path]) -> None:
    scorer = MaskedScorer(MaskedChoice(str(checkpoint())))
    batch = predicted(scorer, scorer.choice_scores())
    assert sorted(batch["item"].tolist()) == [0, 1]
    assert batch["scores"].dtype == torch.float32
    assert batch["scores"][batch["item"].tolist().index(1), 2] == -torch.inf
    assert batch["choice_mask"].sum() == 5
    whole = predicted(scorer, scorer.vocabulary())["scores"]
    assert whole.shape == (2, len(scorer.module.tokenizer))
    assert not scorer.training
