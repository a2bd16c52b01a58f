from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from probelight.datamodules.choices import ChoiceDataModule
from probelight.lightning_modules.base import (
    adamw_groups,
    choice_loss,
    halving,
    slanted_triangular,
    trapezoid,
)
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.probes.record import Record
from tests.lightning_modules.table import LABELS, ROWS, Table, batch, loader


def _loss(item: int) -> float:
    row = ROWS[item]
    return math.log(sum(math.exp(value) for value in row)) - row[LABELS[item]]


def test_the_loss_is_a_sum_over_weighted_items() -> None:
    logits = torch.tensor(ROWS)
    weights = torch.tensor([1.0, 2.0, 0.0, 1.0])
    loss_sum, stats = choice_loss(logits, torch.tensor(LABELS), weights, torch.ones(4, 3).bool())
    expected = _loss(0) + 2 * _loss(1) + _loss(3)
    assert float(loss_sum) == pytest.approx(expected, abs=1e-6)
    assert stats.tolist() == pytest.approx([expected, 4.0, 1.0])


@pytest.mark.parametrize("content", [float("-inf"), float("nan"), 7.0])
def test_an_item_of_weight_0_changes_nothing_whatever_it_holds(content: float) -> None:
    logits = torch.tensor([*ROWS[:2], [content] * 3], requires_grad=True)
    labels = torch.tensor([0, 0, 99])
    loss_sum, stats = choice_loss(
        logits, labels, torch.tensor([1.0, 1.0, 0.0]), torch.ones(3, 3).bool()
    )
    loss_sum.backward()
    alone = torch.tensor(ROWS[:2], requires_grad=True)
    expected, expected_stats = choice_loss(
        alone, torch.tensor([0, 0]), torch.ones(2), torch.ones(2, 3).bool()
    )
    expected.backward()
    assert loss_sum.item() == expected.item()
    assert torch.equal(stats, expected_stats)
    assert logits.grad is not None
    assert torch.equal(logits.grad[:2], alone.grad)
    assert logits.grad[2].tolist() == [0.0, 0.0, 0.0]


def _step(module: Table, items: Sequence[int], total: Tensor, processes: int) -> Tensor:
    """The loss of one of several processes; `total` is what they would all add up to."""
    module._trainer = SimpleNamespace(  # type: ignore[assignment]
        world_size=processes,
        accumulate_grad_batches=1,
        strategy=SimpleNamespace(reduce=lambda stats, reduce_op: total),
    )
    module.log = lambda *_, **__: None  # type: ignore[method-assign, assignment]
    return module.training_step(batch(items), 0)


def test_the_mean_over_processes_is_the_mean_over_the_globalbatch() -> None:
    """Two processes, two and one real items: DDP's average is the single process's gradient."""
    module = Table(ROWS)
    plain_loss = choice_loss(
        torch.tensor(ROWS[:3]), torch.tensor(LABELS[:3]), torch.ones(3), torch.ones(3, 3).bool()
    )[1]
    single = _step(module, [0, 1, 2], plain_loss, 1)
    single.backward()
    assert module.rows.grad is not None
    expected = module.rows.grad.clone()
    assert float(single) == pytest.approx((_loss(0) + _loss(1) + _loss(2)) / 3, abs=1e-6)
    gradients, losses = [], []
    for items in ([0, 1], [2, -1]):
        module.rows.grad = None
        loss = _step(module, items, plain_loss, 2)
        loss.backward()
        losses.append(float(loss))
        gradients.append(module.rows.grad.clone())
    assert sum(losses) / 2 == pytest.approx(float(single), abs=1e-6)
    torch.testing.assert_close(sum(gradients) / 2, expected, rtol=0, atol=1e-7)


def test_a_batch_of_padding_alone_has_loss_0() -> None:
    loss = _step(Table(ROWS), [-1, -1], torch.zeros(3), 1)
    assert float(loss) == 0.0


def test_one_set_is_logged_plainly_and_by_its_name(quiet_trainer: Callable[..., Any]) -> None:
    module = Table(ROWS)
    trainer = quiet_trainer()
    trainer.validate(module, loader([0, 1, 2], [3, -1]), verbose=False)
    assert trainer.callback_metrics["val/accuracy"] == 0.5  # 2 of 4
    assert set(trainer.callback_metrics) == {"val/accuracy"}
    module.evaluation_names = ["original"]
    trainer.validate(module, loader([0, 1, 2]), verbose=False)
    values = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert values == pytest.approx({"val/accuracy": 2 / 3, "val/original_accuracy": 2 / 3})


def test_several_sets_are_logged_by_name(quiet_trainer: Callable[..., Any]) -> None:
    module = Table(ROWS)
    module.evaluation_names = ["probe", "original"]
    trainer = quiet_trainer()
    loaders = [loader([0, 1], [2]), loader([3], [0, -1])]
    for stage, run in (("val", trainer.validate), ("test", trainer.test)):
        run(module, loaders, verbose=False)  # type: ignore[operator]
        values = {name: float(value) for name, value in trainer.callback_metrics.items()}
        assert values == pytest.approx(
            {f"{stage}/probe_accuracy": 2 / 3, f"{stage}/original_accuracy": 0.5}
        )


def test_predictions_name_their_items(quiet_trainer: Callable[..., Any]) -> None:
    batches = quiet_trainer().predict(Table(ROWS), loader([2, 0], [3, -1]))
    assert batches is not None
    first, second = batches
    assert set(first) == {"item", "scores", "choice_mask"}
    assert first["item"].tolist() == [2, 0]
    assert first["scores"].tolist() == [ROWS[2], ROWS[0]]
    assert first["scores"].dtype == torch.float32
    assert first["choice_mask"].all()
    assert second["item"].tolist() == [3, -1]


