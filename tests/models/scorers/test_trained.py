"""A trained module answers with its head, and refuses what a head does not know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from probelight.io.errors import UsageError
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.checkpoints.weights import model_fingerprint
from probelight.models.scorers.trained import TrainedScorer
from probelight.probes.record import Record

QUESTION = Record("1", "which animal is larger ?", ("a dog", "the red cat"), 0)


@pytest.fixture
def scorer(checkpoint: Callable[..., Path]) -> TrainedScorer:
    return TrainedScorer(SentenceChoice(str(checkpoint())))


def test_its_scores_are_the_modules_logits(scorer: TrainedScorer) -> None:
    asked = scorer.choice_scores()
    batch = asked.encoder.encode([QUESTION]).collate([0])
    with torch.no_grad():
        assert torch.equal(asked.answer(batch), scorer.module(batch))
    assert scorer.fingerprint() == model_fingerprint(scorer.module)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("vocabulary", "log-probabilities over a vocabulary"),
        ("log_likelihoods", "log-likelihoods of a continuation"),
        ("features", "features"),
    ],
)
def test_other_questions_are_refused_by_name(
    scorer: TrainedScorer, question: str, named: str
) -> None:
    with pytest.raises(UsageError, match=rf"TrainedScorer \(mode fine_tuned\) gives no {named}"):
        getattr(scorer, question)()
