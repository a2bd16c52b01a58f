"""The best entries of a vocabulary, and how entries read, whatever the tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast, RobertaTokenizer

from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.models.scorers.masked import MaskedScorer
from probelight.models.scorers.words import best_entries, entries_of, read_out, tokenizer_of
from probelight.probes.record import Record

Checkpoint = Callable[..., Path]
STEM = "a cat is [MASK] than a dog ."


def of_pieces(tokenizer: Any, *pieces: str) -> list[str]:
    entries = [tokenizer.convert_tokens_to_ids(piece) for piece in pieces]
    read = read_out(tokenizer, entries)
    return [read[entry] for entry in entries]


@pytest.fixture
def scorer(checkpoint: Checkpoint) -> MaskedScorer:
    return MaskedScorer(MaskedChoice(str(checkpoint())))


def test_the_best_are_the_whole_vocabularys_sorted(scorer: MaskedScorer) -> None:
    records = [Record("1", STEM, (), 0), Record("2", "the [MASK] was ready .", (), 0)]
    question = best_entries(scorer, 3, [[7, 9], [11]])
    encoded = question.encoder.encode(records)
    batch = encoded.collate([1, 0, -1])
    with torch.no_grad():
        found, whole = question.answer(batch), scorer.vocabulary().answer(batch)
    order = whole.argsort(dim=1, descending=True)[:, :3]
    assert found[:, :3].long().equal(order)
    torch.testing.assert_close(found[:, 3:6], whole.gather(1, order))
    assert found[0, 6] == whole[0, 11]  # the second record stands first
    assert found[1, 6:].equal(whole[1, [7, 9]])


def test_a_word_is_its_one_entry_in_its_place(scorer: MaskedScorer) -> None:
    vocabulary = scorer.vocabulary()
    words = ["younger", "antelope", "zebra", "Younger"]
    entries = entries_of(vocabulary, [(STEM, word) for word in words])
    younger = tokenizer_of(vocabulary).convert_tokens_to_ids("younger")
    assert entries == [younger, None, None, younger]
    assert entries_of(vocabulary, [(STEM, "antelope")]) == [None]


def test_entries_of_wordpiece(checkpoint: Checkpoint) -> None:
    tokenizer = AutoTokenizer.from_pretrained(checkpoint())
    shown = of_pieces(tokenizer, "cat", "##lo", ",", "1", "[MASK]", "[UNK]")
    assert shown == ["cat", "##lo", ",", "1", "[MASK]", "[UNK]"]


def test_entries_of_byte_pairs(byte_bpe: RobertaTokenizer) -> None:
    part = byte_bpe.convert_ids_to_tokens(byte_bpe("é", add_special_tokens=False)["input_ids"])
    shown = of_pieces(byte_bpe, "Ġolder", "l", "Ġ", "Ċ", "Ā", ",", "<mask>", part[0])
    assert shown == ["older", "##l", "Ġ", "Ċ", "Ā", ",", "<mask>", part[0]]


def test_entries_of_sentencepiece() -> None:
    pieces = ["<unk>", "▁a", "▁", "▁fish", "fish", "▁two\u2003words", "▁##x"]
    model = models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0)
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>")
    shown = of_pieces(tokenizer, "▁fish", "fish", "▁", "▁two\u2003words")
    assert shown == ["fish", "##fish", "▁", "▁two\\x2003words"]
