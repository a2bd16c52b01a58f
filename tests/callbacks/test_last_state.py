from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as pl
import torch

from probelight.callbacks import last_state
from probelight.callbacks.last_state import (
    SCORES,
    AgreedStop,
    AtomicCheckpointIO,
    LastState,
    StepSeed,
    UnreadableCheckpointError,
    end_by_sigterm,
    newest_state,
    previous_of,
    read_state,
)
from probelight.io.process import STOP
from tests.callbacks.line import Line, batches


class Noted(LastState):
    def __init__(self, dirpath: Path, *settings: Any, **more: Any) -> None:
        super().__init__(str(dirpath), *settings, **more)
        self.saved: list[int] = []

    def _save_checkpoint(self, trainer: pl.Trainer, filepath: str) -> None:
        self.saved.append(trainer.global_step)
        super()._save_checkpoint(trainer, filepath)


class Validated(Line):
    """Its validation loss is the number of steps before it."""

    def validation_step(self, batch: list[torch.Tensor], batch_idx: int) -> None:
        self.log("val/loss", float(self.global_step))


class Ends(Line):
    def __init__(self, end: Callable[[pl.Trainer], None]) -> None:
        super().__init__()
        self.end = end

    def on_train_batch_end(self, *_: object) -> None:
        if self.trainer.global_step == 3:
            self.end(self.trainer)


class Timed(Line):
    """A step takes 50 seconds, and writing a state takes as long as it is told."""

    def __init__(self, write_seconds: float) -> None:
        super().__init__()
        self.seconds, self.write_seconds = 1000.0, write_seconds

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        self.seconds += 50
        return super().training_step(batch, batch_idx)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.seconds += self.write_seconds


def raise_error(_: pl.Trainer) -> None:
    raise RuntimeError("out of memory")


