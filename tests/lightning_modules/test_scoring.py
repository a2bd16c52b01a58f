from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from probelight.datamodules.choices import ChoiceDataModule
from probelight.lightning_modules.scoring import ScorerModule
from probelight.models import answering
from probelight.models.masked import MaskedLM, MaskedScorer
from probelight.models.scorer import Question
from probelight.probes.record import Record
from tests.fixtures.architectures import ref_of

RECORDS = [
    Record("1", "a cat is [MASK] than a dog .", ("smaller", "larger", "red"), 0),
    Record("2", "the [MASK] is red .", ("dog", "cat"), 1),
]


def test_answers_are_kept_by_item_and_lightning_gets_none(
    checkpoint: Callable[..., Path],
    quiet_trainer: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def predicted(question: Question, per_choice: bool = True) -> dict[int, list[float]]:
        data = ChoiceDataModule(train=None, evaluation={"a": RECORDS})
        module = ScorerModule(scorer, question, per_choice)
        assert quiet_trainer().predict(module, datamodule=data) == [{}]
        return module.answers[0].by_item()

    called: list[bool] = []
    monkeypatch.setattr(answering, "give_memory_back", lambda: called.append(True))
    monkeypatch.setattr(answering, "_TRIM_EVERY", 1)
    scorer = MaskedScorer(MaskedLM(ref_of(checkpoint())))
    by_item = predicted(scorer.choice_scores())
    assert {item: len(scores) for item, scores in by_item.items()} == {0: 3, 1: 2}
    question = scorer.choice_scores()
    with torch.no_grad():
        plain = question.answer(question.encoder.encode(RECORDS).collate([0, 1]))
    assert by_item[0] == pytest.approx(plain[0].tolist(), abs=1e-5)
    rows = predicted(scorer.vocabulary(), per_choice=False)
    assert {len(row) for row in rows.values()} == {len(scorer.masked.tokenizer)}
    assert not scorer.network.training
    assert called == [True, True]
