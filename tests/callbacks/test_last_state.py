"""When the state is saved that a run goes on from, and what it holds besides Lightning's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from callbacks.checkpoint_io import read_state
from callbacks.last_state import SCORES, LastState
from callbacks.lightning_internals import end_by_sigterm
from tests.callbacks.line import Line, batches


class Noted(LastState):
    """Notes the step of every state."""

    def __init__(self, dirpath: Path, every_n_train_steps: int) -> None:
        super().__init__(str(dirpath), every_n_train_steps)
        self.saved: list[int] = []

    def _save_checkpoint(self, trainer: pl.Trainer, filepath: str) -> None:
        self.saved.append(trainer.global_step)
        super()._save_checkpoint(trainer, filepath)


class Validated(Line):
    """Its validation loss is the number of steps before it."""

    def validation_step(self, batch: list[torch.Tensor], batch_idx: int) -> None:
        self.log("val/loss", float(self.global_step))


class Ends(Line):
    """A fit that ends behind its third step."""

    def __init__(self, end: Callable[[pl.Trainer], None]) -> None:
        super().__init__()
        self.end = end

    def on_train_batch_end(self, *_: object) -> None:
        if self.trainer.global_step == 3:
            self.end(self.trainer)


def raise_error(_: pl.Trainer) -> None:
    raise RuntimeError("out of memory")


@pytest.fixture
def saving(quiet_trainer: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a quiet Trainer that saves with a callback."""
    return lambda keep, **options: quiet_trainer(
        callbacks=[keep], enable_checkpointing=True, **options
    )


def test_only_the_newest_is_kept_none_from_before_a_validation_and_the_epochs_last(
    saving: Callable[..., Any], tmp_path: Path
) -> None:
    keep = Noted(tmp_path, every_n_train_steps=2)
    saving(keep, val_check_interval=4).fit(Validated(), batches(10), batches(1))
    assert keep.saved == [2, 6, 10]  # 4 and 8 have a validation behind them
    assert [path.name for path in tmp_path.glob("*.ckpt")] == ["last.ckpt"]
    assert read_state(tmp_path / "last.ckpt")["global_step"] == 10


def test_a_state_says_what_made_a_step_and_what_was_scored_last(
    saving: Callable[..., Any], tmp_path: Path
) -> None:
    keep = Noted(tmp_path, every_n_train_steps=1)
    saving(keep, accumulate_grad_batches=2).fit(Validated(), batches(5), batches(1))
    assert keep.saved == [1, 2, 3]
    state = read_state(tmp_path / "last.ckpt")
    assert state["accumulate"] == 2
    assert state[SCORES]["val/loss"] == 3


@pytest.mark.parametrize(
    ("end", "stop", "saved"),
    [(end_by_sigterm, SystemExit, [2, 3]), (raise_error, RuntimeError, [2])],
    ids=["SIGTERM", "an error"],
)
def test_sigterm_saves_where_it_stops_and_an_error_does_not(
    end: Callable[[pl.Trainer], None],
    stop: type[BaseException],
    saved: list[int],
    saving: Callable[..., Any],
    tmp_path: Path,
) -> None:
    keep = Noted(tmp_path, every_n_train_steps=2)
    with pytest.raises(stop):
        saving(keep).fit(Ends(end), batches(10))
    assert keep.saved == saved


def test_a_run_goes_on_with_steps_of_other_batches(
    saving: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError):
        saving(LastState(str(tmp_path), 2)).fit(Ends(raise_error), batches(8))
    # Two of eight batches made two steps; of two batches each they are four, and four are left.
    module = Line()
    trainer = saving(LastState(str(tmp_path)), accumulate_grad_batches=2)
    trainer.fit(module, batches(8), ckpt_path=tmp_path / "last.ckpt")
    assert module.steps == [False, True, False, True]
    assert trainer.global_step == 4