@pytest.fixture
def saving(
    quiet_trainer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Any]:
    """Makes a quiet Trainer that saves with a callback."""
    monkeypatch.setattr(STOP, "hold", lambda: None)
    return lambda keep, **options: quiet_trainer(
        callbacks=[keep, AgreedStop()], enable_checkpointing=True, **options
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


@pytest.mark.parametrize(
    ("write_seconds", "settings", "saved"),
    [
        # A state is due two minutes behind the one before: at 150 s, as no step ends at 120 s.
        (5, {}, [3, 6, 9, 12]),
        # After 20 s of writing the next waits 180 s: four steps, and 20 of 220 s are 9%.
        (20, {}, [3, 7, 11, 12]),
        # 100 s of writing at a share of a half: 100 s of steps, but two minutes at least.
        (100, {"share": 0.5}, [3, 6, 9, 12]),
        (100, {"share": 0.5, "minutes": 0.0}, [1, 3, 5, 7, 9, 11, 12]),
        (0, {"minutes": 60.0}, [12]),
        (0, {"minutes": 60.0, "at_end": False}, []),
    ],
)
def test_by_the_clock_states_are_minutes_apart_and_writing_takes_a_share_of_the_time(
    write_seconds: float,
    settings: dict[str, Any],
    saved: list[int],
    saving: Callable[..., Any],
    tmp_path: Path,
) -> None:
    module = Timed(write_seconds)
    keep = Noted(tmp_path, clock=lambda: module.seconds, **settings)
    saving(keep).fit(module, batches(12))
    assert keep.saved == saved


def test_only_the_first_process_looks_at_its_clock(
    saving: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[int]] = []

    def largest(_: pl.Trainer, numbers: list[int]) -> list[int]:
        calls.append(numbers)
        return [0, 1, len(calls) == 2]

    monkeypatch.setattr(last_state, "largest_of_all", largest)
    for is_first in (True, False):
        calls.clear()
        monkeypatch.setattr(pl.Trainer, "is_global_zero", is_first)
        keep = Noted(tmp_path, minutes=0.0, at_end=False, clock=lambda: 0.0)
        saving(keep).fit(Line(), batches(4))
        # Behind each step and at the end of the epoch: stop, steps until the next time, save.
        assert calls == [[0, is_first, is_first]] * 5
        assert keep.saved == [2]  # as all processes together decided


def state(step: int) -> dict[str, object]:
    return {"state_dict": {"weight": torch.full((3,), float(step))}, "global_step": step}


def saved(folder: Path, *steps: int) -> Path:
    """The file that the states of steps were saved in, one after the other."""
    for step in steps:
        AtomicCheckpointIO().save_checkpoint(state(step), folder / "last.ckpt")
    return folder / "last.ckpt"


def test_a_state_comes_back_and_the_one_before_is_kept(tmp_path: Path) -> None:
    path = saved(tmp_path / "checkpoints", 1, 2, 3)
    assert read_state(path)["global_step"] == 3
    assert read_state(previous_of(path))["global_step"] == 2
    assert sorted(p.name for p in path.parent.iterdir()) == ["last.ckpt", "last.ckpt.previous"]


def test_a_write_that_fails_leaves_the_old_state(tmp_path: Path) -> None:
    path = saved(tmp_path, 1)
    with pytest.raises((AttributeError, TypeError, RuntimeError)):
        AtomicCheckpointIO().save_checkpoint({"state_dict": (x for x in ())}, path)
    assert newest_state(path) == (path, ())
    assert [p.name for p in tmp_path.iterdir()] == ["last.ckpt"]


@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty"])
def test_a_damaged_state_never_takes_the_place_of_the_one_before(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, 1, 2)
    contents = path.read_bytes()
    path.write_bytes(
        {"truncated": contents[: len(contents) // 2], "garbage": b"x" * 99, "empty": b""}[damage]
    )
    state_path, [problem] = newest_state(path)
    assert state_path == previous_of(path)
    assert problem.startswith(f"{path}: ")
    assert "; it is renamed to last.ckpt.unreadable, and the run resumes" in problem
    assert "\n" not in problem  # torch has much to say
    assert newest_state(path) == (previous_of(path), ())
    rename = Path.replace

    def killed(self: Path, target: Path) -> Path:
        if self.suffix == ".tmp":
            raise KeyboardInterrupt
        return rename(self, target)

    # Between the two renames of the next save.
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        AtomicCheckpointIO().save_checkpoint(state(3), path)
    assert newest_state(path) == (previous_of(path), ())
    assert read_state(previous_of(path))["global_step"] == 1


def test_no_readable_state_is_a_fresh_start(tmp_path: Path) -> None:
    assert newest_state(tmp_path / "last.ckpt") == (None, ())
    (tmp_path / "last.ckpt").write_bytes(b"garbage")
    state_path, problems = newest_state(tmp_path / "last.ckpt")
    assert state_path is None
    assert len(problems) == 1


def test_a_state_that_memory_is_too_small_for_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save({"state_dict": {}}, tmp_path / "last.ckpt")

    def load(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9")

    with monkeypatch.context() as patch:
        patch.setattr(torch, "load", load)
        with pytest.raises(RuntimeError, match="can't allocate"):
            newest_state(tmp_path / "last.ckpt")
    assert newest_state(tmp_path / "last.ckpt") == (tmp_path / "last.ckpt", ())


def test_a_pipe_is_no_state(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "last.ckpt")
    with pytest.raises(UnreadableCheckpointError, match="a device or a pipe"):
        read_state(tmp_path / "last.ckpt")


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("pickle was run",))


def test_pickled_objects_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"state_dict": {}, "evil": Evil()}, tmp_path / "last.ckpt")
    with pytest.raises(UnreadableCheckpointError, match=r"last\.ckpt: .*never read\)$"):
        read_state(tmp_path / "last.ckpt")
    assert "pickle was run" not in capsys.readouterr().out


@pytest.mark.parametrize("difference", ["nothing", "seed", "epoch", "batch", "process"])
def test_seeds_epochs_micro_batches_and_processes_alone_draw_other_numbers(
    difference: str, trainer_at: Callable[..., Any]
) -> None:
    drawn = []
    for changed in (False, True):
        torch.rand(1000)  # whatever came before
        numbers = {name: int(changed and name == difference) for name in ("seed", "epoch", "batch")}
        trainer = trainer_at(0)
        trainer.current_epoch = numbers["epoch"]
        trainer.global_rank = int(changed and difference == "process")
        StepSeed(numbers["seed"]).on_train_batch_start(trainer, None, None, numbers["batch"])  # type: ignore[arg-type]
        drawn.append(torch.rand(5))
    assert torch.equal(drawn[0], drawn[1]) == (difference == "nothing")
