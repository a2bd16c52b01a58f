from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from probelight.encoding.causal import ContinuationEncoder
from probelight.encoding.packed import Packing, packed, visible
from probelight.probes.record import Record
from tests.fixtures.causal import causal_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return causal_tokenizer("llama")


def words(tokenizer: Any, ids: list[int]) -> list[str]:
    return [token.lstrip("▁") for token in tokenizer.convert_ids_to_tokens(ids)]


def test_choices_go_on_from_what_they_share(tokenizer: Any) -> None:
    record = Record("1", "which animal is larger", ("the cat", "the dog is", "the cat"), 1)
    [stem_ids] = [tokenizer(record.stem).input_ids]
    batch = ContinuationEncoder(tokenizer).encode([record]).collate([0])
    cat, dog, is_ = (tokenizer(word).input_ids[1] for word in ("cat", "dog", "is"))
    the = tokenizer("the").input_ids[1]
    size = len(stem_ids)  # of the stem, its <s> included
    # The last token of a choice is predicted and never read: "cat", and "is" behind "dog".
    assert batch["input_ids"].tolist() == [[*stem_ids, the, dog]]
    assert batch["segments"].tolist() == [[0] * (size + 1) + [2]]
    assert batch["position_ids"].tolist() == [[*range(size + 2)]]
    assert batch["pair_index"].tolist() == [[0, 1, 0]]
    assert batch["gold"].tolist() == [[the, cat, 0], [the, dog, is_]]
    assert batch["token_mask"].tolist() == [[True, True, False], [True] * 3]
    # The stem's last token predicts "the", which predicts what differs; "dog" predicts "is".
    places = torch.stack([batch["read_row"], batch["read_place"]], dim=1)[batch["reads"]]
    assert places[0, :2].tolist() == [[0, size - 1], [0, size]]
    assert places[1].tolist() == [[0, size - 1], [0, size], [0, size + 1]]


def test_with_a_head_the_last_token_is_read(tokenizer: Any) -> None:
    records = [
        Record("1", "which animal is larger", ("the cat", "the dog is"), 1),
        Record("2", "the dog", ("is", "cat"), 1),
    ]
    batch = (
        ContinuationEncoder(tokenizer, packing=Packing(reads_end=True))
        .encode(records)
        .collate([0, 1])
    )
    ends = torch.stack([batch["read_row"], batch["read_place"]], dim=1)[batch["ends"][:, 0]]
    last = [batch["input_ids"][row, at].item() for row, at in ends.tolist()]
    assert words(tokenizer, last) == ["cat", "is", "is", "cat"]
    assert "gold" not in batch


def test_without_packing_each_text_is_a_sequence(tokenizer: Any) -> None:
    record = Record("1", "the dog", ("is larger", "cat"), 0)
    batch = (
        ContinuationEncoder(tokenizer, packing=Packing(packs=False)).encode([record]).collate([0])
    )
    assert batch["input_ids"].shape[0] == 2
    assert set(batch["segments"].flatten().tolist()) == {0, -1}


def test_a_choice_sees_its_stem_and_no_other_choice() -> None:
    mask = visible(torch.tensor([[0, 0, 1, 2, 2, -1]]), torch.float32)
    assert mask.shape == (1, 1, 6, 6)
    assert (mask[0, 0] == 0).int().tolist() == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [1, 1, 0, 1, 0, 0],
        [1, 1, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 1],  # padding, which nobody reads
    ]
    # Hidden in any precision that autocast makes of it, and no row is only infinities.
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert mask.to(dtype).isfinite().all()
        assert (mask.to(dtype) + 30).softmax(dim=-1)[0, 0, 3].tolist() == pytest.approx(
            [1 / 3, 1 / 3, 0, 1 / 3, 0, 0], abs=1e-2
        )


# Two items about 1 2 3, one of which has three choices, and one about 1 2 4.
TEXTS = [
    np.array(text)
    for text in ([1, 2, 3, 5, 6], [1, 2, 3, 7], [1, 2, 3, 8, 9], [1, 2, 4, 5, 6], [1, 2, 4, 8, 6])
]
BEGINS = [3] * 5
ITEMS = [[0, 1], [2], [3, 4]]


