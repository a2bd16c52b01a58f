"""What a kind of scorer need not answer it refuses by name, and its weights tell it from others."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from probelight.io.errors import UsageError
from probelight.models.scorers.base import Question, Scorer


class Longest(Scorer):
    """A kind with one weight."""

    mode = "by_length"

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def choice_scores(self) -> Question:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("vocabulary", "log-probabilities over a vocabulary"),
        ("log_likelihoods", "log-likelihoods of a continuation"),
        ("features", "features"),
    ],
)
def test_what_a_kind_does_not_answer_is_refused_by_name(question: str, said: str) -> None:
    with pytest.raises(UsageError, match=rf"^Longest \(mode by_length\) gives no {said}$"):
        getattr(Longest(1.0), question)()


def test_a_kind_must_say_how_choices_get_their_scores() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Scorer()  # type: ignore[abstract]


def test_scorers_of_equal_weights_have_one_fingerprint() -> None:
    assert Longest(1.0).fingerprint() == Longest(1.0).fingerprint() != Longest(1.5).fingerprint()
