from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callbacks import wandb_settings
from callbacks.wandb_guard import WandbGuard
from callbacks.wandb_settings import WandbSettings


class Recorder:
    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments
        self.logged: list[tuple[dict[str, float], int | None]] = []

    def log_metrics(self, values: dict[str, float], step: int | None) -> None:
        self.logged.append((values, step))


class Unreachable(Recorder):
    def log_metrics(self, values: dict[str, float], step: int | None) -> None:
        raise ConnectionError("no route to host")


def test_no_key_means_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandb_settings, "_has_api_key", lambda: False)
    assert WandbSettings(project="p").offline()
    monkeypatch.setattr(wandb_settings, "_has_api_key", lambda: True)
    assert not WandbSettings(project="p").offline()
    assert WandbSettings(project="p", mode="offline").offline()


def test_a_run_has_a_fixed_id_a_group_and_no_uploaded_models(tmp_path: Path) -> None:
    settings = WandbSettings(project="p", group="cell", mode="online")
    guard = WandbGuard(settings, "run-1", {"dose": 3}, tmp_path, make=Recorder)
    arguments = guard._inner.arguments
    assert arguments["id"] == "run-1"
    assert arguments["group"] == "cell"
    assert arguments["log_model"] is False
    assert arguments["resume"] == "allow"
    guard.log_metrics({"loss": 1.0}, 4)
    assert guard._inner.logged == [({"loss": 1.0}, 4)]


def test_a_failure_is_one_warning_and_then_silence(tmp_path: Path) -> None:
    guard = WandbGuard(WandbSettings(project="p"), "run", {}, tmp_path, make=Unreachable)
    with pytest.warns(RuntimeWarning, match="no route to host"):
        guard.log_metrics({"loss": 1.0}, 0)
    guard.log_metrics({"loss": 1.0}, 1)
    guard.summarise({"accuracy": 1.0})
    guard.close()


def test_a_failing_start_does_not_stop_a_run(tmp_path: Path) -> None:
    def broken(**_: Any) -> None:
        raise RuntimeError("wandb service died")

    with pytest.warns(RuntimeWarning, match="wandb service died"):
        guard = WandbGuard(WandbSettings(project="p"), "run", {}, tmp_path, make=broken)
    guard.log_metrics({"loss": 1.0}, 0)
