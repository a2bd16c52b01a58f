"""Batches as a function of seed and epoch, shards and budgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from probelight.datamodules.sampler import Budget, EpochBatchSampler
from probelight.encoding.batches import (
    PADDING_ITEM,
    Share,
    evaluation_batches,
    token_budget_batches,
)


def test_token_budget_by_hand() -> None:
    lengths = [5, 2, 9, 3, 30, 4]
    #                   order 1 3 5 0 | 2 | 4: 4 items x 5 tokens = 20, then 9 x 5 items = 45
    assert token_budget_batches(lengths, 20, [1, 3, 5, 0, 2, 4]) == [[1, 3, 5, 0], [2], [4]]
    assert token_budget_batches(lengths, 1, [0, 1]) == [[0], [1]]
    assert token_budget_batches(lengths, 20, []) == []


def test_token_budget_counts_sequences() -> None:
    # Items of 5 and 2 sequences: 7 x 4 = 28 tokens fit, a further 2 make 9 x 4 = 36.
    assert token_budget_batches([4, 3, 4], 28, [0, 1, 2], [5, 2, 2]) == [[0, 1], [2]]


@pytest.mark.parametrize("max_tokens", [1, 40, 200, 10_000])
@pytest.mark.parametrize("replicas", [1, 2, 3, 7])
def test_processes_measure_the_batches_of_one(max_tokens: int, replicas: int) -> None:
    lengths = np.random.default_rng(0).integers(3, 30, size=53)
    whole = evaluation_batches(lengths, max_tokens)
    shares = [
        evaluation_batches(lengths, max_tokens, share=Share(rank, replicas))
        for rank in range(replicas)
    ]
    assert len({len(share) for share in shares}) == 1
    real = [batch for share in shares for batch in share if batch != [PADDING_ITEM]]
    assert sorted(real) == sorted(whole)
    assert sorted(i for batch in whole for i in batch) == list(range(53))
    sizes = [lengths[batch].max() * len(batch) for batch in whole if len(batch) > 1]
    assert all(size <= max_tokens for size in sizes)
    assert [int(lengths[b].max()) for b in whole] == sorted(
        (int(lengths[b].max()) for b in whole), reverse=True
    )


def test_an_empty_set_has_no_batches() -> None:
    assert evaluation_batches([], 100, share=Share(1, 2)) == []


def test_epochs_are_permutations_fixed_by_seed_and_epoch() -> None:
    sampler = EpochBatchSampler(11, 3, seed=4)
    seen = []
    for epoch in (0, 1, 0):
        sampler.set_epoch(epoch)
        seen.append(list(sampler))
        assert sorted(i for batch in seen[-1] for i in batch) == list(range(11))
        assert [len(b) for b in seen[-1]] == [3, 3, 3, 2]
    assert seen[0] == seen[2] != seen[1]
    assert list(EpochBatchSampler(11, 3, seed=5)) != seen[0]


@pytest.mark.parametrize("max_tokens", [None, 40])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("replicas", [2, 3])
def test_shares_make_the_same_global_batches(
    max_tokens: int | None, shuffle: bool, replicas: int
) -> None:
    lengths = np.random.default_rng(1).integers(3, 20, size=31)
    options: dict[str, Any] = {
        "seed": 2,
        "budget": None if max_tokens is None else Budget(lengths, max_tokens),
        "shuffle": shuffle,
    }
    one = EpochBatchSampler(31, 6, **options)
    many = [
        EpochBatchSampler(31, 6, **options, share=Share(rank, replicas)) for rank in range(replicas)
    ]
    for sampler in (one, *many):
        sampler.set_epoch(3)
    shares = [list(sampler) for sampler in many]
    for index, batch in enumerate(one):
        joined = [i for share in shares for i in share[index]]
        assert [i for i in joined if i != PADDING_ITEM] == batch
        assert len({len(share[index]) for share in shares}) == 1


def test_a_batch_smaller_than_the_processes_leaves_some_only_padding() -> None:
    shares = [list(EpochBatchSampler(5, 4, shuffle=False, share=Share(r, 4))) for r in range(4)]
    assert [share[1] for share in shares] == [[4], [PADDING_ITEM], [PADDING_ITEM], [PADDING_ITEM]]


def test_what_can_not_be_planned_is_refused() -> None:
    with pytest.raises(ValueError, match="batch_size=6 is not a multiple of the 4 processes"):
        EpochBatchSampler(10, 6, share=Share(0, 4))
    # With a budget the batch size has no say.
    EpochBatchSampler(2, 6, budget=Budget([1, 1], 10), share=Share(0, 4))
    with pytest.raises(ValueError, match="needs the lengths"):
        EpochBatchSampler(10, 6, budget=Budget([1, 2], 100))
    with pytest.raises(ValueError, match="positive"):
        EpochBatchSampler(10, 0)


def test_the_number_of_processes_may_change_on_resume() -> None:
    state = EpochBatchSampler(12, 4, share=Share(0, 2)).plan
    assert EpochBatchSampler(12, 4).plan == state
