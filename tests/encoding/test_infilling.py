"""Texts with a blank: what the encoder reads, and what the decoder is to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from transformers import T5Tokenizer

from probelight.encoding.infilling import Infilling, InfillingEncoder
from probelight.io.errors import RecordError
from probelight.probes.record import Record

MakeTokenizer = Callable[..., Any]

WORDS = "a the is than dog cat small red".split()
PIECES = ["▁ante", "lope", ".", "s"]
RECORD = Record("r", "a cat is [MASK] .", ("red", "the antelope"), 1, position=7)


@pytest.fixture
def sentinels() -> tuple[Any, Infilling]:
    """T5's kind of tokenizer, and its form: pad starts the decoder."""
    vocab = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -9.0)]
    vocab += [(f"▁{word}", -1.0) for word in WORDS] + [(piece, -2.0) for piece in PIECES]
    tokenizer = T5Tokenizer(
        vocab=[*vocab, ("<extra_id_1>", 0.0), ("<extra_id_0>", 0.0)], extra_ids=2
    )
    zero, closing = tokenizer.convert_tokens_to_ids(["<extra_id_0>", "<extra_id_1>"])
    return tokenizer, Infilling(
        "<extra_id_0>", zero, zero, (0, zero), (closing,), repeats_context=False
    )


@pytest.fixture
def sentence(make_tokenizer: MakeTokenizer) -> tuple[Any, Infilling]:
    """BART's kind, and its form: </s> starts the decoder, <s> a sentence."""
    tokenizer = make_tokenizer("byte_bpe")
    opening = (tokenizer.eos_token_id, tokenizer.bos_token_id)
    return tokenizer, Infilling("<mask>", *2 * [tokenizer.mask_token_id], opening, (), True)


def texts(kind: tuple[Any, Infilling], *records: Record, **options: Any) -> dict[str, list[str]]:
    """What the two halves of the model are given, and what is asked for, as pieces."""
    tokenizer, form = kind
    encoded = InfillingEncoder(tokenizer, form, **options).encode(records)
    batch = encoded.collate(range(len(encoded)))
    pieces = tokenizer.convert_ids_to_tokens
    read = [
        " ".join(pieces(ids[mask.bool()].tolist()))
        for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]
    scored = [
        " ".join(pieces(ids[mask].tolist()))
        for ids, mask in zip(batch["scored_ids"], batch["scored_mask"], strict=True)
    ]
    prefixes = [
        " ".join(pieces(ids[: int(mask.int().argmax()) + 1].tolist()))
        for ids, mask in zip(batch["decoder_input_ids"], batch["scored_mask"], strict=True)
    ]
    return {"read": read, "given": prefixes, "asked": scored}


def test_a_blank_inside_a_word_brings_no_space(sentence: tuple[Any, Infilling]) -> None:
    sides = texts(sentence, Record("s", "a cat([MASK])", ("dog", "first"), 0))
    assert sides["read"] == ["<s> a Ġcat ( <mask> ) </s>"]
    assert sides["asked"] == ["dog", "first"]


def test_the_next_token_is_asked_for_without_what_closes(
    sentinels: tuple[Any, Infilling], sentence: tuple[Any, Infilling]
) -> None:
    sides = texts(sentinels, RECORD, asks="place")
    assert sides["given"] == ["<pad> <extra_id_0>"]
    assert len(sides["asked"][0].split()) == 1
    assert texts(sentence, RECORD, asks="place")["given"] == ["</s> <s> a Ġcat Ġis"]
    encoded = InfillingEncoder(*sentinels, asks="entries").encode([RECORD])
    assert [item.name for item in encoded.skipped] == ["r@7"]
    assert "2 pieces" not in encoded.skipped[0].reason
    assert "'the antelope' is 3 tokens" in encoded.skipped[0].reason


def test_a_long_text_is_cut_around_its_blank_in_both_halves(
    sentinels: tuple[Any, Infilling], sentence: tuple[Any, Infilling]
) -> None:
    long = Record("l", "the " * 30 + "cat [MASK] is" + " dog" * 30, ("first", "the first"), 0)
    sides = texts(sentence, long, max_length=10)
    assert sides["read"] == ["<s> Ġthe Ġthe Ġcat <mask> Ġis Ġdog Ġdog Ġdog </s>"]
    assert sides["given"] == ["</s> <s> Ġthe Ġthe Ġcat"] * 2
    short = Record("s", "the " * 30 + "cat [MASK]", ("first", "the the the first"), 0)
    encoder = InfillingEncoder(*sentence, max_length=10)
    encoded = encoder.encode([short])
    assert encoded.lengths.tolist() == [8 + 2 - 1]
    assert encoded.notices == ("1 of 1 texts were cut to 10 tokens around their blank",)
    small = replace(long, choices=("red", "small"))
    assert texts(sentinels, small, max_length=7)["read"] == [
        "▁the ▁cat <extra_id_0> ▁is ▁dog ▁dog </s>"
    ]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Record("none", "a [MASK]", ("", "dog"), 1, position=3), "none@3: the choice '' has no"),
        (
            Record("itself", "a <extra_id_0> <mask> is [MASK]", ("red", "dog"), 0, position=3),
            "itself@3: after tokenising, the text has 2 blanks; does it contain '<",
        ),
        (
            Record("long", "a [MASK]", ("red " * 20, "dog"), 0, position=3),
            r"long@3: a choice has \d+ tokens, more than max_length=12 allows",
        ),
    ],
)
def test_what_cannot_be_posed_is_refused_by_name(
    record: Record, message: str, sentinels: tuple[Any, Infilling], sentence: tuple[Any, Infilling]
) -> None:
    for kind in (sentinels, sentence):
        with pytest.raises(RecordError, match=message):
            InfillingEncoder(*kind, max_length=12).encode([record])


def test_letters_of_the_stem_in_the_tokens_of_some_choices_are_noticed(
    sentence: tuple[Any, Infilling],
) -> None:
    even = Record("e", "a [MASK] cat", ("smaller", "older"), 0)
    uneven = Record("u", "a small[MASK] cat", ("er", "?"), 0, position=3)  # " smaller" is a token
    encoder = InfillingEncoder(*sentence)
    [notice] = encoder.encode([even, uneven]).notices
    assert notice.startswith("1 of 2 items have a token that spans stem and answer for one choice")
    assert "(first: u@3)" in notice
    assert encoder.encode([even]).notices == ()


def test_pieces_are_counted_and_unknown_ones_noticed(sentinels: tuple[Any, Infilling]) -> None:
    encoder = InfillingEncoder(*sentinels)
    assert len(encoder.encode([])) == 0
    assert encoder.num_tokens([RECORD]) == [[2, 4]]
    with pytest.raises(ValueError, match="max_length=2 leaves no room"):
        InfillingEncoder(*sentinels, max_length=2)
    text, answer = encoder.encode([Record("u", "a [MASK] \u2603", ("red", "café"), 0)]).notices
    assert "1 of 1 texts contain text that" in text
    assert "1 of 2 answers contain text that" in answer
