"""Batches of encoded items: padding, absent choices and distinct texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from probelight.encoding.encoded_set import (
    PADDING_ITEM,
    EncodedSet,
    Ids,
    Padding,
    white_space_notice,
)
from probelight.probes.record import Record

PADDING = Padding(token_id=9, type_id=3, with_types=True)


@dataclass(frozen=True, kw_only=True)
class Numbers(EncodedSet):
    """Its only input is the number of the item."""

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        return {"number": torch.from_numpy(items)}


def test_a_batch_names_the_records_and_holds_copies_that_weigh_nothing() -> None:
    numbers = Numbers(
        labels=np.array([1, 0, 1]),
        lengths=np.array([4, 5, 6]),
        num_sequences=np.ones(3, dtype=np.int64),
        positions=[0, 2, 5],
        skipped=[],
        needs_pll=[1, 3, 4],
        notices=(),
    )
    batch = {
        name: values.tolist()
        for name, values in numbers.collate([2, PADDING_ITEM, 1, PADDING_ITEM]).items()
    }
    assert batch == {
        "number": [2, 2, 1, 2],
        "labels": [1, 1, 0, 1],
        "weights": [1.0, 0.0, 1.0, 0.0],
        "item": [5, PADDING_ITEM, 2, PADDING_ITEM],
    }
    alone = numbers.collate([PADDING_ITEM])
    assert [alone[n].tolist() for n in ("number", "weights", "item")] == [[0], [0], [PADDING_ITEM]]


def test_sequences_are_filled_up_on_the_right() -> None:
    long = np.array([5, 6, 7]), np.array([0, 1, 1])
    short = np.array([8]), np.array([0])
    batch = {name: values.tolist() for name, values in PADDING.apply([long, short]).items()}
    assert batch == {
        "input_ids": [[5, 6, 7], [8, 9, 9]],
        "attention_mask": [[1, 1, 1], [1, 0, 0]],
        "token_type_ids": [[0, 1, 1], [0, 3, 3]],
    }
    assert set(replace(PADDING, with_types=False).apply([short])) == {"input_ids", "attention_mask"}


def test_the_padding_of_a_tokenizer(make_tokenizer: Callable[..., Any]) -> None:
    tokenizer = make_tokenizer("wordpiece")
    assert Padding.of(tokenizer) == Padding(token_id=0, type_id=0, with_types=True)
    padding = Padding.of(make_tokenizer("byte_bpe"))
    assert padding == Padding(token_id=1, type_id=0, with_types=False)
    tokenizer.pad_token = None
    with pytest.raises(ValueError, match="no padding token; set pad_token"):
        Padding.of(tokenizer)


@pytest.mark.parametrize(
    ("stem", "choices", "is_said"),
    [
        ("A cat is", ("big", "small"), False),
        ("A cat is", (" big", " small", ""), False),  # one space is there anyway
        ("A cat is ", ("big", "small"), True),
        ("A cat is\n", ("big", "small"), True),
        ("A cat is", ("big", "small\t"), True),
        ("A cat is [MASK]. ", ("big", "small"), False),  # scored as it is
        ("", ("It is. ", "It are."), True),
        ("", ("It is.", " It are."), True),
    ],
)
def test_white_space_that_is_left_out_is_said(
    stem: str, choices: tuple[str, ...], is_said: bool
) -> None:
    clean = Record("0", "One", ("two", "three"), 0)
    notices = white_space_notice([clean, Record("1", stem, choices, 0, position=7)])
    assert [notice.partition(" items")[0] for notice in notices] == ["1 of 2"] * is_said
    assert all("(first: 1@7)" in notice for notice in notices)
