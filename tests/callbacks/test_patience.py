from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probelight.callbacks.aggregate_checkpoint import HELD_OUT, AggregateCheckpoint
from probelight.callbacks.patience import Patience


@pytest.mark.parametrize(
    ("scores", "stopped"),
    [
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


def test_before_the_first_validation_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    trainer: Any = SimpleNamespace(should_stop=False)
    Patience(AggregateCheckpoint(tmp_path, monitor=HELD_OUT), 1).on_fit_start(trainer, None)  # type: ignore[arg-type]
    assert not trainer.should_stop


def test_no_patience_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="patience=0"):
        Patience(AggregateCheckpoint(tmp_path, monitor=HELD_OUT), 0)
