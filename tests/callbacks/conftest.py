from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from probelight.callbacks.aggregate_checkpoint import AGGREGATE, ORIGINAL, PROBE


class Logger:
    def __init__(self) -> None:
        self.logged: list[tuple[dict[str, float], int]] = []

    def log_metrics(self, values: dict[str, float], step: int) -> None:
        self.logged.append((values, step))


@pytest.fixture
def trainer_at() -> Callable[..., Any]:
    """Makes what a callback reads of a Trainer: `trainer_at(step, probe=0.5, original=0.5)`."""

    def make(step: int, **scores: float) -> Any:
        names = {"probe": PROBE, "original": ORIGINAL, "aggregate": AGGREGATE}
        metrics = {names[k]: torch.tensor(v, dtype=torch.float64) for k, v in scores.items()}
        return SimpleNamespace(
            sanity_checking=False,
            state=SimpleNamespace(fn="fit"),
            callback_metrics=metrics,
            global_step=step,
            current_epoch=0,
            global_rank=0,
            is_global_zero=True,
            strategy=None,
            loggers=[Logger()],
        )

    return make
