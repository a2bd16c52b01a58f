from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from probelight.callbacks.step_seed import StepSeed


def test_a_step_draws_the_same_numbers_whatever_came_before(
    trainer_at: Callable[..., Any],
) -> None:
    seed = StepSeed(3)
    drawn = []
    for noise in (0, 1000):
        torch.rand(noise)
        seed.on_train_batch_start(trainer_at(0), None, None, 4)  # type: ignore[arg-type]
        drawn.append(torch.rand(5))
    assert torch.equal(drawn[0], drawn[1])


@pytest.mark.parametrize("other", ["seed", "epoch", "batch", "process"])
def test_seeds_epochs_micro_batches_and_processes_draw_other_numbers(
    other: str, trainer_at: Callable[..., Any]
) -> None:
    drawn = []
    for changed in (False, True):
        now = {name: int(changed and name == other) for name in ("seed", "epoch", "batch")}
        trainer = trainer_at(0)
        trainer.current_epoch = now["epoch"]
        trainer.global_rank = int(changed and other == "process")
        StepSeed(now["seed"]).on_train_batch_start(trainer, None, None, now["batch"])  # type: ignore[arg-type]
        drawn.append(torch.rand(5))
    assert not torch.equal(drawn[0], drawn[1])