def read_tokens(batch: dict[str, Any]) -> list[list[int]]:
    """The token that each place holds which predicts a token of an answer, text by text."""
    places = torch.stack([batch["read_row"], batch["read_place"]], dim=1)[batch["reads"]]
    tokens = batch["input_ids"][places[..., 0], places[..., 1]]
    return [row[mask].tolist() for row, mask in zip(tokens, batch["token_mask"], strict=True)]


def test_items_stand_behind_each_other_and_a_stem_of_several_once() -> None:
    batch = packed(TEXTS, BEGINS, ITEMS, Packing(row_tokens=9))
    # The last tokens, 6, 7 and 9, are only predicted.
    assert batch["input_ids"].tolist() == [[1, 2, 3, 5, 8], [1, 2, 4, 5, 8]]
    assert batch["position_ids"].tolist() == [[0, 1, 2, 3, 3], [0, 1, 2, 3, 3]]
    assert batch["segments"].tolist() == [[0, 0, 0, 1, 3], [0, 0, 0, 1, 2]]
    assert read_tokens(batch) == [[3, 5], [3], [3, 8], [4, 5], [4, 8]]
    together = packed(TEXTS, BEGINS, ITEMS, Packing(row_tokens=10))
    assert together["input_ids"].tolist() == [[1, 2, 3, 5, 8, 1, 2, 4, 5, 8]]
    assert together["position_ids"].tolist() == [[0, 1, 2, 3, 3] * 2]
    assert together["row_prefix"].tolist() == [-1]
    assert read_tokens(together) == read_tokens(batch)
    mask = (visible(together["segments"], torch.float32)[0, 0] == 0).int()
    assert mask[8].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 0]
    assert mask[9].tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 0, 1]
    assert mask[4].tolist() == [1, 1, 1, 0, 1, 0, 0, 0, 0, 0]


def test_without_room_for_another_there_is_a_row_per_item() -> None:
    batch = packed(TEXTS, BEGINS, ITEMS, Packing())
    sizes = (batch["segments"] >= 0).sum(dim=1).tolist()
    assert sizes == [4, 4, 5]
    assert read_tokens(batch) == [[3, 5], [3], [3, 8], [4, 5], [4, 8]]


def test_what_all_items_begin_with_is_a_prefix_before_their_rows() -> None:
    packing = Packing(reads_prefixes=True, min_prefix=2, row_tokens=6)
    batch = packed(TEXTS, BEGINS, ITEMS, packing)
    assert batch["prefix_ids"].tolist()[0] == [1, 2]
    assert batch["prefix_sizes"].tolist()[0] == 2
    assert batch["input_ids"].tolist() == [[3, 5, 8, 4, 5, 8]]
    assert batch["position_ids"].tolist() == [[2, 3, 3, 2, 3, 3]]
    assert batch["row_prefix"].tolist() == [0]
    assert read_tokens(batch) == [[3, 5], [3], [3, 8], [4, 5], [4, 8]]
    mask = (visible(batch["segments"], torch.float32, 2)[0, 0] == 0).int()
    assert mask[5].tolist() == [1, 1, 0, 0, 0, 1, 0, 1]
    too_long = packed(
        TEXTS, BEGINS, ITEMS, Packing(reads_prefixes=True, min_prefix=3, row_tokens=6)
    )
    assert too_long["row_prefix"].tolist() == [-1, -1]


def test_texts_in_rows_of_their_own_go_on_from_the_prefix_of_their_item() -> None:
    batch = packed(TEXTS, BEGINS, ITEMS, Packing(packs=False, reads_prefixes=True))
    assert batch["prefix_ids"].tolist()[:3] == [[1, 2]] * 3
    assert batch["row_prefix"].tolist() == [0, 0, 1, 2, 2]
    assert batch["input_ids"].tolist() == [[3, 0], [3, 5], [3, 8], [4, 5], [4, 8]]  # short first
    assert read_tokens(batch) == [[3, 5], [3], [3, 8], [4, 5], [4, 8]]
