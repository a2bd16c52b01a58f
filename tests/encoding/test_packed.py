from __future__ import annotations

from typing import Any

import pytest
import torch

from probelight.encoding.packed import PackedEncoder, visible
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
    batch = PackedEncoder(tokenizer).encode([record]).collate([0])
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
    batch = PackedEncoder(tokenizer, reads_end=True).encode(records).collate([0, 1])
    ends = torch.stack([batch["read_row"], batch["read_place"]], dim=1)[batch["ends"][:, 0]]
    last = [batch["input_ids"][row, at].item() for row, at in ends.tolist()]
    assert words(tokenizer, last) == ["cat", "is", "is", "cat"]
    assert "gold" not in batch


def test_without_packing_each_text_is_a_sequence(tokenizer: Any) -> None:
    record = Record("1", "the dog", ("is larger", "cat"), 0)
    batch = PackedEncoder(tokenizer, packs=False).encode([record]).collate([0])
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
        [1, 1, 0, 0, 0, 1],  # padding, which nobody reads
    ]
    assert mask.min() == torch.finfo(torch.float32).min
