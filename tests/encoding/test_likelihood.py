from __future__ import annotations

from typing import Any

import pytest
import torch

from probelight.encoding.likelihood import LikelihoodEncoder
from probelight.io.errors import RecordError
from probelight.probes.record import Record

QA = Record("q", "which one", ("the cat", "dog"), 0)
MLM = Record("m", "a cat is [MASK] , not really .", ("much larger", "smaller"), 1)


def _answers(tokenizer: Any, encoded: Any, item: int) -> list[str]:
    """The text that is scored of each choice of an item."""
    batch = encoded.collate([item])
    exists = batch["choice_mask"][0]
    rows = batch["pair_index"][0][exists]
    return [
        tokenizer.decode(batch["input_ids"][row][batch["answer_mask"][row]]).strip() for row in rows
    ]


def test_exactly_the_answer_is_scored(tokenizer: Any) -> None:
    encoded = LikelihoodEncoder(tokenizer).encode([QA, MLM])
    assert _answers(tokenizer, encoded, 0) == ["the cat", "dog"]
    assert _answers(tokenizer, encoded, 1) == ["much larger", "smaller"]
    assert encoded.num_sequences.tolist() == [3, 3]
    assert encoded.labels.tolist() == [0, 1]
    assert encoded.notices == ()


def test_the_tokens_of_each_choice_are_counted_in_the_order_of_the_records(tokenizer: Any) -> None:
    three = Record("t", "which one", ("the cat", "dog", "a small dog"), 2)
    encoder = LikelihoodEncoder(tokenizer)
    expected = [
        [len(tokenizer(f" {choice}", add_special_tokens=False)["input_ids"]) for choice in choices]
        for choices in (three.choices, MLM.choices, QA.choices)
    ]
    assert encoder.num_tokens([three, MLM, QA]) == expected
    assert encoder.num_tokens([]) == []


def test_of_several_masks_the_last_is_the_place(tokenizer: Any) -> None:
    encoder = LikelihoodEncoder(tokenizer)
    batch = encoder.encode([Record("t", "[MASK] [MASK] .", ("dog",), 0)]).collate([0])
    assert batch["input_ids"][0].tolist() == tokenizer("[MASK] dog .")["input_ids"]
    assert tokenizer.decode(batch["input_ids"][batch["answer_mask"]]).strip() == "dog"


def test_the_tokens_are_those_of_the_running_text(tokenizer: Any) -> None:
    batch = LikelihoodEncoder(tokenizer).encode([MLM]).collate([0])
    for row, text in zip(
        batch["pair_index"][0],
        ("a cat is much larger , not really .", "a cat is smaller , not really ."),
        strict=True,
    ):
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


def test_padding_is_on_the_right_whatever_the_tokenizer_says(tokenizer: Any) -> None:
    expected = LikelihoodEncoder(tokenizer).encode([QA, MLM]).collate([0, 1])
    tokenizer.padding_side = "left"
    found = LikelihoodEncoder(tokenizer).encode([QA, MLM]).collate([0, 1])
    assert expected["attention_mask"][:, 0].all()
    for name, value in expected.items():
        assert torch.equal(found[name], value)


def test_a_long_text_is_cut_around_its_answer(tokenizer: Any) -> None:
    stem = "the " * 40 + "[MASK]" + " dog" * 40
    encoder = LikelihoodEncoder(tokenizer, max_length=12)
    encoded = encoder.encode([Record("l", stem, ("cat", "older"), 0)])
    batch = encoded.collate([0])
    assert batch["input_ids"].shape[1] == 12
    assert _answers(tokenizer, encoded, 0) == ["cat", "older"]
    assert encoded.notices == ("2 of 2 texts were cut to 12 tokens around their answer",)
    kept = tokenizer.decode(batch["input_ids"][0], skip_special_tokens=True).split()
    assert abs(kept.count("the") - kept.count("dog")) <= 1


def test_an_answer_that_does_not_fit_is_refused_by_name(tokenizer: Any) -> None:
    record = Record("long", "which one", ("the " * 20, "dog"), 0, position=7)
    with pytest.raises(RecordError, match=r"long@7: the choice 'the the .* more than fit"):
        LikelihoodEncoder(tokenizer, max_length=12).encode([record])


def test_an_answer_without_tokens_is_refused_by_name(tokenizer: Any) -> None:
    record = Record("none", "which one", ("", "dog"), 1, position=3)
    with pytest.raises(RecordError, match="none@3: the choice '' has no tokens"):
        LikelihoodEncoder(tokenizer).encode([record])


def test_padding_items_are_copies_of_weight_0(tokenizer: Any) -> None:
    batch = LikelihoodEncoder(tokenizer).encode([QA]).collate([0, -1])
    assert batch["weights"].tolist() == [1.0, 0.0]
    assert torch.equal(batch["pair_index"][0], batch["pair_index"][1])


def test_without_a_stem_the_whole_choice_is_scored(tokenizer: Any) -> None:
    sentences = ("a cat is older .", "the cats is older .", "zebra", "! é")
    encoded = LikelihoodEncoder(tokenizer).encode([Record("p", "", (*sentences[:3], " ! é "), 0)])
    batch = encoded.collate([0])
    for row, text in zip(batch["pair_index"][0], sentences, strict=True):
        scored = batch["input_ids"][row][batch["answer_mask"][row]].tolist()
        assert scored == tokenizer(text, add_special_tokens=False)["input_ids"]
        length = int(batch["attention_mask"][row].sum())
        assert batch["input_ids"][row][:length].tolist() == tokenizer(text)["input_ids"]
