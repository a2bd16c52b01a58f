"""MC-QA encoding: the pairs are exactly those the tokenizer itself would make."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from probelight.encoding.encoded_set import PADDING_ITEM
from probelight.encoding.sentence import SentenceChoiceEncoder
from probelight.io.errors import RecordError
from probelight.probes.record import Record

TWO = Record("two", "which is larger ?", ("a cat", "the dog"), 0, position=1)
FIVE = Record("five", "which is the best word ?", ("a", "the", "of", "is", "not"), 4, position=2)
MASKED = Record("masked", "The dog is [MASK] than a cat.", ("older", "younger"), 1, position=3)


def test_pairs_are_the_tokenizers_own(tokenizer: Any) -> None:
    encoded = SentenceChoiceEncoder(tokenizer).encode([TWO, FIVE])
    batch = encoded.collate([0, 1])
    for row, record in enumerate((TWO, FIVE)):
        for column, choice in enumerate(record.choices):
            pair = batch["pair_index"][row, column]
            real = batch["attention_mask"][pair].bool()
            for name, value in tokenizer([record.stem], [choice]).items():
                assert batch[name][pair][real].tolist() == value[0]
    assert ("token_type_ids" in batch) == ("token_type_ids" in tokenizer.model_input_names)
    assert batch["labels"].tolist() == [0, 4]
    assert batch["choice_mask"].tolist() == [[True, True, False, False, False], [True] * 5]
    assert encoded.num_sequences.tolist() == [2, 5]
    tokenizer.model_max_length = 10
    batch = SentenceChoiceEncoder(tokenizer, max_length=256).encode([FIVE]).collate([0])
    assert batch["input_ids"].shape[1] <= 10


@pytest.mark.parametrize("side", ["right", "left"])
def test_truncation_is_longest_first(tokenizer: Any, side: str) -> None:
    tokenizer.truncation_side = side
    words = random.Random(0).choices(["cat", "dog", "older", "size", "word"], k=14)
    max_length = 12
    encoder = SentenceChoiceEncoder(tokenizer, max_length=max_length)
    for first, second in itertools.product(range(1, 14), range(14)):
        stem, choice = " ".join(words[:first]), " ".join(words[::-1][:second])
        encoding = tokenizer([stem], [choice], truncation="longest_first", max_length=max_length)
        encoded = encoder.encode([Record("t", stem, (choice, "cat"), 0)])
        batch = encoded.collate([0])
        pair = batch["pair_index"][0, 0]
        for name, value in encoding.items():
            assert batch[name][pair].tolist()[: len(value[0])] == value[0]
        assert encoded.lengths[0] == batch["input_ids"].shape[1] <= max_length
        length = len(tokenizer([stem], [choice])["input_ids"][0])
        cat_length = len(tokenizer([stem], ["cat"])["input_ids"][0])
        assert bool(encoded.notices) == (max(length, cat_length) > max_length)


@pytest.mark.thorough
def test_a_slow_tokenizer_gives_the_odd_token_to_the_question(
    make_tokenizer: Callable[..., Any],
) -> None:
    tokenizer = make_tokenizer("characters")
    assert not tokenizer.is_fast
    for first, second, max_length in itertools.product((3, 9, 12), (2, 9, 14), (15, 16)):
        record = Record("t", "q" * first, ("a" * second, "b"), 0)
        batch = (
            SentenceChoiceEncoder(tokenizer, max_length=max_length).encode([record]).collate([0])
        )
        expected = tokenizer(
            [record.stem], [record.choices[0]], truncation="longest_first", max_length=max_length
        )["input_ids"][0]
        assert batch["input_ids"][batch["pair_index"][0, 0]].tolist()[: len(expected)] == expected


def test_cuts_are_counted_by_question(tokenizer: Any) -> None:
    long = Record("long", "cat " * 30, ("dog", "older"), 0)
    encoded = SentenceChoiceEncoder(tokenizer, max_length=12).encode([long, TWO, long])
    (notice,) = encoded.notices
    assert notice.startswith("2 of 3 questions were cut to 12 tokens per pair")


def test_empty_choices_are_scored_like_others_and_said(tokenizer: Any) -> None:
    encoded = SentenceChoiceEncoder(tokenizer, num_choices=5).encode([TWO, FIVE])
    batch = encoded.collate([0, 1])
    assert batch["choice_mask"].all()
    assert batch["choice_mask"].shape == (2, 5)
    empty = batch["pair_index"][0, 2:]
    assert len(set(empty.tolist())) == 1  # one forward for the three of them
    expected = tokenizer([TWO.stem], [""])["input_ids"][0]
    assert batch["input_ids"][empty[0]][: len(expected)].tolist() == expected
    assert encoded.num_sequences.tolist() == [5, 5]
    # Chance of the real choices is (1/2 + 1/5) / 2.
    assert encoded.notices == (
        "1 of 2 questions have fewer than 5 choices and were filled up with empty ones, which "
        "compete (num_choices 5): chance is 20.0% among all choices, 35.0% among the real ones",
    )
    with pytest.raises(RecordError, match=r"five@2: 5 choices, more than num_choices=4"):
        SentenceChoiceEncoder(tokenizer, num_choices=4).encode([TWO, FIVE])
    with pytest.raises(ValueError, match="no room"):
        SentenceChoiceEncoder(tokenizer, max_length=4)


def test_distinct_pairs_are_encoded_once(tokenizer: Any) -> None:
    again = Record("again", TWO.stem, ("the dog", "a"), 1)
    encoded = SentenceChoiceEncoder(tokenizer).encode([TWO, again])
    batch = encoded.collate([0, 1, PADDING_ITEM, 0])
    assert batch["input_ids"].shape[0] == 3
    assert batch["pair_index"][0, 1] == batch["pair_index"][1, 0]
    assert torch.equal(batch["pair_index"][2], batch["pair_index"][0])
    assert batch["weights"].tolist() == [1, 1, 0, 1]
    assert batch["item"].tolist() == [0, 1, PADDING_ITEM, 0]


def test_a_masked_sentence_is_a_question_too(tokenizer: Any) -> None:
    batch = SentenceChoiceEncoder(tokenizer).encode([MASKED]).collate([0])
    ids = batch["input_ids"][batch["pair_index"][0, 0]].tolist()
    assert ids.count(tokenizer.mask_token_id) == 1
    stem = MASKED.stem.replace("[MASK]", tokenizer.mask_token)
    expected = tokenizer([stem], ["older"])["input_ids"][0]
    assert ids[: len(expected)] == expected


@pytest.mark.parametrize(("side", "num_lost"), [("right", 1), ("left", 2)])
def test_a_mask_that_is_cut_off_is_counted(tokenizer: Any, side: str, num_lost: int) -> None:
    """The first has it at its end, the next two at their beginning, the last is not cut."""
    tokenizer.truncation_side = side
    long = " ".join(["dog"] * 20)
    stems = (f"{long} [MASK]", f"[MASK] {long}", f"cat [MASK] {long}", "cat [MASK] dog")
    records = [Record(str(i), stem, ("older", "younger"), 0) for i, stem in enumerate(stems)]
    encoded = SentenceChoiceEncoder(tokenizer, max_length=12).encode(records)
    assert f"{num_lost} of 4 questions lost their mask when they were cut" in encoded.notices
