"""MC-MLM encoding: which token stands for an answer, what is refused, what is cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from probelight.encoding.masked import MaskedChoiceEncoder
from probelight.io.errors import RecordError
from probelight.probes.record import Record

INSIDE = Record("in", "The dog is [MASK] than a cat.", ("older", "younger"), 1, position=1)
START = Record("start", "[MASK] is the older.", ("first", "second", "third"), 0, position=2)
BRACKET = Record("bracket", "he was ([MASK]) ready", ("not", "really"), 0, position=3)
SPLIT = Record("split", "a [MASK] is larger", ("cat", "antelope"), 0, position=4)
UNKNOWN = Record("unknown", "a [MASK] is larger", ("zebra", "dog"), 1, position=5)

EXPECTED = {
    "wordpiece": [["older", "younger"], ["first", "second", "third"], ["not", "really"]],
    "byte_bpe": [["Ġolder", "Ġyounger"], ["first", "second", "third"], ["not", "really"]],
    "sentencepiece": [["▁older", "▁younger"], ["▁first", "▁second", "▁third"], None],
}


def test_an_answer_is_the_token_it_would_be_in_the_sentence(kind: str, tokenizer: Any) -> None:
    records = [INSIDE, START, BRACKET]
    encoded = MaskedChoiceEncoder(tokenizer, multi_token="skip").encode(records)
    batch = encoded.collate(range(len(encoded)))
    for row, position in enumerate(encoded.positions):
        ids = batch["candidate_ids"][row][batch["choice_mask"][row]].tolist()
        assert tokenizer.convert_ids_to_tokens(ids) == EXPECTED[kind][position]
    # The same width alone, so that scores of all batches can be stacked.
    assert encoded.collate([0])["candidate_ids"].shape == (1, 3)
    # SentencePiece has no "not" that follows a bracket without a space.
    assert [s.name for s in encoded.skipped] == (["bracket@3"] if kind == "sentencepiece" else [])


@pytest.mark.parametrize("record", [INSIDE, START])
def test_inputs_are_the_tokenizers_own(tokenizer: Any, record: Record) -> None:
    batch = MaskedChoiceEncoder(tokenizer).encode([record]).collate([0])
    encoding = tokenizer(record.stem.replace("[MASK]", tokenizer.mask_token), return_tensors="pt")
    assert set(encoding) == set(batch) & {"input_ids", "attention_mask", "token_type_ids"}
    for name, value in encoding.items():
        assert torch.equal(batch[name], value)
    assert batch["input_ids"][0, batch["mask_position"][0]] == tokenizer.mask_token_id


def test_a_mask_that_leaves_the_space_makes_no_difference(
    make_tokenizer: Callable[..., Any],
) -> None:
    eats = MaskedChoiceEncoder(make_tokenizer("byte_bpe")).encode([INSIDE]).collate([0])
    leaves = make_tokenizer("byte_bpe", mask_takes_space=False)
    collated = MaskedChoiceEncoder(leaves).encode([INSIDE]).collate([0])
    for name, value in eats.items():
        assert torch.equal(collated[name], value)
    # The tokenizer by itself would leave a lone space before the mask.
    input_ids = leaves(INSIDE.stem.replace("[MASK]", leaves.mask_token))["input_ids"]
    assert len(input_ids) == collated["input_ids"].shape[1] + 1


def test_a_split_candidate_is_an_error_that_names_it(make_tokenizer: Callable[..., Any]) -> None:
    encoder = MaskedChoiceEncoder(make_tokenizer("wordpiece"))
    with pytest.raises(RecordError) as error:
        encoder.encode([INSIDE, SPLIT])
    for phrase in ("split@4", "'antelope'", "3 tokens", "'ante', '##lo', '##pe'", "1 of 2"):
        assert phrase in str(error.value)
    with pytest.raises(RecordError, match=r"unknown@5.*'zebra' is not in the vocabulary"):
        encoder.encode([UNKNOWN])


def test_skip_leaves_out_counts_and_lists(make_tokenizer: Callable[..., Any]) -> None:
    encoder = MaskedChoiceEncoder(make_tokenizer("wordpiece"), multi_token="skip")
    encoded = encoder.encode([SPLIT, INSIDE, UNKNOWN, START])
    assert encoded.positions == [1, 3]
    assert [(s.position, s.name) for s in encoded.skipped] == [(0, "split@4"), (2, "unknown@5")]
    assert "antelope" in encoded.skipped[0].reason
    assert encoded.needs_pll == []
    assert encoded.notices == (
        "2 of 4 records were skipped, because a candidate is not one vocabulary item: "
        "split@4, unknown@5",
    )
    # An item is named by its place among the records given, not among those kept.
    assert encoded.collate([0, 1])["item"].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("stem", "message"),
    [
        ("no blank at all", "m@9: 0 "),
        ("a [MASK] and a [MASK]", "m@9: 2 "),
        ("a <mask> is [MASK]", "m@9.*2 mask tokens"),
    ],
)
def test_one_mask_is_needed(make_tokenizer: Callable[..., Any], stem: str, message: str) -> None:
    tokenizer = make_tokenizer("byte_bpe")
    encoder = MaskedChoiceEncoder(tokenizer)
    assert len(encoder.encode([])) == 0
    with pytest.raises(RecordError, match=message):
        encoder.encode([Record("m", stem, ("older", "younger"), 0, position=9)])
    tokenizer.mask_token = None
    with pytest.raises(ValueError, match="no mask token"):
        MaskedChoiceEncoder(tokenizer)


@pytest.mark.parametrize("max_length", [4, 7, 8, 40])
@pytest.mark.parametrize("words_before", [0, 1, 5, 30])
@pytest.mark.parametrize("words_after", [1, 4, 30])
def test_cutting_keeps_the_mask_and_what_is_near_it(
    tokenizer: Any, max_length: int, words_before: int, words_after: int
) -> None:
    stem = "cat " * words_before + "[MASK]" + " dog" * words_after
    encoded = MaskedChoiceEncoder(tokenizer, max_length=max_length).encode(
        [Record("long", stem, ("older", "younger"), 0)]
    )
    batch = encoded.collate([0])
    ids, at = batch["input_ids"][0], int(batch["mask_position"][0])
    assert ids[at] == tokenizer.mask_token_id
    num_before, num_after = at - 1, len(ids) - at - 2
    assert len(ids) == min(max_length, words_before + words_after + 3) == encoded.lengths[0]
    # The side with more text is cut; a side is cut at all only down to the size of the other.
    assert num_before == words_before or num_before >= num_after - 1
    assert num_after == words_after or num_after >= num_before - 1
    assert bool(encoded.notices) == (words_before + words_after + 3 > max_length)
    if encoded.notices:
        assert encoded.notices[0].startswith("1 of 1 sentences were cut to")


def test_a_check_keeps_what_encoding_keeps(tokenizer: Any) -> None:
    records = [SPLIT, INSIDE, UNKNOWN, START, BRACKET]
    for multi_token in ("skip", "pseudo_log_likelihood"):
        encoder = MaskedChoiceEncoder(tokenizer, multi_token=multi_token)
        assert encoder.check(records) == list(encoder.encode(records).positions)
    with pytest.raises(RecordError, match=r"antelope.* tokens.*answer must be one vocabulary item"):
        MaskedChoiceEncoder(tokenizer).check(records)
