from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pytorch_lightning.strategies import FSDPStrategy

from probelight.callbacks.aggregate_checkpoint import (
    AGGREGATE,
    HELD_OUT,
    ORIGINAL,
    AggregateCheckpoint,
    Patience,
)


@pytest.fixture
def saved_in(trainer_at: Callable[..., Any]) -> Callable[..., list[int]]:
    """Validates a fit with scores (probe, original) and returns the epochs whose model is saved."""

    def validate(keep: AggregateCheckpoint, scores: list[tuple[float, float]]) -> list[int]:
        epochs: list[int] = []
        for epoch, (probe, original) in enumerate(scores, start=1):
            metrics = {"probe": probe, "original": original}
            trainer = trainer_at(10 * epoch, **metrics, aggregate=(probe + original) / 2)
            trainer.current_epoch = epoch - 1
            module: Any = SimpleNamespace(
                save_pretrained=lambda _, epoch=epoch: epochs.append(epoch)
            )
            keep.on_validation_end(trainer, module)
        return epochs

    return validate


@pytest.mark.parametrize(
    ("monitor", "scores", "saved"),
    [
        # Averages 0.5, 0.65, 0.6: the second epoch, although the third knows the probe best.
        (AGGREGATE, [(0.25, 0.75), (0.625, 0.675), (0.9, 0.3)], [1, 2]),
        # A tie goes to the lower cost, then to the earlier epoch.
        (AGGREGATE, [(0.75, 0.25), (0.25, 0.75), (0.25, 0.75)], [1, 2]),
        # (0.1 + 0.5) / 2 and (0.2 + 0.4) / 2 are both 0.3, but not in binary.
        (AGGREGATE, [(0.2, 0.4), (0.1, 0.5)], [1, 2]),
        (AGGREGATE, [(0.1, 0.5), (0.2, 0.4)], [1]),
        (ORIGINAL, [(0.9, 0.5), (0.0, 0.6)], [1, 2]),
    ],
)
def test_the_best_score_is_kept(
    monitor: str,
    scores: list[tuple[float, float]],
    saved: list[int],
    saved_in: Callable[..., list[int]],
    tmp_path: Path,
) -> None:
    keep = AggregateCheckpoint(tmp_path / "best", monitor=monitor)
    assert keep.best is None
    assert saved_in(keep, scores) == saved
    assert keep.best is not None
    assert (keep.best["epoch"], keep.best["step"]) == (saved[-1], 10 * saved[-1])


def test_its_memory_is_part_of_the_training_state(
    saved_in: Callable[..., list[int]], tmp_path: Path
) -> None:
    first, second = AggregateCheckpoint(tmp_path / "best"), AggregateCheckpoint(tmp_path / "best")
    assert saved_in(first, [(0.5, 0.5)]) == [1]
    second.load_state_dict(first.state_dict())
    assert saved_in(second, [(0.5, 0.25)]) == []


def test_an_unknown_monitor_no_patience_and_a_missing_score_are_errors(
    trainer_at: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="val/aggregate"):
        AggregateCheckpoint(tmp_path, monitor="val/loss")
    with pytest.raises(ValueError, match="patience=0"):
        Patience(AggregateCheckpoint(tmp_path, monitor=HELD_OUT), 0)
    with pytest.raises(RuntimeError, match="val/aggregate was not logged"):
        AggregateCheckpoint(tmp_path / "best").on_validation_end(trainer_at(1), None)  # type: ignore[arg-type]


def test_under_fsdp_every_process_gathers_and_the_first_one_writes(
    trainer_at: Callable[..., Any], tmp_path: Path
) -> None:
    class Sharded(FSDPStrategy):
        gathered = 0

        def lightning_module_state_dict(self) -> dict[str, Any]:
            self.gathered += 1
            return {"whole": torch.ones(1)}

    class Saver:
        def save_pretrained(self, folder: Path, state_dict: dict[str, Any]) -> None:
            written_keys.append(sorted(state_dict))

    written_keys: list[list[str]] = []
    for rank in (0, 1):
        trainer = trainer_at(1, original=0.5)
        trainer.is_global_zero, trainer.strategy = rank == 0, Sharded()
        module: Any = Saver()
        AggregateCheckpoint(tmp_path / "best", ORIGINAL).on_validation_end(trainer, module)
        assert trainer.strategy.gathered == 1
    assert written_keys == [["whole"]]


@pytest.mark.parametrize(
    ("scores", "stopped"),
    [
        ([], False),
        ([0.5], False),
        ([0.5, 0.4], False),
        ([0.5, 0.4, 0.4], True),
        # as good as the best is not better: the earlier epoch is kept
        ([0.5, 0.5, 0.5], True),
        ([0.5, 0.4, 0.6], False),
        ([0.5, 0.4, 0.6, 0.5, 0.6], True),
    ],
)
def test_it_stops_two_validations_behind_the_best(
    scores: list[float], stopped: bool, tmp_path: Path
) -> None:
    keep = AggregateCheckpoint(tmp_path / "best", monitor=HELD_OUT)
    keep.history = [{HELD_OUT: s, "epoch": e, "step": e} for e, s in enumerate(scores, start=1)]
    for hook in ("on_train_epoch_end", "on_fit_start"):  # the second: a run that was resumed
        trainer: Any = SimpleNamespace(should_stop=False)
        getattr(Patience(keep, 2), hook)(trainer, None)
        assert trainer.should_stop == stopped
