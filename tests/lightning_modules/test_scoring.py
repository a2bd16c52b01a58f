from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from probelight.datamodules.choices import ChoiceDataModule
from probelight.lightning_modules import scoring
from probelight.lightning_modules.scoring import ScorerModule
from probelight.models.masked import MaskedLM, MaskedScorer
from probelight.models.scorer import Question
from probelight.probes.record import Record

RECORDS = [
    Record("1", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0),
    Record("2", "the [MASK] is red .", ("dog", "cat"), 1),
]


def test_answers_come_back_on_the_cpu_with_their_items(
    checkpoint: Callable[..., Path],
    quiet_trainer: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def predicted(question: Question) -> dict[str, Any]:
        data = ChoiceDataModule(train=None, evaluation={"a": RECORDS})
        [batch] = quiet_trainer().predict(ScorerModule(scorer, question), datamodule=data)
        return batch

    called: list[bool] = []
    monkeypatch.setattr(scoring, "give_memory_back", lambda: called.append(True))
    monkeypatch.setattr(scoring, "_TRIM_EVERY", 1)
    scorer = MaskedScorer(MaskedLM(str(checkpoint())))
    batch = predicted(scorer.choice_scores())
    assert sorted(batch["item"].tolist()) == [0, 1]
    assert batch["scores"].dtype == torch.float32
    assert batch["scores"][batch["item"].tolist().index(1), 2] == -torch.inf
    assert batch["choice_mask"].sum() == 5
    whole = predicted(scorer.vocabulary())["scores"]
    assert whole.shape == (2, len(scorer.masked.tokenizer))
    assert not scorer.network.training
    assert called == [True, True]
