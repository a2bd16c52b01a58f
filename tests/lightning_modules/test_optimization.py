from __future__ import annotations

import pytest
import torch
from torch import nn

from probelight.lightning_modules.optimization import (
    adamw,
    adamw_groups,
    halved_on_plateau,
    slanted_triangular,
    trapezoid,
)


def test_biases_norms_and_frozen_parameters_are_not_decayed() -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 1))
    model[3].requires_grad_(False)
    decayed, plain = adamw_groups(model, 0.1)
    assert decayed["weight_decay"] == 0.1
    assert plain["weight_decay"] == 0.0
    assert [p.shape for p in decayed["params"]] == [torch.Size([5, 4]), torch.Size([4, 4])]
    assert [id(p) for p in plain["params"]] == [
        id(p) for p in (model[1].bias, model[2].weight, model[2].bias)
    ]


def test_a_group_without_parameters_is_left_out() -> None:
    model = nn.Linear(2, 1, bias=False)
    assert [group["weight_decay"] for group in adamw_groups(model, 0.1)] == [0.1]


def test_the_rate_is_a_share_of_its_peak_step_by_step() -> None:
    found = adamw(nn.Linear(2, 1), 0.5, 0.1, lambda step: 1 / (step + 1))
    rates = []
    for _ in range(3):
        rates.append(found["optimizer"].param_groups[0]["lr"])
        found["optimizer"].step()
        found["lr_scheduler"]["scheduler"].step()
    assert rates == pytest.approx([0.5, 0.25, 0.5 / 3])
    assert found["lr_scheduler"]["interval"] == "step"


def test_a_tied_weight_is_in_one_group_once() -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5))
    model[1].weight = model[0].weight
    assert sum(len(group["params"]) for group in adamw_groups(model, 0.1)) == 2


def test_the_slanted_triangle_rises_over_its_share_and_falls_to_0() -> None:
    """100 steps, 6% of warm-up: 1/6, 2/6, ... 1, then down by 1/94 a step."""
    factor = slanted_triangular(100, 0.06)
    assert [factor(step) for step in range(6)] == pytest.approx([i / 6 for i in range(1, 7)])
    assert factor(6) == pytest.approx(1.0)
    assert factor(53) == pytest.approx(47 / 94)
    assert factor(99) == pytest.approx(1 / 94)
    assert factor(100) == 0.0


@pytest.mark.parametrize("total", [1, 2, 3, 10])
def test_short_runs_train_in_every_step(total: int) -> None:
    factor = slanted_triangular(total)
    values = [factor(step) for step in range(total)]
    assert all(0.0 < value <= 1.0 for value in values)
    assert values[0] == 1.0


def test_the_trapezoid_has_a_plateau() -> None:
    factor = trapezoid(warmup_steps=4, total_steps=20, cooldown=0.5)
    assert [factor(step) for step in (0, 3, 10, 15, 19, 20)] == pytest.approx(
        [0.25, 1.0, 1.0, 0.5, 0.1, 0.0]
    )


def test_the_rate_is_halved_by_each_epoch_that_raises_nothing() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    found = halved_on_plateau(optimizer, "val/accuracy")
    assert found["lr_scheduler"]["monitor"] == "val/accuracy"
    scheduler = found["lr_scheduler"]["scheduler"]
    rates = []
    for accuracy in (0.5, 0.6, 0.6, 0.7, 0.65, 0.7):
        scheduler.step(accuracy)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [1, 1, 0.5, 0.5, 0.25, 0.125]


def test_without_a_metric_the_rate_is_constant() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    assert halved_on_plateau(optimizer, None) == {"optimizer": optimizer}
