"""What holds a model back, against losses and gradients written out by hand."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from probelight.datamodules.choices import ChoiceDataModule
from probelight.lightning_modules.base import ChoiceModule
from probelight.lightning_modules.inoculation import Inoculation
from probelight.lightning_modules.keeping import L2SP, Distillation, Penalty
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.probes.record import Record
from tests.lightning_modules.losses import without_dropout
from tests.lightning_modules.table import ROWS, Table, batch, loader

DOSE = [
    Record(f"d{i}", f"the {word} is", ("smaller", "larger", "red"), i % 3)
    for i, word in enumerate(["cat", "dog", "one", "two", "three"])
]
# One question has fewer choices than the others.
ORIGINAL = [
    Record(f"o{i}", f"a {word} is a", ("dog", "cat", "red")[: 2 + (i != 1)], i % 2)
    for i, word in enumerate(["cat", "two", "red", "dog"])
]


class Steps(pl.Callback):
    """Keeps every batch, and the gradients that each optimiser step takes."""

    def __init__(self) -> None:
        self.batches: list[Any] = []
        self.gradients: list[list[Tensor]] = []

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, index: int) -> None:
        self.batches.append(batch)

    def on_before_zero_grad(self, trainer: Any, module: Any, optimizer: Any) -> None:
        grads = [p.grad for p in module.parameters() if p.grad is not None]
        if grads:
            self.gradients.append([grad.clone() for grad in grads])


def task_of(folder: Path) -> SentenceChoice:
    task = SentenceChoice(str(folder))
    without_dropout(task)
    return task


def fitted(
    task: ChoiceModule, penalty: Penalty | None, trainer: Any, accumulate: int = 1
) -> tuple[Inoculation, Steps]:
    module = Inoculation(task, penalty=penalty)
    # Adam would make a whole step of a gradient that is nothing but rounding.
    module.configure_optimizers = lambda: torch.optim.SGD(  # type: ignore[method-assign]
        module.parameters(), lr=0.5
    )
    data = ChoiceDataModule(
        DOSE, {}, 4 // accumulate, seed=3, replay=ORIGINAL, replay_share=0.5, accumulate=accumulate
    )
    trainer.fit(module, datamodule=data)
    return module, trainer.callbacks[0]


def by_hand(
    task: SentenceChoice, steps: list[Any], alpha: float, weight: float | None
) -> nn.Module:
    """Train with the penalty in the loss: no hook, no module of ours but the forward pass."""
    teacher = copy.deepcopy(task).eval()
    started = [p.detach().clone() for p in task.parameters()]
    optimizer = torch.optim.SGD(task.parameters(), lr=0.5)
    task.train()
    for inputs in steps:
        logits, total = task(inputs), torch.zeros(())
        taught = teacher(inputs).detach()
        for i in range(len(inputs["labels"])):
            choices = inputs["choice_mask"][i]
            current, then = logits[i][choices].log_softmax(0), taught[i][choices].log_softmax(0)
            if weight is not None and int(inputs["item"][i]) >= len(DOSE):
                total = total + weight * (then.exp() * (then - current)).sum()
            else:
                total = total - current[inputs["labels"][i]]
        loss = total / len(inputs["labels"])
        for current, start in zip(task.parameters(), started, strict=True):
            loss = loss + alpha / 2 * (current - start).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return task


@pytest.mark.parametrize(
    ("penalty", "alpha", "weight"),
    [(None, 0.0, None), (L2SP(0.3), 0.3, None), (Distillation(2.5), 0.0, 2.5)],
)
def test_two_epochs_end_with_the_weights_of_a_loop_written_by_hand(
    penalty: Penalty | None,
    alpha: float,
    weight: float | None,
    checkpoint: Callable[..., Path],
    quiet_trainer: Callable[..., Any],
) -> None:
    folder = checkpoint("bert")
    trainer = quiet_trainer(max_epochs=2, callbacks=[Steps()])
    module, steps = fitted(task_of(folder), penalty, trainer)
    assert len(steps.batches) == 6  # 2, 2 and 1 of the dose, with two questions each
    expected = by_hand(task_of(folder), steps.batches, alpha, weight)
    start = task_of(folder).state_dict()
    moved = 0.0
    for name, value in expected.state_dict().items():
        trained = module.task.state_dict()[name]
        torch.testing.assert_close(trained, value, rtol=0, atol=1e-6, msg=name)
        moved = max(moved, float((value - start[name]).abs().max()))
    assert moved > 1e-3


@pytest.mark.parametrize("penalty", [L2SP(0.3), Distillation(2.5)])
def test_a_step_of_two_batches_has_the_gradients_of_one(
    penalty: Penalty, checkpoint: Callable[..., Path], quiet_trainer: Callable[..., Any]
) -> None:
    steps_seen = []
    for accumulate in (1, 2):
        trainer = quiet_trainer(
            max_epochs=2, callbacks=[Steps()], accumulate_grad_batches=accumulate
        )
        _, steps = fitted(task_of(checkpoint("bert")), copy.deepcopy(penalty), trainer, accumulate)
        items = [[i for i in batch["item"].tolist() if i >= 0] for batch in steps.batches]
        steps_seen.append(([*chain(*items)], steps.gradients[-1]))
    assert steps_seen[0][0] == steps_seen[1][0]
    for gradient, accumulated in zip(steps_seen[0][1], steps_seen[1][1], strict=True):
        torch.testing.assert_close(accumulated, gradient, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [L2SP(0.3), Distillation(2.5)])
def test_two_processes_train_as_one(
    penalty: Penalty, checkpoint: Callable[..., Path], quiet_trainer: Callable[..., Any]
) -> None:
    states = []
    for processes in ({}, {"devices": 2, "strategy": "ddp_fork"}):
        trainer = quiet_trainer(max_epochs=2, callbacks=[Steps()], **processes)
        module, _ = fitted(task_of(checkpoint("bert")), copy.deepcopy(penalty), trainer)
        states.append(module.state_dict())
    for name, value in states[0].items():
        torch.testing.assert_close(states[1][name], value, rtol=1e-4, atol=1e-5, msg=name)


def test_l2_sp_by_hand(quiet_trainer: Callable[..., Any]) -> None:
    """Two steps of rate 1 on one item of three logits: the second is pulled back by 0.5 of each."""
    task = Table([[0.0, 0.0, 0.0]])
    module = Inoculation(task, penalty=L2SP(0.5), weight_decay=0.1)
    assert module.weight_decay == 0.0  # no other decay on it
    module.configure_optimizers = lambda: torch.optim.SGD(  # type: ignore[method-assign]
        module.parameters(), lr=1.0
    )
    trainer = quiet_trainer(max_epochs=2)
    trainer.fit(module, loader([0]))
    first = torch.tensor([2 / 3, -1 / 3, -1 / 3])  # minus the gradient of the cross-entropy at 0
    gradient = first.softmax(0) - torch.tensor([1.0, 0.0, 0.0]) + 0.5 * first
    torch.testing.assert_close(task.rows.detach()[0], first - gradient)
    # Half of 0.5 times the squared distance before the second step.
    assert trainer.callback_metrics["train/penalty"] == pytest.approx(0.25 * (4 + 1 + 1) / 9)


def test_distillation_is_nothing_where_nothing_changed_and_ignores_what_is_not_replayed() -> None:
    module = Inoculation(Table(ROWS), penalty=Distillation(3.0))
    inputs = {**batch([0, 1, 3]), "replayed": torch.tensor([False, True, True])}
    inputs["choice_mask"][2, 2] = False
    loss, stats = module.training_loss(inputs, module(inputs))
    expected = -torch.tensor(ROWS[0]).log_softmax(0)[0]
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(stats[0], expected)
    loss.backward()
    gradient = module.task.rows.grad
    assert gradient is not None
    torch.testing.assert_close(gradient[[1, 3]], torch.zeros(2, 3), atol=1e-6, rtol=0)
    assert gradient.isfinite().all()
    with pytest.raises(RuntimeError, match="pass some to ChoiceDataModule as `replay`"):
        module.training_loss(batch([0]), module(batch([0])))


def test_the_model_before_is_no_part_of_what_is_trained_saved_or_distributed() -> None:
    for penalty in (L2SP(1.0), Distillation(1.0)):
        module = Inoculation(Table(ROWS), penalty=penalty)
        assert list(module.state_dict()) == ["task.rows"]
        assert len(list(module.parameters())) == 1
        [held] = module.held()
        with torch.no_grad():
            module.task.rows.zero_()
        assert torch.equal(held, torch.tensor(ROWS))  # a copy
    assert list(Inoculation(Table(ROWS)).held()) == []


class Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class DuringSteps(pl.Callback):
    """The operations from the start of each training batch to its end."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_train_batch_start(self, *_: Any) -> None:
        self.operations = Operations().__enter__()

    def on_train_batch_end(self, *_: Any) -> None:
        self.operations.__exit__(None, None, None)
        self.names += self.operations.names


def test_without_a_penalty_a_step_has_the_operations_of_the_task_itself(
    quiet_trainer: Callable[..., Any],
) -> None:
    operations = []
    for module in (Table(ROWS, 1e-5), Inoculation(Table(ROWS), 1e-5)):
        callback = DuringSteps()
        quiet_trainer(max_epochs=2, callbacks=[callback]).fit(module, loader([0, 1], [2, 3]))
        operations.append(callback.names)
    assert operations[0] == operations[1]
    assert len(operations[0]) > 50


@pytest.mark.parametrize("kind", [L2SP, Distillation])
def test_a_strength_is_above_0(kind: type[Penalty]) -> None:
    for strength in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="give a number above 0"):
            kind(strength)