def test_training_logs_the_mean_loss_and_the_accuracy(quiet_trainer: Callable[..., Any]) -> None:
    trainer = quiet_trainer()
    trainer.fit(Table(ROWS), loader([0, 1, -1]))
    metrics = trainer.callback_metrics
    assert float(metrics["train/loss"]) == pytest.approx((_loss(0) + _loss(1)) / 2, abs=1e-6)
    assert float(metrics["train/accuracy"]) == 0.5


def test_the_first_step_of_adamw_by_hand(quiet_trainer: Callable[..., Any]) -> None:
    """Step 1 moves each weight by the rate, against its gradient, after rate x decay x weight."""
    module = Table(ROWS, learning_rate=0.1, weight_decay=0.5)
    trainer = quiet_trainer()
    trainer.fit(module, loader([0, 1, 2, 3]))
    optimizer = trainer.optimizers[0]
    assert optimizer.param_groups[0]["betas"] == (0.9, 0.98)
    probabilities = torch.tensor(ROWS).softmax(1)
    gold = torch.nn.functional.one_hot(torch.tensor(LABELS), 3)
    expected = torch.tensor(ROWS) * (1 - 0.1 * 0.5) - 0.1 * (probabilities - gold).sign()
    torch.testing.assert_close(module.rows.detach(), expected, rtol=0, atol=1e-5)


def test_the_rate_follows_the_slanted_triangle(quiet_trainer: Callable[..., Any]) -> None:
    rates: list[float] = []

    class Watch(pl.Callback):
        def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
            rates.append(optimizer.param_groups[0]["lr"])

    module = Table(ROWS, learning_rate=1.0, warmup_share=0.4)
    trainer = quiet_trainer(max_epochs=5, callbacks=[Watch()])
    trainer.fit(module, loader([0, 1]))
    assert rates == pytest.approx([0.5, 1.0, 1.0, 2 / 3, 1 / 3])


def test_gradients_are_clipped_when_asked(quiet_trainer: Callable[..., Any]) -> None:
    norms: list[float] = []

    class Watch(pl.Callback):
        def on_before_zero_grad(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
            if pl_module.rows.grad is not None:
                norms.append(float(pl_module.rows.grad.norm()))

    for max_grad_norm in (None, 0.01):
        module = Table(ROWS, max_grad_norm=max_grad_norm)
        quiet_trainer(callbacks=[Watch()], max_epochs=2).fit(module, loader([0, 1, 3]))
    assert norms[0] > 0.1
    assert norms[-1] == pytest.approx(0.01, rel=1e-3)


def test_a_module_without_trainable_parameters_cannot_be_fitted(
    quiet_trainer: Callable[..., Any],
) -> None:
    module = Table(ROWS)
    module.requires_grad_(False)
    with pytest.raises(RuntimeError, match="Table has nothing to train: all its parameters"):
        quiet_trainer().fit(module, loader([0]))
    quiet_trainer().validate(module, loader([0]), verbose=False)


def test_metrics_are_no_part_of_the_weights() -> None:
    module = Table(ROWS)
    module.evaluation_names = ["a", "b"]
    assert set(module.state_dict()) == {"rows"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mlp", "full", "sentence"])
def test_two_processes_train_and_measure_as_one(
    kind: Any, checkpoint: Callable[..., Path], quiet_trainer: Callable[..., Any]
) -> None:
    # Five records in batches of four: the second batch is one record and one padding item.
    words, choices = ["cat", "dog", "one", "two", "three"], ("smaller", "larger", "red")
    records = [
        Record(str(i), f"the {word} is [MASK] than a dog .", choices, i % 3)
        for i, word in enumerate(words)
    ]

    def fitted(**processes: Any) -> dict[str, Tensor]:
        folder = str(checkpoint("bert"))
        module: Any = (
            SentenceChoice(folder) if kind == "sentence" else MaskedChoice(folder, mode=kind)
        )
        for layer in module.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = 0.0  # each process draws its own
        # Adam would make a whole step of a gradient that is nothing but rounding.
        trained = [p for p in module.parameters() if p.requires_grad]
        module.configure_optimizers = lambda: torch.optim.SGD(trained, lr=0.1)
        trainer = quiet_trainer(max_epochs=2, **processes)
        trainer.fit(module, datamodule=ChoiceDataModule(records, {"dev": records}, 4, seed=3))
        return {**module.state_dict(), **trainer.callback_metrics}

    single_process, two_processes = fitted(), fitted(devices=2, strategy="ddp_fork")
    assert single_process["val/dev_accuracy"] == two_processes["val/dev_accuracy"]
    for name, value in single_process.items():
        torch.testing.assert_close(two_processes[name], value, rtol=1e-4, atol=1e-5, msg=name)


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
    [alone] = adamw_groups(nn.Linear(2, 1, bias=False), 0.1)  # no group without parameters
    assert alone["weight_decay"] == 0.1
    tied = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5))
    tied[1].weight = tied[0].weight
    assert sum(len(group["params"]) for group in adamw_groups(tied, 0.1)) == 2


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
    scheduler = halving(optimizer)
    rates = []
    for accuracy in (0.5, 0.6, 0.6, 0.7, 0.65, 0.7):
        scheduler.step(accuracy)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == [1, 1, 0.5, 0.5, 0.25, 0.125]
