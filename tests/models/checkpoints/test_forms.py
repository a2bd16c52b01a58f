from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    GPT2Config,
    GPT2LMHeadModel,
    RobertaConfig,
    T5Config,
)

from probelight.models.checkpoints.description import check_pretrained
from probelight.models.checkpoints.folder import PretrainedError
from probelight.models.checkpoints.forms import ENCODER, MASKED_LM, MULTIPLE_CHOICE, Form
from probelight.models.checkpoints.loading import load_pretrained

Checkpoint = Callable[..., Path]


@pytest.fixture
def causal(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    """A tiny GPT-2 with the WordPiece tokenizer of the others."""
    folder = Path(shutil.copytree(checkpoint("bert"), tmp_path / "causal"))
    config = GPT2Config(vocab_size=60, n_embd=8, n_layer=1, n_head=2, n_positions=16)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("form", [MASKED_LM, ENCODER, MULTIPLE_CHOICE])
def test_our_forms_are_those_of_models_that_read_both_ways(form: Form) -> None:
    assert form.admits(BertConfig())
    assert form.admits(RobertaConfig())
    assert not form.admits(BertConfig(is_decoder=True))
    assert not form.admits(T5Config())
    assert not form.admits(GPT2Config())


def test_a_new_form_is_said_where_it_is_used(causal: Path) -> None:
    for form in (MASKED_LM, ENCODER):
        with pytest.raises(PretrainedError, match=r"a causal language model.*--model.kind auto"):
            check_pretrained(form, str(causal))
    own = Form(AutoModelForCausalLM, lambda config: isinstance(config, GPT2Config))
    check_pretrained(own, str(causal))
    model, tokenizer = load_pretrained(own, str(causal))
    assert isinstance(model, GPT2LMHeadModel)
    assert model(torch.tensor([tokenizer("a cat").input_ids])).logits.shape[-1] == 60
    asks = Form(AutoModelForCausalLM, own.admits, needs=("pad_token", "bos_token"))
    with pytest.raises(PretrainedError, match="the tokenizer has no bos token"):
        check_pretrained(asks, str(causal))
