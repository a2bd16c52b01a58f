from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from probelight.callbacks.aggregate_checkpoint import AGGREGATE, ORIGINAL, PROBE
from probelight.callbacks.run_metrics import (
    InoculationCost,
    LearningCurve,
    RunMetrics,
    StepMetrics,
    log_every,
)
from tests.callbacks.line import Line, batches


def test_who_looks_at_a_run_need_not_wait_for_its_next_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([0.0, 9.0, 10.0, 10.0, 19.0])  # made, logged, logged and written, logged
    monkeypatch.setattr("probelight.callbacks.run_metrics.time.monotonic", lambda: next(seconds))
    path = tmp_path / "metrics.csv"
    metrics, texts = RunMetrics(path), []
    for step in range(3):
        metrics.log_metrics({"train/loss": 0.5, "epoch": 0}, step)
        texts.append(path.read_text() if path.exists() else "")
    text = "step,epoch,metric,value\n0,0,train/loss,0.5\n1,0,train/loss,0.5\n"
    assert texts == ["", text, text]


def test_a_resumed_run_leaves_the_file_of_an_undisturbed_one(tmp_path: Path) -> None:
    undisturbed = RunMetrics(tmp_path / "a.csv")
    for step in range(4):
        undisturbed.log_metrics({"loss": step / 10, "epoch": 0}, step)
    undisturbed.save()
    killed = RunMetrics(tmp_path / "b.csv")
    for step in range(3):  # the state was saved behind step 1, step 2 is logged and lost
        killed.log_metrics({"loss": step / 10, "epoch": 0}, step)
    killed.save()
    resumed = RunMetrics(tmp_path / "b.csv")
    resumed.resume_from(2)
    for step in (2, 3):
        resumed.log_metrics({"loss": step / 10, "epoch": 0}, step)
    resumed.save()
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()


def test_a_damaged_file_is_named_before_it_is_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("step,epoch\n")
    with pytest.raises(ValueError, match=r"metrics.csv: not all lines .*; remove "):
        RunMetrics(tmp_path / "metrics.csv")


class Falling(Line):
    """Its rate halves with each step; the bias has one of its own if it is told so."""

    def __init__(self, bias_rate: float = 0.5) -> None:
        super().__init__()
        self.bias_rate = bias_rate

    def configure_optimizers(self) -> Any:
        groups = [
            {"params": [self.layer.weight]},
            {"params": [self.layer.bias], "lr": self.bias_rate},
        ]
        optimizer = torch.optim.SGD(groups, lr=0.5)
        rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rate, "interval": "step"}}


@pytest.mark.parametrize(
    ("every", "bias_rate", "expected"),
    [
        (None, 0.5, [(0, "lr-SGD", 0.5), (1, "lr-SGD", 0.25), (2, "lr-SGD", 0.125)]),
        (2, 0.5, [(1, "lr-SGD", 0.25)]),
        (3, 0.25, [(2, "lr-SGD/pg1", 0.125), (2, "lr-SGD/pg2", 0.0625)]),
        (0, 0.5, []),
    ],
)
def test_the_rate_of_a_step_is_logged_once_however_many_batches_it_is_of(
    every: int | None,
    bias_rate: float,
    expected: list[tuple[int, str, float]],
    quiet_trainer: Callable[..., pl.Trainer],
    tmp_path: Path,
) -> None:
    metrics = RunMetrics(tmp_path / "metrics.csv")
    trainer = quiet_trainer(
        logger=[metrics], callbacks=[StepMetrics(every)], accumulate_grad_batches=2
    )
    trainer.fit(Falling(bias_rate), batches(6))
    assert [(step, name, value) for step, _, name, value in metrics.rows] == expected
    assert not trainer.callback_metrics  # a rate is no score


def test_a_short_fit_is_logged_at_more_of_its_steps_and_a_long_one_at_the_same() -> None:
    steps = [1, 99, 100, 249, 250, 499, 500, 100_000, float("inf")]
    assert [log_every(number) for number in steps] == [1, 1, 2, 2, 5, 5, 10, 10, 10]


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


def test_a_sanity_check_a_validation_without_accuracies_and_a_resumed_start_are_not_logged(
    trainer_at: Callable[..., Any],
) -> None:
    curve: Any = LearningCurve(batch_size=16, num_train=80)
    cost: Any = InoculationCost({PROBE: 0.25, ORIGINAL: 0.75}, interpretable=True)
    check, without = trainer_at(0, probe=0.5, original=0.5), trainer_at(5)
    check.sanity_checking = True
    for trainer in (check, without):
        curve.on_validation_end(trainer, None)
        cost.on_validation_end(trainer, None)
    cost.on_train_start(without, None)
    assert check.loggers[0].logged == without.loggers[0].logged == []


def test_the_cost_is_what_the_original_task_lost(trainer_at: Callable[..., Any]) -> None:
    cost = InoculationCost({PROBE: 0.25, ORIGINAL: 0.75}, interpretable=True)
    start = trainer_at(0)
    cost.on_train_start(start, None)  # type: ignore[arg-type]
    baseline = {"before/probe_accuracy": 0.25, "before/original_accuracy": 0.75}
    assert start.loggers[0].logged == [(baseline, 0)]
    trainer = trainer_at(7, probe=0.5, original=0.5)
    cost.on_validation_end(trainer, None)  # type: ignore[arg-type]
    assert trainer.loggers[0].logged == [({"inoculation_cost": 0.25}, 6)]


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
    trainer = trainer_at(7, probe=0.5, original=0.5)
    cost.on_validation_end(trainer, None)  # type: ignore[arg-type]
    assert trainer.loggers[0].logged == []
    best = {PROBE: 0.5, ORIGINAL: 0.25, AGGREGATE: 0.375, "epoch": 2.0, "step": 40.0}
    summary = cost.summary(best)
    assert summary["cost_interpretable"] == 0.0
    assert "inoculation_cost" not in summary
