"""Texts with an answer in them: what is scored, what is cut, where words end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from probelight.encoding.causal import ContinuationEncoder
from probelight.encoding.likelihood import LikelihoodEncoder, word_ends
from probelight.io.errors import RecordError
from probelight.probes.record import Record

QA = Record("q", "which one", ("the cat", "dog"), 0)
MLM = Record("m", "a cat is [MASK] , not really .", ("much larger", "smaller"), 1)


def _answers(tokenizer: Any, encoded: Any) -> list[str]:
    """The text that is scored of each choice of the only item."""
    batch = encoded.collate([0])
    rows = zip(batch["input_ids"], batch["answer_mask"], strict=True)
    texts = [tokenizer.decode(ids[mask]).strip() for ids, mask in rows]
    return [texts[i] for i in batch["pair_index"][0]]


@pytest.mark.parametrize(
    ("record", "texts"),
    [
        (QA, ["which one the cat", "which one dog"]),
        (MLM, ["a cat is much larger , not really .", "a cat is smaller , not really ."]),
        (Record("t", "[MASK] [MASK] .", ("dog",), 0), ["[MASK] dog ."]),  # the last is the place
    ],
)
def test_the_tokens_are_those_of_the_running_text(
    record: Record, texts: list[str], tokenizer: Any
) -> None:
    encoded = LikelihoodEncoder(tokenizer).encode([record])
    assert _answers(tokenizer, encoded) == list(record.choices)
    assert encoded.notices == ()
    batch = encoded.collate([0])
    assert encoded.num_sequences.tolist() == [int(batch["answer_mask"].sum())]
    for row, text in zip(batch["pair_index"][0], texts, strict=True):
        length = int(batch["attention_mask"][row].sum())
        assert batch["input_ids"][row][:length].tolist() == tokenizer(text)["input_ids"]


def test_items_of_several_lengths_share_a_batch(tokenizer: Any) -> None:
    three = Record("t", "which one", ("the cat", "dog", "a small dog"), 2)
    encoded = LikelihoodEncoder(tokenizer).encode([QA, three])
    batch = encoded.collate([0, 1])
    assert batch["choice_mask"].tolist() == [[True, True, False], [True, True, True]]
    assert len(batch["input_ids"]) == 3  # two texts are in both items
    assert batch["pair_index"][0, :2].tolist() == batch["pair_index"][1, :2].tolist()
    assert encoded.lengths.tolist() == [
        int(encoded.collate([i])["attention_mask"].sum(1).max()) for i in range(2)
    ]


def test_a_long_text_is_cut_around_its_answer(tokenizer: Any) -> None:
    stem = "the " * 40 + "[MASK]" + " dog" * 40
    encoder = LikelihoodEncoder(tokenizer, max_length=12)
    encoded = encoder.encode([Record("l", stem, ("cat", "older"), 0)])
    batch = encoded.collate([0])
    assert batch["input_ids"].shape[1] == 12
    assert _answers(tokenizer, encoded) == ["cat", "older"]
    assert encoded.notices == ("2 of 2 texts were cut to 12 tokens around their answer",)
    words = tokenizer.decode(batch["input_ids"][0], skip_special_tokens=True).split()
    assert abs(words.count("the") - words.count("dog")) <= 1


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("the " * 20, r"bad@7: the choice 'the the .* more than max_length"),
        ("", "'' has no tokens"),
    ],
)
def test_an_answer_that_cannot_be_scored_is_refused_by_name(
    choice: str, message: str, tokenizer: Any
) -> None:
    record = Record("bad", "which one", (choice, "dog"), 1, position=7)
    with pytest.raises(RecordError, match=message):
        LikelihoodEncoder(tokenizer, max_length=12).encode([record])


MakeTokenizer = Callable[..., Any]


def hidden(tokenizer: Any, record: Record, **options: Any) -> list[list[str]]:
    """Of each choice's tokens, the tokens that are masked when it is scored."""
    batch = LikelihoodEncoder(tokenizer, by_words=True, **options).encode([record]).collate([0])
    spans = []
    for row in batch["pair_index"][0].tolist():
        for position in batch["answer_mask"][row].nonzero()[:, 0].tolist():
            ids = batch["input_ids"][row, position : batch["masked_until"][row, position]]
            spans.append(tokenizer.convert_ids_to_tokens(ids.tolist()))
    return spans


def test_a_piece_of_the_word_behind_the_answer_is_masked_too(make_tokenizer: MakeTokenizer) -> None:
    record = Record("a", "the [MASK]pe", ("antelo", "antelo"), 0)
    assert hidden(make_tokenizer("wordpiece"), record)[0] == ["ante", "##lo", "##pe"]
    for by_words in (False, True):
        encoder = LikelihoodEncoder(make_tokenizer("wordpiece"), by_words=by_words)
        assert encoder.num_tokens([record]) == [[2, 2]]


def test_what_is_cut_off_is_not_masked(make_tokenizer: MakeTokenizer) -> None:
    record = Record("a", "the the the the [MASK] of of of", ("antelope", "dog"), 0)
    tokenizer = make_tokenizer("wordpiece")
    assert hidden(tokenizer, record, max_length=6)[:3] == hidden(tokenizer, record)[:3]
    inside = Record("a", "the the the the [MASK]pe", ("antelo", "dog"), 0)
    assert hidden(tokenizer, inside, max_length=4)[0] == ["ante", "##lo"]


def test_letters_of_the_stem_in_the_tokens_of_some_choices_are_noticed(
    make_tokenizer: MakeTokenizer,
) -> None:
    # "smaller" is one entry; "small" and "?" are two.
    uneven = Record("u", "a small[MASK] cat", ("er", "?"), 0, position=3)
    even = [
        Record("e", "a [MASK] cat", ("smaller", "older"), 0),
        Record("b", "a small[MASK] cat", ("er", "er"), 0),
        Record("s", "a small[MASK]cat", ("?", "."), 0),
    ]
    notice = (
        "1 of 4 items have a token that spans stem and answer for one choice and not for another "
        "(first: u@3), so letters of the stem are scored with some choices alone; a space between "
        "stem and answer avoids it"
    )
    for encoder in (LikelihoodEncoder, ContinuationEncoder):
        assert encoder(make_tokenizer("wordpiece")).encode([*even, uneven]).notices == (notice,)
        assert encoder(make_tokenizer("wordpiece")).encode(even).notices == ()
    # Behind the answer too, where both sides are read.
    behind = Record("u", "a [MASK]er cat", ("small", "?"), 0, position=3)
    masked = LikelihoodEncoder(make_tokenizer("wordpiece")).encode([*even, behind])
    assert masked.notices == (notice,)


@pytest.mark.parametrize(
    ("words", "ends"),
    [([0, 0, 1], [2, 2, 3]), ([None, None, 0], [1, 2, 3]), ([0, 0, 0], [2, 2, 3])],
)
def test_words_end_where_the_tokenizer_says_or_a_space_is(
    words: list[int | None], ends: list[int]
) -> None:
    assert word_ends("ab c", [(0, 1), (1, 2), (3, 4)], words) == ends
    assert word_ends("", [], []) == []
