"""What the decoder is given first is the model's own rule, for families that have others."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    MT5Config,
    MT5ForConditionalGeneration,
    RobertaTokenizer,
    T5Tokenizer,
)

from probelight.models.checkpoints.folder import PretrainedError
from probelight.models.scorers.infilling import infilling_of

SIZES: dict[str, Any] = {
    "d_model": 8,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 1,
    "decoder_attention_heads": 1,
}


def test_mbarts_sentences_begin_with_their_language() -> None:
    tokenizer = MBartTokenizer(src_lang="en_XX", tgt_lang="en_XX")
    size = len(tokenizer)
    model = MBartForConditionalGeneration(MBartConfig(vocab_size=size, **SIZES))
    form = infilling_of(model, tokenizer)
    assert form.opening == (tokenizer.convert_tokens_to_ids("en_XX"),)
    assert (form.closing, form.blank, form.repeats_context) == ((), "<mask>", True)


def test_barts_sentences_begin_with_its_first_token(byte_bpe: RobertaTokenizer) -> None:
    config = BartConfig(vocab_size=len(byte_bpe), decoder_start_token_id=2, **SIZES)
    form = infilling_of(BartForConditionalGeneration(config), byte_bpe)
    assert form.opening == (2, byte_bpe.bos_token_id)
    without = copy.deepcopy(byte_bpe)
    without.mask_token = None
    with pytest.raises(PretrainedError, match="must have a mask token"):
        infilling_of(BartForConditionalGeneration(config), without)


def test_mt5s_sentinels_are_words_of_its_vocabulary() -> None:
    pieces = ["<pad>", "</s>", "<unk>", "▁", "▁a", "▁<extra_id_1>", "▁<extra_id_0>"]
    tokenizer = T5Tokenizer(vocab=[(piece, 0.0) for piece in pieces], extra_ids=0)
    config = MT5Config(
        vocab_size=7, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0
    )
    form = infilling_of(MT5ForConditionalGeneration(config), tokenizer)
    assert (form.blank, form.blank_id) == (" <extra_id_0>", 6)
    assert (form.opening, form.closing) == ((0, 6), (5,))


def test_a_model_without_a_start_token_is_refused() -> None:
    sentinels = [("<extra_id_1>", 0.0), ("<extra_id_0>", 0.0)]
    vocab = [(piece, 0.0) for piece in ("<pad>", "</s>", "<unk>", "▁a")] + sentinels
    tokenizer = T5Tokenizer(vocab=vocab, extra_ids=2)
    config = MT5Config(vocab_size=6, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    config.decoder_start_token_id = None
    model = MT5ForConditionalGeneration(config)
    with pytest.raises(PretrainedError, match="decoder's start token"):
        infilling_of(model, tokenizer)
