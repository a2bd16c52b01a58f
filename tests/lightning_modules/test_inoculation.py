from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from probelight.lightning_modules.inoculation import Inoculation
from tests.lightning_modules.table import ROWS, Table, batch, loader


class Rows(Table):
    def __init__(self) -> None:
        super().__init__(ROWS)
        self.saved: tuple[str | Path, dict[str, Any]] | None = None

    def encoder(self) -> Any:
        return "the task's own"

    def save_pretrained(self, folder: str | Path, **options: Any) -> None:
        self.saved = (folder, options)


def test_it_scores_and_encodes_as_its_task() -> None:
    task = Rows()
    module = Inoculation(task)
    torch.testing.assert_close(module(batch([2, 0])), torch.tensor([ROWS[2], ROWS[0]]))
    assert module.encoder() == "the task's own"
    assert {name for name, _ in module.named_parameters()} == {"task.rows"}


def test_the_aggregate_is_the_mean_of_the_two_accuracies(quiet_trainer: Callable[..., Any]) -> None:
    module = Inoculation(Rows())
    module.evaluation_names = ["probe", "original"]
    # Of the probe one of two is right, of the original task two of three.
    sets = [loader([0, 1]), loader([0, 2], [3])]
    [scores, _] = quiet_trainer().validate(module, sets, verbose=False)
    assert scores["val/probe_accuracy"] == 0.5
    assert scores["val/aggregate"] == pytest.approx((0.5 + 2 / 3) / 2)


def test_without_both_sets_there_is_no_aggregate(quiet_trainer: Callable[..., Any]) -> None:
    module = Inoculation(Rows())
    module.evaluation_names = ["probe", "other"]
    with pytest.raises(RuntimeError, match="val/original_accuracy missing"):
        quiet_trainer().validate(module, [loader([0]), loader([1])], verbose=False)


def test_what_is_saved_is_the_task_with_its_own_names(tmp_path: Path) -> None:
    task = Rows()
    module = Inoculation(task)
    module.save_pretrained(tmp_path)
    assert task.saved == (tmp_path, {})
    gathered = {"task.rows": torch.zeros(4, 3), "loss.weight": torch.ones(1)}
    module.save_pretrained(tmp_path, gathered)
    assert task.saved is not None
    [state] = task.saved[1].values()
    assert list(state) == ["rows"]
    assert state["rows"] is gathered["task.rows"]
