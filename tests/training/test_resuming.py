"""A fit that is stopped anywhere, or made of other batches, ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.accelerators import CPUAccelerator
from pytorch_lightning.strategies import SingleDeviceStrategy, StrategyRegistry
from pytorch_lightning.utilities.exceptions import SIGTERMException
from torch import Tensor, nn
from torch.multiprocessing import ProcessRaisedException
from torch.utils.data import DataLoader, TensorDataset

from probelight.callbacks.aggregate_checkpoint import ORIGINAL, AggregateCheckpoint, Scores
from probelight.callbacks.last_state import LastState, read_state
from probelight.callbacks.step_lines import StepLines
from probelight.datamodules.loaders import EpochBatchSampler, ResumableData, ResumableLoader
from probelight.io.atomic import writer
from probelight.io.errors import UsageError
from probelight.io.process import STOP
from probelight.io.progress import LogLines
from probelight.lightning_modules.base import ChoiceModule
from probelight.models.networks import Batch
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.settings import TrainerSettings
from probelight.training.fit import EpochBar, FitPlan, fit, make_trainer, smaller_batches
from probelight.training.settings import Fit
from tests.runs.tiny_training import Points, Regression

SETTINGS = TrainerSettings(accelerator="cpu", threads=1, progress_bar=False, checkpoint_every=1)


def test_the_progress_bar_counts_epochs_from_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probelight.training.fit.has_bars", lambda console: True)
    descriptions = list[str]()

    class Noted(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *_: Any) -> None:
            bar = trainer.progress_bar_callback
            assert isinstance(bar, EpochBar)
            assert bar.progress is not None
            descriptions.append(bar.progress.tasks[0].description.strip())

    settings = replace(SETTINGS, progress_bar=True)
    trainer = make_trainer(
        settings, max_epochs=3, logger=False, enable_checkpointing=False, callbacks=[Noted()]
    )
    with STOP.during_command():  # no signal of an earlier one is noted
        trainer.fit(Regression(learning_rate=0.1, seed=0, seconds=0.0), datamodule=Points(seed=0))
    assert [*dict.fromkeys(descriptions)] == ["Epoch 1/3", "Epoch 2/3", "Epoch 3/3"]


def test_a_log_has_a_line_of_a_fit_and_none_after_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = replace(SETTINGS, progress_bar=True)
    trainer = make_trainer(
        settings, "a line", max_epochs=3, logger=False, enable_checkpointing=False
    )
    module = Regression(learning_rate=0.1, seed=0, seconds=0.0)
    with STOP.during_command():
        trainer.fit(module, datamodule=Points(seed=0))
    assert capsys.readouterr().err == f"a line: {trainer.global_step} steps\n"
    [lines] = [callback for callback in trainer.callbacks if isinstance(callback, StepLines)]
    assert isinstance(lines._lines, LogLines)
    [task] = lines._lines.tasks
    assert (task.completed, task.total) == (trainer.global_step, trainer.global_step)
    assert lines._lines._stopped.is_set()


Place = tuple[str, int, int, int]  # method, epoch, loader, batch


class Stop(RuntimeError):
    """Ends a fit where a kill would: nothing is saved any more."""


class Validated(Points):
    """The points, and two evaluation sets of four batches each."""

    def val_dataloader(self) -> list[DataLoader[Any]]:
        points = torch.randn(32, 4, generator=torch.Generator().manual_seed(8))
        data = TensorDataset(points, points.sum(dim=1, keepdim=True))
        return [DataLoader(data, batch_size=8) for _ in range(2)]


class Interrupted(Regression):
    """Meets a signal or an exception at a moment."""

    def __init__(self, fault: str = "", moment: Place | None = None) -> None:
        super().__init__(learning_rate=0.01, seed=0, seconds=0.0)
        self.fault, self.moment = fault, moment

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        self._meet("training", 0, batch_idx)
        return super().training_step(batch, batch_idx)

    def validation_step(self, batch: list[Tensor], batch_idx: int, dataloader_idx: int = 0) -> None:
        self._meet("validation", dataloader_idx, batch_idx)
        score = 1 - nn.functional.mse_loss(self.net(batch[0]), batch[1])
        if dataloader_idx == 0:
            self.log(ORIGINAL, score, on_epoch=True, add_dataloader_idx=False)

    def save_pretrained(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.state_dict(), folder / "weights.pt")

    def _meet(self, method: str, loader: int, batch: int) -> None:
        if self.moment == (method, self.trainer.current_epoch, loader, batch):
            if self.fault == "exception":
                raise Stop
            if self.fault == "memory":
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
            if self.fault == "cublas":
                raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling ...")
            os.kill(os.getpid(), signal.Signals[self.fault])


def start(
    folder: Path,
    module: pl.LightningModule,
    epochs: int = 3,
    data: ResumableData | None = None,
    callbacks: Sequence[pl.Callback] = (),
    **settings: Any,
) -> list[Scores]:
    """Starts or goes on; the scores of every validation."""
    run = RunFolder(folder / "runs", "run", {"a": 1})
    keep = AggregateCheckpoint(run.best_dir, monitor=ORIGINAL)
    plan = FitPlan(Fit(epochs=epochs, batch_size=8), 0, [keep, *callbacks], "tiny")
    fit(module, data or Validated(0), run, plan, RunContext(replace(SETTINGS, **settings)))
    return keep.history


STOPS = {"SIGTERM": SIGTERMException, "SIGINT": KeyboardInterrupt, "exception": Stop}


def stop(folder: Path, fault: str, moment: Place, **options: Any) -> Path:
    """Fits in `stopped` until the fault; returns the folder of its checkpoints."""
    with pytest.raises(STOPS[fault]):
        start(folder / "stopped", Interrupted(fault, moment), **options)
    [run] = folder.glob("stopped/runs/*")
    return run / "checkpoints"


def outcome(module: Interrupted, folder: Path) -> list[Tensor]:
    """Every bit of the last weights and of those that were kept."""
    [path] = folder.glob("runs/*/checkpoints/best/weights.pt")
    saved = torch.load(path, weights_only=True)
    return [*module.state_dict().values(), *saved.values()]


def assert_goes_on(folder: Path, **options: Any) -> None:
    """The run in `stopped` goes on, and ends bit by bit as one that was never stopped."""
    undisturbed, resumed = Interrupted(), Interrupted()
    scores = start(folder / "whole", undisturbed, **options)
    assert start(folder / "stopped", resumed, **options) == scores
    actual, expected = outcome(resumed, folder / "stopped"), outcome(undisturbed, folder / "whole")
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


class Late(SingleDeviceStrategy):
    """Restores a state behind the optimisers, as FSDP does."""

    @property
    def restore_checkpoint_after_setup(self) -> bool:
        return True


class Counted(Interrupted):
    """Knows the number of its steps when it makes its optimiser, so that its loader is made."""

    def configure_optimizers(self) -> torch.optim.Optimizer:
        assert self.trainer.estimated_stepping_batches == 12
        return super().configure_optimizers()


def test_a_state_that_is_restored_late_goes_on_with_the_same_batches(tmp_path: Path) -> None:
    StrategyRegistry.register("late", Late, override=True, accelerator=CPUAccelerator())
    with pytest.raises(Stop):
        start(tmp_path / "stopped", Counted("exception", ("training", 1, 0, 2)), strategy="late")
    undisturbed, resumed = Counted(), Counted()
    scores = start(tmp_path / "whole", undisturbed, strategy="late")
    assert start(tmp_path / "stopped", resumed, strategy="late") == scores
    StrategyRegistry.remove("late")
    actual, expected = (
        outcome(resumed, tmp_path / "stopped"),
        outcome(undisturbed, tmp_path / "whole"),
    )
    assert all(torch.equal(a, b) for a, b in zip(actual, expected, strict=True))


def test_half_the_bits_go_on_with_the_same_bits(tmp_path: Path) -> None:
    stop(tmp_path, "exception", ("training", 1, 0, 2), precision="bf16-mixed")
    assert_goes_on(tmp_path, precision="bf16-mixed")
    exact = Interrupted()
    start(tmp_path / "exact", exact)
    [weights_path] = tmp_path.glob("stopped/runs/*/checkpoints/best/weights.pt")
    halved = torch.load(weights_path, weights_only=True)
    for name, weights in exact.state_dict().items():
        assert not torch.equal(halved[name], weights)
        assert torch.allclose(halved[name], weights, atol=1e-2)


@pytest.mark.parametrize("checkpoint_every", [2, 50, None])
@pytest.mark.parametrize(
    ("epochs", "moment"),
    [
        (3, ("validation", 0, 0, 0)),
        (3, ("validation", 1, 0, 1)),
        (3, ("validation", 2, 1, 0)),
        (3, ("validation", 1, 1, 3)),  # the last batch: Lightning goes on to the epoch's end
        (1, ("validation", 0, 0, 1)),
    ],
)
def test_sigterm_in_a_validation_does_not_lose_it(
    epochs: int, moment: Place, checkpoint_every: int | None, tmp_path: Path
) -> None:
    options: Any = {"epochs": epochs, "checkpoint_every": checkpoint_every}
    stop(tmp_path, "SIGTERM", moment, **options)
    assert_goes_on(tmp_path, **options)


def test_sigterm_in_a_training_step_saves_the_state_behind_it(tmp_path: Path) -> None:
    checkpoints = stop(tmp_path, "SIGTERM", ("training", 1, 0, 1), checkpoint_every=None)
    assert read_state(checkpoints / "last.ckpt")["global_step"] == 6
    assert_goes_on(tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize(("minutes", "step"), [(1, 9), (5, 5), (6, 6), (8, 8), (10, 0)])
def test_wherever_the_clock_had_a_state_written_the_end_is_the_same(
    minutes: int, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = Interrupted("exception", LATE)

    def clock() -> float:
        return 60.0 * stopped.trainer.global_step  # a step takes a minute

    monkeypatch.setattr(LastState, "__init__", partialmethod(LastState.__init__, clock=clock))
    with pytest.raises(Stop):
        start(tmp_path / "stopped", stopped, checkpoint_every=None, checkpoint_minutes=minutes)
    monkeypatch.undo()
    states = list(tmp_path.glob("stopped/runs/*/checkpoints/last.ckpt"))
    assert [read_state(path)["global_step"] for path in states] == ([step] if step else [])
    assert_goes_on(tmp_path, checkpoint_every=None)
    assert not list(tmp_path.glob("whole/runs/*/checkpoints/last.ckpt*"))  # it took no two minutes


@pytest.mark.thorough
@pytest.mark.parametrize("checkpoint_every", [1, 50])
@pytest.mark.parametrize("fault", ["SIGTERM", "exception"])
def test_gradients_that_are_being_accumulated_are_not_lost(
    fault: str, checkpoint_every: int, tmp_path: Path
) -> None:
    options: Any = {"accumulate": 3, "checkpoint_every": checkpoint_every}  # windows of 3 and 1
    # SIGTERM waits for the end of the window; behind an exception its micro-batches are repeated.
    second = [] if fault == "SIGTERM" else [(1, 1)]
    for epoch, batch in [(0, 1), (1, 0), *second, (1, 3), (2, 2)]:
        moment = ("training", epoch, 0, batch)
        stop(tmp_path, fault, moment, **options)
    assert_goes_on(tmp_path, **options)


# In the third epoch, whose model is not written yet; the second one's is the best.
LATE = ("training", 2, 0, 1)


@pytest.mark.parametrize("renamed", [False, True])
def test_a_kill_while_the_best_model_was_written_is_mended(renamed: bool, tmp_path: Path) -> None:
    best = stop(tmp_path, "exception", LATE) / "best"
    host, pid, _ = writer().split("-")
    dead = f"{host}-{pid}-1"  # another process of this number, which began when the host did
    shutil.copytree(best, best.with_name(f"best.{dead}.tmp"))
    if renamed:
        best.replace(best.with_name(f"best.{dead}.old"))
    assert_goes_on(tmp_path)
    names = sorted(path.name for path in best.parent.iterdir())
    assert names == ["best", "last.ckpt", "last.ckpt.previous"]


def swap(best: Path) -> None:
    path = best / "chosen.json"
    path.write_text(path.read_text().replace('"epoch": 2', '"epoch": 1').replace("8,", "4,"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "cannot be read .FileNotFoundError"),
        (lambda best: (best / "weights.pt").write_bytes(b"half"), "is damaged"),
        (lambda best: (best / "chosen.json").write_text("{"), "cannot be read .JSONDecodeError"),
        (swap, "best: it has the model of epoch 1 instead of the model of epoch 2"),
    ],
)
def test_a_run_whose_best_model_is_lost_starts_anew(
    damage: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    best = stop(tmp_path, "exception", LATE) / "best"
    assert json.loads((best / "chosen.json").read_text())["epoch"] == 2
    damage(best)
    with pytest.warns(RuntimeWarning, match=f"best.*{message}.*Training starts again"):
        assert_goes_on(tmp_path)


def test_a_best_model_from_behind_the_state_is_written_again(tmp_path: Path) -> None:
    state = stop(tmp_path, "exception", LATE) / "last.ckpt"
    content = state.read_bytes()
    # The last validation is complete; without the state behind it, it is done again.
    stop(tmp_path, "SIGTERM", ("validation", 2, 1, 3))
    state.write_bytes(content)
    assert_goes_on(tmp_path)


def test_other_weights_than_the_best_are_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        AggregateCheckpoint, "on_train_end", lambda self, *_: shutil.rmtree(self.folder)
    )
    with pytest.raises(
        RuntimeError, match=r"epoch 3, the best one, cannot .* trains again from the start"
    ):
        start(tmp_path, Interrupted())
    monkeypatch.undo()
    assert len(start(tmp_path, Interrupted())) == 3


NUM_ITEMS, STEP, EPOCHS = 11, 4, 2  # steps of 4, 4 and 3 items


class Linear(ChoiceModule):
    """Scores three choices; plain gradient steps, in which rounding stays rounding."""

    def __init__(self, stop_at: int | None = None) -> None:
        super().__init__(learning_rate=0.5)
        torch.manual_seed(0)
        self.net = nn.Linear(4, 3)
        self.stop_at = stop_at
        self.evaluation_names = ["original"]

    def forward(self, batch: Batch) -> Tensor:
        logits: Tensor = self.net(batch["points"])
        return logits

    def encoder(self) -> Any:
        return None

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        if self.global_step == self.stop_at:
            raise Stop
        return super().training_step(batch, batch_idx)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.5)

    def save_pretrained(self, folder: Path) -> None:
        torch.save(self.state_dict(), folder / "weights.pt")


class Questions(ResumableData):
    """Points whose class is random, in batches of a size."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
        generator = torch.Generator().manual_seed(1)
        self.points = torch.randn(NUM_ITEMS, 4, generator=generator)
        self.labels = torch.randint(3, (NUM_ITEMS,), generator=generator)

    def batch(self, items: list[int]) -> Batch:
        chosen = torch.tensor(items)
        return {
            "points": self.points[chosen],
            "labels": self.labels[chosen],
            "weights": torch.ones(len(items)),
            "choice_mask": torch.ones(len(items), 3, dtype=torch.bool),
        }

    def train_dataloader(self) -> ResumableLoader:
        sampler = EpochBatchSampler(NUM_ITEMS, self.size, seed=2)
        items: Any = range(NUM_ITEMS)
        return self.resumable(ResumableLoader(items, sampler, collate_fn=self.batch))

    def val_dataloader(self) -> DataLoader[Any]:
        batches: Any = [self.batch(list(range(NUM_ITEMS)))]
        return DataLoader(batches, batch_size=None)


