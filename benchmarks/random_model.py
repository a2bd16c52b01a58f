"""Models of a size, with a tokenizer that fits: to measure, not to use."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer
from torch import nn
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

from probelight.io.package import BUNDLED_MODEL, SMALL_MODEL
from probelight.models.checkpoint_files import model_folder
from probelight.models.networks import own_random_state


def write_random_model(
    folder: str | Path, num_layers: int = 6, hidden_size: int = 384, vocab_size: int = 30000
) -> str:
    """Write config and tokenizer, to be loaded with `random_weights`, and return the folder.

    An attention head has 64 numbers, the feed-forward layer 4 H. Rows of the vocabulary beyond the
    tokenizer's are never looked up, but a decoder scores them.
    """
    tokenizer = AutoTokenizer.from_pretrained(model_folder(SMALL_MODEL))
    tokenizer.save_pretrained(folder)
    config = BertConfig(
        vocab_size=max(vocab_size, len(tokenizer)),
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=max(1, hidden_size // 64),
        intermediate_size=4 * hidden_size,
        pad_token_id=tokenizer.pad_token_id,
    )
    config.architectures = ["BertForMaskedLM"]
    config.save_pretrained(folder)
    return str(folder)


def write_wide_model(folder: str | Path, intermediate_size: int) -> None:
    """Write the bundled model with more neurons in each feed-forward layer, which do nothing.

    Its answers are the bundled model's; its work is that of a larger one.
    """
    source = model_folder(BUNDLED_MODEL)
    model = BertForMaskedLM.from_pretrained(source, dtype=torch.float32)
    for layer in model.bert.encoder.layer:
        up, down = layer.intermediate.dense, layer.output.dense
        wide_up = nn.Linear(up.in_features, intermediate_size)
        wide_down = nn.Linear(intermediate_size, down.out_features)
        with torch.no_grad():
            wide_up.weight[: up.out_features], wide_up.bias[: up.out_features] = up.weight, up.bias
            wide_down.weight.zero_()
            wide_down.weight[:, : up.out_features] = down.weight
            wide_down.bias.copy_(down.bias)
        layer.intermediate.dense, layer.output.dense = wide_up, wide_down
    model.config.intermediate_size = intermediate_size
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)


def random_gpt2(
    texts: Iterable[str], num_layers: int = 6, hidden_size: int = 384, vocab_size: int = 50257
) -> tuple[GPT2LMHeadModel, PreTrainedTokenizerFast]:
    """Return a GPT-2 in eval mode, and a tokenizer whose words are few pieces, as GPT-2's own.

    The pieces are learned from the texts. Rows of the vocabulary beyond the tokenizer's are never
    looked up, but the head scores them.
    """
    end = "<|endoftext|>"
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[end],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pieces.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces, bos_token=end, eos_token=end)
    config = GPT2Config(
        vocab_size=vocab_size,
        n_embd=hidden_size,
        n_layer=num_layers,
        n_head=max(1, hidden_size // 64),
        bos_token_id=0,
        eos_token_id=0,
    )
    with own_random_state(0):
        return GPT2LMHeadModel(config).eval().requires_grad_(False), tokenizer
