"""Tiny tokenizers of the kinds that masked language models have, built from a few words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer
from transformers import (
    AddedToken,
    BertTokenizer,
    CanineTokenizer,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
)

from tests.datamodules.bag import Bag

# "antelope" and "zebra" are words of none of them: WordPiece splits the one, the other is unknown.
WORDS = (
    "a the is than first second third older younger much size of cat dog larger smaller not really "
    "he was ready to rest question answer which one two three in sentence word best , . ? ( )"
).split()
PIECES = ["ante", "##lo", "##pe"]


def wordpiece() -> Any:
    """BERT's kind: whole words, `##` inside words, no leading spaces."""
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *PIECES]
    return BertTokenizer(vocab={name: i for i, name in enumerate(names)})


def byte_bpe(mask_takes_space: bool = True) -> Any:
    """RoBERTa's kind: words inside a sentence begin with `Ġ`, and the mask eats the space."""
    base = Tokenizer(models.BPE())
    base.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = BpeTrainer(
        vocab_size=2000,
        min_frequency=2,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    base.train_from_iterator([text for w in WORDS for text in (w, f" {w}") * 9], trainer)
    vocab = base.get_vocab()
    vocab["<mask>"] = len(vocab)
    merges = [tuple(merge) for merge in json.loads(base.to_str())["model"]["merges"]]
    mask = AddedToken("<mask>", lstrip=mask_takes_space, special=True)
    return RobertaTokenizer(vocab=vocab, merges=merges, mask_token=mask)


def sentencepiece() -> Any:
    """ALBERT's and XLM-R's kind: every word begins with `▁`, also the first of a sentence."""
    pieces = [f"▁{word}" for word in WORDS] + ["▁", "ante", *"abcdefghijklmnopqrstuvwxyz,.?()"]
    scores = [(name, 0.0) for name in ("<pad>", "<unk>", "[CLS]", "[SEP]")]
    scores += [(piece, -1.0 if len(piece) > 1 else -9.0) for piece in pieces]
    base = Tokenizer(models.Unigram(scores, unk_id=1))
    base.normalizer = normalizers.Lowercase()
    base.pre_tokenizer = pre_tokenizers.Metaspace()
    base.decoder = decoders.Metaspace()
    base.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=base,
        pad_token="<pad>",
        unk_token="<unk>",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token=AddedToken("[MASK]", lstrip=True, special=True),
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def characters() -> Any:
    """Written in Python, not a fast one: a token for every character."""
    return CanineTokenizer()


KINDS: dict[str, Callable[[], Any]] = {
    "wordpiece": wordpiece,
    "byte_bpe": byte_bpe,
    "sentencepiece": sentencepiece,
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind of tokenizer in turn."""
    return str(request.param)


@pytest.fixture
def tokenizer(kind: str) -> Any:
    """A fresh tokenizer of that kind."""
    return KINDS[kind]()


@pytest.fixture
def make_tokenizer() -> Callable[..., Any]:
    """Makes a tokenizer of a named kind."""
    makers: dict[str, Callable[..., Any]] = {
        **KINDS,
        "byte_bpe": byte_bpe,
        "characters": characters,
    }
    return lambda kind, **options: makers[kind](**options)


@pytest.fixture
def make_module(make_tokenizer: Callable[..., Any]) -> Callable[..., Bag]:
    """Makes the same freshly initialised module every time."""

    def make(**options: Any) -> Bag:
        torch.manual_seed(0)
        return Bag(make_tokenizer("wordpiece"), **options)

    return make
