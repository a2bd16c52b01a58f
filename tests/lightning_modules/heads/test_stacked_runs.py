"""What the steps of stacked runs read, worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from probelight.lightning_modules.heads.plans import CachedItems
from probelight.lightning_modules.heads.stacked_runs import Sample

#                        words of the stack: 3, 5, 8 and 9 of the vocabulary are its rows 0 to 3
WORDS = torch.tensor([3, 5, 8, 9])
ITEMS = CachedItems(
    features=torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]),
    candidates=torch.tensor([[8, 3], [3, 8], [5, 0]]),
    choice_mask=torch.tensor([[True, True], [True, True], [True, False]]),
    labels=torch.tensor([0, 1, 0]),
)


def stack(num_runs: int) -> Any:
    return SimpleNamespace(
        mode="mlp",
        copies=[0] * num_runs,
        device=torch.device("cpu"),
        weight=torch.zeros(num_runs, 4, 2),
        rows_of=lambda items: torch.searchsorted(WORDS, items.candidates),
    )


def test_items_are_picked_as_the_orders_say() -> None:
    order = torch.tensor([[[0, 1], [1, 0]], [[1, 1], [0, 0]]])  # two runs of two epochs
    sample = Sample(stack(2), slice(0, 2), [ITEMS, ITEMS], order)
    picked = sample.features[sample.index][..., 0]
    assert picked.tolist() == [[[1.0, 2.0], [2.0, 1.0]], [[2.0, 2.0], [1.0, 1.0]]]
    assert sample.gold[..., 0].tolist() == [[[0, 1], [1, 0]], [[1, 1], [0, 0]]]
    assert sample.mask is None


def test_a_run_has_the_words_of_its_sample_alone() -> None:
    order = torch.tensor([[[0, 1]], [[2, 2]]])
    sample = Sample(stack(2), slice(0, 2), [ITEMS, ITEMS], order)
    assert sample.num_words == [2, 1]
    assert sample.words.tolist() == [[0, 2], [1, 1]]  # filled up with the last one
    # Item 0 has words 8 and 3, item 1 the other way round; item 2's second choice is none.
    assert sample.rows.tolist() == [[[[1, 0], [0, 1]]], [[[0, 0], [0, 0]]]]
    assert sample.mask is not None
    assert sample.mask[1].tolist() == [[[0.0, float("-inf")], [0.0, float("-inf")]]]


def test_an_optimiser_that_moves_every_word_has_all() -> None:
    sample = Sample(stack(1), slice(0, 1), [ITEMS], torch.tensor([[[0, 1]]]), all_words=True)
    assert sample.words.tolist() == [[0, 1, 2, 3]]
    assert sample.num_words == [4]
    assert sample.rows.tolist() == [[[[2, 0], [0, 2]]]]
