"""Models without keys and values are read whole; what a model makes of logits is its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    Gemma2Config,
    GPT2Config,
    GPT2Model,
    MambaConfig,
)

from probelight.models.checkpoints.folder import PretrainedError
from probelight.models.scorers.next_tokens import NextTokens

CONFIGS: dict[str, tuple[Callable[[], Any], bool]] = {
    "gemma2": (  # caps logits, and every other layer sees 4 tokens
        lambda: Gemma2Config(
            vocab_size=50,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=8,
            sliding_window=4,
            final_logit_softcapping=2.0,
        ),
        True,
    ),
    "bloom": (  # places are distances, told from the attention mask
        lambda: BloomConfig(vocab_size=50, hidden_size=16, n_layer=2, n_head=2),
        True,
    ),
    "mamba": (
        lambda: MambaConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, state_size=4),
        False,
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_log_probabilities_are_those_of_each_text_alone(name: str) -> None:
    config, shares = CONFIGS[name]
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config()).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))
    beginning = [3, 4, 5, 6, 7, 8]
    texts = [[*beginning, 9, 10, 11], [*beginning, 12], [*beginning, 9, 13, 14, 15], [3, 20, 21]]
    reader = NextTokens(model)
    ids = torch.zeros(4, 10, dtype=torch.long)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text)] = torch.tensor(text)
    scored = ids != 0
    scored[:3, :5] = False
    scored[3, 0] = False
    batch = {
        "input_ids": ids,
        "attention_mask": (ids != 0).long(),
        "answer_mask": scored,
        "shared": torch.tensor([6, 6, 6, 1]),
        "owner": torch.tensor([0, 0, 0, 3]),
    }
    found = reader.log_probabilities(batch)
    assert reader.shares == shares
    expected = []
    for text, first in zip(texts, (5, 5, 5, 1), strict=True):
        logs = model(torch.tensor([text])).logits[0].log_softmax(-1)
        expected += [float(logs[i - 1, text[i]]) for i in range(first, len(text))]
    assert found.tolist() == pytest.approx(expected, abs=1e-5)


def test_a_model_without_a_head_is_refused_by_name() -> None:
    config = GPT2Config(vocab_size=50, n_embd=8, n_layer=1, n_head=1)
    with pytest.raises(PretrainedError, match="GPT2Model has no head over a vocabulary"):
        NextTokens(GPT2Model(config))
