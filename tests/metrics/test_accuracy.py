"""Weighted accuracy: numbers by hand, cuts into batches, padding, NaN, two processes."""

from __future__ import annotations

import math

import pytest
import torch
import torch.multiprocessing as mp

from probelight.metrics.accuracy import WeightedAccuracy

LOGITS = torch.tensor(
    [
        [2.0, 1.0, -math.inf],  # right
        [0.0, 1.0, 5.0],  # wrong
        [1.0, 1.0, 0.0],  # a tie of two: one half
        [1.0, 1.0, 0.0],  # ... for either of them
        [-9.0, -8.0, -7.0],  # right
        [3.0, 0.0, 0.0],  # padding
    ]
)
LABELS = torch.tensor([0, 1, 0, 1, 2, 0])
MASK = torch.tensor([[True, True, False], *[[True] * 3] * 5])
WEIGHTS = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])


def in_batches(size: int, *columns: torch.Tensor) -> float:
    metric = WeightedAccuracy()
    for batch in zip(*(column.split(size) for column in columns), strict=True):
        metric.update(*batch)
    return float(metric.compute())


@pytest.mark.parametrize("size", [1, 2, 4, 6])
def test_by_hand_whatever_the_batches(size: int) -> None:
    assert in_batches(size, LOGITS, LABELS, WEIGHTS, MASK) == 3 / 5
    weights = torch.tensor([0.5, 2.0, 0.25, 1.0, 0.25, 0.0])
    expected = (0.5 + 0.25 / 2 + 1.0 / 2 + 0.25) / 4.0
    assert in_batches(size, LOGITS, LABELS, weights, MASK) == expected


def test_nothing_counted_is_nan_and_reset_forgets() -> None:
    metric = WeightedAccuracy()
    metric.update(LOGITS, LABELS, torch.zeros(6), MASK)
    assert math.isnan(metric.compute().item())
    metric.update(LOGITS, LABELS, WEIGHTS, MASK)
    metric.reset()
    metric.update(LOGITS[:1], LABELS[:1], WEIGHTS[:1], MASK[:1])
    assert metric.compute().item() == 1.0


def test_a_nan_score_is_never_right() -> None:
    metric = WeightedAccuracy()
    nan, everywhere = torch.tensor([[2.0, math.nan, 1.0]]), torch.full((1, 3), math.nan)
    for scores in (nan, everywhere):
        metric.update(scores, torch.tensor([0]), torch.ones(1), torch.ones(1, 3, dtype=torch.bool))
    assert metric.compute().item() == 0.0


@pytest.mark.parametrize("score", [0.0, -math.inf, 7.0])
@pytest.mark.parametrize("num_choices", [2, 3, 5, 7, 63, 64, 65, 200])
def test_a_constant_output_scores_chance_where_the_gold_is_always_first(
    num_choices: int, score: float
) -> None:
    metric = WeightedAccuracy()
    mask = torch.ones(30, num_choices + 1, dtype=torch.bool)
    mask[:, -1] = False  # what an item does not have is no part of a tie
    for _ in range(3):
        labels = torch.zeros(30, dtype=torch.int64)
        metric.update(torch.full((30, num_choices + 1), score), labels, torch.ones(30), mask)
    assert metric.compute().item() == pytest.approx(1 / num_choices, rel=1e-6)


def test_thirds_are_summed_exactly_whatever_the_batches() -> None:
    """The sum is the correctly rounded one of the items' scores, as `math.fsum` gives it."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randint(0, 2, (500, 7), generator=generator).float()
    labels, mask = torch.randint(0, 7, (500,), generator=generator), torch.ones(500, 7).bool()
    best = logits == logits.amax(dim=1, keepdim=True)
    scores = [
        1 / int(row.sum()) if row[label] else 0.0 for row, label in zip(best, labels, strict=True)
    ]
    for size in (1, 13, 500):
        assert in_batches(size, logits, labels, torch.ones(500), mask) == math.fsum(scores) / 500


def _one_process(rank: int, address: str, results: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    metric = WeightedAccuracy()
    # An uneven cut: five items in two batches here, one item and its padding there.
    for items in ([slice(0, 2), slice(2, 4)], [slice(4, 6)])[rank]:
        metric.update(LOGITS[items], LABELS[items], WEIGHTS[items], MASK[items])
    torch.save(metric.compute(), f"{results}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.thorough
def test_two_processes_give_the_same_number(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("ddp")
    address = f"file://{folder}/rendezvous"
    mp.spawn(_one_process, args=(address, str(folder)), nprocs=2)  # type: ignore[no-untyped-call]
    for rank in range(2):
        assert torch.load(folder / f"{rank}.pt").item() == 3 / 5