def train(folder: Path, accumulate: int, stop_at: int | None = None) -> Linear:
    module, data = Linear(stop_at), Questions(STEP // accumulate)
    history = start(folder, module, EPOCHS, data, accumulate=accumulate)
    assert [(scores["epoch"], scores["step"]) for scores in history] == [(1, 3), (2, 6)]
    return module


def assert_close(first: Linear, second: Linear) -> None:
    for name, value in first.state_dict().items():
        torch.testing.assert_close(second.state_dict()[name], value, rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Linear:
    return train(tmp_path_factory.mktemp("whole"), accumulate=1)


@pytest.mark.parametrize("accumulate", [2, 4])
def test_each_item_weighs_the_same_however_a_step_is_made(
    accumulate: int, reference: Linear, tmp_path: Path
) -> None:
    assert_close(train(tmp_path, accumulate), reference)


@pytest.mark.thorough
@pytest.mark.parametrize(("stopped_with", "resumed_with"), [(1, 4), (4, 1), (2, 4), (4, 2)])
def test_a_run_may_go_on_with_another_accumulate(
    stopped_with: int, resumed_with: int, reference: Linear, tmp_path: Path
) -> None:
    # Behind each step, and behind both validations.
    for stop_at in range(1, 3 * EPOCHS):
        folder = tmp_path / str(stop_at)
        with pytest.raises(Stop):
            train(folder, stopped_with, stop_at)
        assert_close(train(folder, resumed_with), reference)
    train(folder, stopped_with)  # a finished run


@pytest.mark.parametrize(
    ("fault", "moment", "message"),
    [
        (
            "memory",
            ("training", 1, 0, 2),
            "^training in batches of 8 .*accumulate 2 trains in batches of 4 ",
        ),
        ("cublas", ("training", 0, 0, 0), "^training in batches of 8 "),
        ("memory", ("validation", 0, 1, 1), "measuring needs .* lower --trainer.max_eval_tokens"),
    ],
)
def test_too_little_memory_is_one_error_and_the_run_can_go_on(
    fault: str, moment: Place, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        start(tmp_path, Interrupted(fault, moment))
    module = Interrupted()
    assert len(start(tmp_path, module)) == 3
    assert module.trainer.global_step == 12


@pytest.mark.parametrize(
    ("batch_size", "accumulate", "processes", "message"),
    [
        (16, 1, 1, r"batches of 16 \(batch_size 16\) .*accumulate 2 trains in batches of 8 "),
        (16, 2, 4, r"batches of 8 \(batch_size 16\) .*accumulate 4 trains in batches of 4 "),
        (15, 1, 1, "accumulate 3 trains in batches of 5 "),
        (18, 1, 2, "accumulate 3 trains in batches of 6 "),  # 9 are not to be shared by two
        (8, 8, 1, r"batches of 1 \(batch_size 8\) .*; smaller batches are not possible; use "),
        (8, 4, 2, r"batches of 2 \(batch_size 8\) .*; smaller batches are not possible; use "),
    ],
)
def test_smaller_batches_are_those_that_divide_the_step_of_the_optimiser(
    batch_size: int, accumulate: int, processes: int, message: str
) -> None:
    settings = replace(SETTINGS, accumulate=accumulate)
    assert re.search(message, smaller_batches(batch_size, settings, processes))


class Noting(Interrupted):
    """Notes how single precision is multiplied in each process, and ends them."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        path = self.folder / str(self.trainer.global_rank)
        path.write_text(torch.get_float32_matmul_precision())
        self.trainer.strategy.barrier()
        raise Stop


def test_single_precision_is_multiplied_as_asked_in_every_process(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "runs", "run", {})
    plan = FitPlan(Fit(epochs=1, batch_size=8), 0, [], "tiny")
    options: Any = {"devices": 2, "strategy": "ddp_fork", "matmul_precision": "medium"}
    with pytest.raises(ProcessRaisedException):
        fit(Noting(tmp_path), Validated(0), run, plan, RunContext(replace(SETTINGS, **options)))
    assert [(tmp_path / rank).read_text() for rank in "01"] == ["medium", "medium"]
    assert torch.get_float32_matmul_precision() == "highest"
