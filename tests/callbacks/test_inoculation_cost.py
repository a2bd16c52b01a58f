from __future__ import annotations

from collections.abc import Callable
from typing import Any

from probelight.callbacks.aggregate_checkpoint import AGGREGATE, ORIGINAL, PROBE
from probelight.callbacks.inoculation_cost import InoculationCost


def test_the_cost_is_what_the_original_task_lost(trainer_at: Callable[..., Any]) -> None:
    cost = InoculationCost({PROBE: 0.25, ORIGINAL: 0.75}, interpretable=True)
    start = trainer_at(0)
    cost.on_train_start(start, None)  # type: ignore[arg-type]
    before = {"before/probe_accuracy": 0.25, "before/original_accuracy": 0.75}
    assert start.loggers[0].logged == [(before, 0)]
    after = trainer_at(7, probe=0.5, original=0.5)
    cost.on_validation_end(after, None)  # type: ignore[arg-type]
    assert after.loggers[0].logged == [({"inoculation_cost": 0.25}, 6)]


def test_the_summary_is_of_the_epoch_that_is_kept() -> None:
    cost = InoculationCost({PROBE: 0.25, ORIGINAL: 0.75}, interpretable=True)
    best = {PROBE: 0.5, ORIGINAL: 0.625, AGGREGATE: 0.5625, "epoch": 2.0, "step": 40.0}
    assert cost.summary(best) == {
        PROBE: 0.5,
        ORIGINAL: 0.625,
        AGGREGATE: 0.5625,
        "inoculation_cost": 0.125,
        "best_epoch": 2.0,
        "cost_interpretable": 1.0,
    }
    assert cost.summary(None) == {}


def test_a_cost_that_is_not_interpretable_is_not_logged(trainer_at: Callable[..., Any]) -> None:
    cost = InoculationCost({PROBE: 0.25, ORIGINAL: 0.25}, interpretable=False)
    after = trainer_at(7, probe=0.5, original=0.5)
    cost.on_validation_end(after, None)  # type: ignore[arg-type]
    assert after.loggers[0].logged == []
    best = {PROBE: 0.5, ORIGINAL: 0.25, AGGREGATE: 0.375, "epoch": 2.0, "step": 40.0}
    said = cost.summary(best)
    assert said["cost_interpretable"] == 0.0
    assert "inoculation_cost" not in said


def test_a_resumed_run_does_not_log_its_start_again(trainer_at: Callable[..., Any]) -> None:
    trainer = trainer_at(3)
    cost = InoculationCost({PROBE: 0.25, ORIGINAL: 0.75}, interpretable=True)
    cost.on_train_start(trainer, None)  # type: ignore[arg-type]
    assert trainer.loggers[0].logged == []


def test_a_sanity_check_is_no_validation(trainer_at: Callable[..., Any]) -> None:
    trainer = trainer_at(0, probe=0.5, original=0.5)
    trainer.sanity_checking = True
    cost = InoculationCost({PROBE: 0.25, ORIGINAL: 0.75}, interpretable=True)
    cost.on_validation_end(trainer, None)  # type: ignore[arg-type]
    assert trainer.loggers[0].logged == []
