from __future__ import annotations

import torch

from probelight.lightning_modules.heads.plans import CachedItems, PlateauPlan


def test_some_items_keep_what_belongs_to_them() -> None:
    items = CachedItems(
        torch.tensor([[1.0], [2.0], [3.0]]),
        torch.tensor([[4, 5], [6, 7], [8, 9]]),
        torch.tensor([[True, True], [True, False], [True, True]]),
        torch.tensor([1, 0, 1]),
    )
    some = items.at(torch.tensor([2, 1, 2]))
    assert len(items) == len(some) == 3
    assert some.features[:, 0].tolist() == [3.0, 2.0, 3.0]
    assert some.candidates.tolist() == [[8, 9], [6, 7], [8, 9]]
    assert some.choice_mask.tolist() == [[True, True], [True, False], [True, True]]
    assert some.labels.tolist() == [1, 0, 1]


def test_the_plateau_is_the_authors() -> None:
    plan = PlateauPlan("mlp", 4e-4, 75)
    assert (plan.batch_size, plan.weight_decay, plan.max_grad_norm, plan.patience) == (
        16,
        0.1,
        10.0,
        10,
    )
