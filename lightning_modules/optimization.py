"""Optimiser groups and learning-rate schedules shared by the modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau


def adamw_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Trainable parameters in two groups: biases and LayerNorm weights carry no weight decay."""
    norms = {
        id(parameter)
        for part in module.modules()
        if "norm" in type(part).__name__.lower()
        for parameter in part.parameters(recurse=False)
    }
    decayed: list[nn.Parameter] = []
    plain: list[nn.Parameter] = []
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            exempt = name.endswith("bias") or id(parameter) in norms
            (plain if exempt else decayed).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": plain, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def adamw(
    module: nn.Module,
    learning_rate: float,
    weight_decay: float,
    schedule: Callable[[int], float],
    fused: bool = True,
) -> dict[str, Any]:
    """Return AdamW whose rate is a share of the peak rate by step; for `configure_optimizers`."""
    groups = adamw_groups(module, weight_decay)
    optimizer = AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), fused=fused)
    scheduler = {"scheduler": LambdaLR(optimizer, schedule), "interval": "step"}
    return {"optimizer": optimizer, "lr_scheduler": scheduler}


def trapezoid(warmup_steps: int, total_steps: int, cooldown: float) -> Callable[[int], float]:
    """Linear warm-up, a plateau, and a linear fall to 0 over the last `cooldown` share."""

    def factor(step: int) -> float:
        up = min(1.0, (step + 1) / max(1, warmup_steps))
        down = (total_steps - step) / max(1.0, cooldown * total_steps)
        return max(0.0, min(up, down, 1.0))

    return factor


def slanted_triangular(total_steps: int, warmup_share: float = 0.06) -> Callable[[int], float]:
    """Linear warm-up over `warmup_share` of the steps, then a linear fall to 0 (Talmor 2020)."""
    warmup_steps = max(1, round(warmup_share * total_steps))
    return trapezoid(warmup_steps, total_steps, 1.0 - warmup_steps / max(1, total_steps))


def halved_on_plateau(optimizer: Optimizer, monitor: str | None) -> dict[str, Any]:
    """Halve the rate after each epoch that did not raise a metric (the baselines of Talmor 2020).

    Args:
        optimizer: The optimiser.
        monitor: A metric of the validation, higher is better; None leaves the rate constant.

    Returns:
        What Lightning's `configure_optimizers` returns.
    """
    if monitor is None:
        return {"optimizer": optimizer}
    return {
        "optimizer": optimizer,
        "lr_scheduler": {"scheduler": halving(optimizer), "interval": "epoch", "monitor": monitor},
    }


def halving(optimizer: Optimizer) -> ReduceLROnPlateau:
    """Return the authors' scheduler: half the rate after each epoch that is no better."""
    return ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=0)
