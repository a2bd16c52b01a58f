from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import (
    AutoModelForMaskedLM,
    BartConfig,
    EsmcConfig,
    EuroBertConfig,
    FlaubertConfig,
    GteConfig,
    MobileBertConfig,
    PreTrainedConfig,
    PreTrainedModel,
    RemBertConfig,
    UltrabertConfig,
)

from probelight.models.candidate_head import CandidateHead, UnsupportedHeadError
from probelight.models.networks import run_encoder
from tests.fixtures.architectures import SHARED, VOCAB_SIZE

Model = Callable[..., PreTrainedModel]
MakeBatch = Callable[..., dict[str, Tensor]]


def _full_logits(model: PreTrainedModel, batch: dict[str, Tensor]) -> Tensor:
    """The model's own logits (B, V) at the mask, from its own forward."""
    logits = run_encoder(model, batch).logits
    return logits[torch.arange(len(logits)), batch["mask_position"]]


def _features(model: PreTrainedModel, batch: dict[str, Tensor]) -> Tensor:
    hidden = run_encoder(model.base_model, batch).last_hidden_state
    return hidden[torch.arange(len(hidden)), batch["mask_position"]]


def test_gradients_are_those_of_the_masked_softmax_over_the_vocabulary(
    architecture: str, tiny_model: Model, masked_batch: MakeBatch
) -> None:
    """Talmor et al. 2020: p = softmax(m + l), m in {0, -inf}^V; cross-entropy on the gold."""
    reference, model = tiny_model(architecture), tiny_model(architecture)
    batch = masked_batch(num_choices=4)
    batch["choice_mask"][:] = True
    batch["candidate_ids"][-1] = torch.tensor([7, 9, 11, 13])
    logits = _full_logits(reference, batch)
    mask = torch.full_like(logits, float("-inf")).scatter(1, batch["candidate_ids"], 0.0)
    gold = batch["candidate_ids"].gather(1, batch["labels"][:, None])[:, 0]
    expected_loss = F.cross_entropy(logits + mask, gold)
    expected_loss.backward()

    scores = CandidateHead(model).score(_features(model, batch), batch["candidate_ids"])
    loss = F.cross_entropy(scores, batch["labels"])
    loss.backward()

    torch.testing.assert_close(loss, expected_loss, rtol=1e-5, atol=1e-6)
    compared = 0
    parameters = dict(model.named_parameters())
    for name, parameter in reference.named_parameters():
        if parameter.grad is None:
            assert parameters[name].grad is None or not parameters[name].grad.any(), name
            continue
        gradient = parameters[name].grad
        assert gradient is not None, name
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-4, atol=1e-6, msg=name)
        compared += 1
    assert compared >= 15  # encoder, transform and decoder all took part


def test_only_candidate_rows_of_an_untied_decoder_get_gradient(
    architecture: str, tiny_model: Model, masked_batch: MakeBatch
) -> None:
    model, batch = tiny_model(architecture), masked_batch()
    head = CandidateHead(model)
    head.untie()
    assert head.weight is not model.get_input_embeddings().weight
    scores = head.score(_features(model, batch).detach(), batch["candidate_ids"])
    F.cross_entropy(scores, batch["labels"]).backward()
    rows = sorted(set(batch["candidate_ids"].flatten().tolist()))
    assert head.weight.grad is not None
    assert head.bias is not None
    assert head.bias.grad is not None
    assert head.weight.grad.abs().sum(1).nonzero()[:, 0].tolist() == rows
    assert head.bias.grad.nonzero()[:, 0].tolist() == rows


@pytest.mark.parametrize(
    "config",
    [
        RemBertConfig(**SHARED, input_embedding_size=16, output_embedding_size=24),
        GteConfig(**SHARED),
        EsmcConfig(**SHARED),
        EuroBertConfig(**SHARED, num_key_value_heads=2, mask_token_id=4),
        UltrabertConfig(**SHARED, prediction_head_size=24),
        FlaubertConfig(vocab_size=VOCAB_SIZE, emb_dim=32, n_layers=2, n_heads=2, pad_index=0),
    ],
    ids=lambda config: type(config).__name__,
)
def test_further_families_have_the_logits_of_the_whole_vocabulary(
    config: PreTrainedConfig, masked_batch: MakeBatch
) -> None:
    torch.manual_seed(0)
    model = AutoModelForMaskedLM.from_config(config).eval()
    with torch.no_grad():  # fresh biases are 0 and fresh norms 1, which would hide a lost one
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    batch = masked_batch(num_choices=4)
    expected = _full_logits(model, batch).gather(1, batch["candidate_ids"])
    scores = CandidateHead(model).score(_features(model, batch), batch["candidate_ids"])
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-4)


def test_a_head_without_decoder_bias_is_scored_without(
    tiny_model: Model, masked_batch: MakeBatch
) -> None:
    model, batch = tiny_model("modernbert"), masked_batch()
    model.decoder.bias = None
    head = CandidateHead(model)
    assert head.bias is None
    assert len(list(head.decoder_parameters())) == 1
    with torch.no_grad():
        expected = _full_logits(model, batch).gather(1, batch["candidate_ids"])
        logits = head.score(_features(model, batch), batch["candidate_ids"])
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (BartConfig(**SHARED, d_model=32), "BartForConditionalGeneration"),
        (
            MobileBertConfig(
                vocab_size=60,
                hidden_size=32,
                embedding_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
            ),
            "MobileBertForMaskedLM",
        ),
    ],
)
def test_a_head_of_another_form_is_refused_by_name(config: Any, name: str) -> None:
    with pytest.raises(UnsupportedHeadError, match=name):
        CandidateHead(AutoModelForMaskedLM.from_config(config))


def test_a_head_that_only_looks_alike_is_refused(tiny_model: Model) -> None:
    model = tiny_model("bert")
    forward = model.cls.predictions.forward
    model.cls.predictions.forward = lambda hidden: 2.0 * forward(hidden)
    with pytest.raises(UnsupportedHeadError, match=r"BertForMaskedLM.*not just a transform"):
        CandidateHead(model)


def test_the_check_leaves_the_training_modes_alone(tiny_model: Model) -> None:
    model = tiny_model("bert").train()
    model.bert.embeddings.eval()
    CandidateHead(model)
    assert model.training
    assert model.bert.encoder.training
    assert not model.bert.embeddings.dropout.training
