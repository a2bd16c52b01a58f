from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from probelight.callbacks.learning_curve import LearningCurve


def test_the_curve_counts_examples(trainer_at: Callable[..., Any]) -> None:
    trainer = trainer_at(5, probe=0.5)
    trainer.callback_metrics |= {"val/loss": torch.tensor(9.0), "train/accuracy": torch.tensor(1.0)}
    LearningCurve(batch_size=16, num_train=80).on_validation_end(trainer, None)  # type: ignore[arg-type]
    values, step = trainer.loggers[0].logged[0]
    assert step == 4
    assert values == {"learning_curve/probe_accuracy": 0.5, "learning_curve/num_examples": 80.0}


def test_the_short_last_step_of_an_epoch_counts_what_it_has() -> None:
    curve = LearningCurve(batch_size=16, num_train=30)  # steps of 16 and 14
    assert [curve.num_examples(steps) for steps in range(7)] == [0, 16, 30, 46, 60, 76, 90]


def test_neither_a_sanity_check_nor_a_validation_without_accuracies_is_a_point(
    trainer_at: Callable[..., Any],
) -> None:
    curve = LearningCurve(batch_size=16, num_train=80)
    check, without = trainer_at(0, probe=0.5), trainer_at(5)
    check.sanity_checking = True
    for trainer in (check, without):
        curve.on_validation_end(trainer, None)  # type: ignore[arg-type]
        assert trainer.loggers[0].logged == []
