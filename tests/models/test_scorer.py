"""What a model type need not answer it refuses by name, and its weights tell it from others."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from probelight.io.errors import UsageError
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.networks import model_fingerprint
from probelight.models.scorer import Question, Scorer, TrainedScorer, scores_of_choices
from probelight.probes.record import Record


class Longest(Scorer):
    """A model type with one weight."""

    mode = "by_length"

    def __init__(self, weight: float) -> None:
        self.network = nn.ParameterList([torch.tensor(weight)])

    def choice_scores(self) -> Question:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("vocabulary", "log-probabilities over a vocabulary"),
        ("log_likelihoods", "log-likelihoods of a continuation"),
        ("features", "features"),
    ],
)
def test_what_a_model_type_does_not_answer_is_refused_by_name(
    question: str, message: str, scorer: TrainedScorer
) -> None:
    for s, name in ((Longest(1.0), "Longest (mode by_length)"), (scorer, "TrainedScorer (mode")):
        with pytest.raises(UsageError, match=rf"^{re.escape(name)}.* cannot compute {message}$"):
            getattr(s, question)()
    with pytest.raises(TypeError, match="abstract"):
        Scorer()  # type: ignore[abstract]
    assert Longest(1.0).fingerprint() == Longest(1.0).fingerprint() != Longest(1.5).fingerprint()


# Two items over three texts of 2, 1 and 3 tokens; the second item has one choice.
BATCH = {
    "pair_index": torch.tensor([[2, 0], [1, 0]]),
    "choice_mask": torch.tensor([[True, True], [True, False]]),
}
SCORES, COUNTS = torch.tensor([-1.0, -2.0, -4.0, -0.5, -0.25, -0.75]), torch.tensor([2, 1, 3])


def test_each_choice_gets_the_sum_or_the_mean_of_its_own_tokens() -> None:
    sums = scores_of_choices(BATCH, SCORES, COUNTS, "sum")
    assert sums.tolist() == [[-1.5, -3.0], [-4.0, -torch.inf]]
    assert sums.dtype == torch.float32
    means = scores_of_choices(BATCH, SCORES, COUNTS, "mean")
    assert means.tolist() == [[-0.5, -1.5], [-4.0, -torch.inf]]
    # The mean of equal numbers is that number.
    batch = {"pair_index": torch.tensor([[0, 1]]), "choice_mask": torch.ones(1, 2).bool()}
    scores = scores_of_choices(batch, torch.full((13,), -3.3), torch.tensor([10, 3]), "mean")
    assert scores[0, 0] == scores[0, 1]


QUESTION = Record("1", "which animal is larger ?", ("a dog", "the red cat"), 0)


@pytest.fixture
def scorer(checkpoint: Callable[..., Path]) -> TrainedScorer:
    return TrainedScorer(SentenceChoice(str(checkpoint())))


def test_its_scores_are_the_modules_logits(scorer: TrainedScorer) -> None:
    question = scorer.choice_scores()
    batch = question.encoder.encode([QUESTION]).collate([0])
    with torch.no_grad():
        assert torch.equal(question.answer(batch), scorer.module(batch))
    assert scorer.fingerprint() == model_fingerprint(scorer.module)
