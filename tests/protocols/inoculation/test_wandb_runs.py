"""What an inoculation leaves in Weights & Biases: the real command, trainer and client, offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import wandb
import yaml

import train
from callbacks.wandb.guard import WandbGuard
from tests.callbacks.wandb.offline_run import OfflineRun, read_offline_run
from tests.fixtures.rows import read_results


class Patient(WandbGuard):
    """Waits for the client of a busy machine, which is closed at the end of the test."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.patience = 120.0


@pytest.fixture
def offline(
    inoculation_config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder of a finished inoculation: 30 items, so that steps are of 16 and 14."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setattr("callbacks.wandb.ending.WandbGuard", Patient)
    config = {**inoculation_config, "dose": 30, "batch_size": 16}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    command = ["inoculate", f"--config={tmp_path / 'config.yaml'}", "--wandb.project=p"]
    out = tmp_path / "out"
    try:
        assert train.main([*command, "--wandb.mode=offline", f"--output_dir={out}"]) == 0
    finally:
        wandb.teardown()
    return out


def run_of(folder: Path, name: str) -> OfflineRun:
    [run] = folder.glob(f"runs/{name}-*")
    return read_offline_run(run)


def test_the_runs_hold_their_config_every_epoch_and_the_report(offline: Path) -> None:
    run, original = run_of(offline, "inoculate"), run_of(offline, "original")
    [path] = offline.glob("runs/inoculate-*/config.yaml")
    resolved = yaml.safe_load(path.read_text())
    assert {key: run.config[key] for key in resolved} == resolved
    assert original.config["original"]["name"] == "first"
    assert run.logged("learning_curve/num_examples") == [30, 60, 90]
    epochs = [row["epoch"] for row in run.history if "val/aggregate" in row]
    assert epochs == [1, 2, 3]
    assert run.summary["best_epoch"] in epochs
    reported = {
        row["metric"]: float(row["value"])
        for row in read_results(offline / "results.csv")
        if (row["protocol"], row["split"], row["subset"]) == ("inoculation", "report", "")
    }
    # A random model is at chance, so there was nothing to lose: the report prints no cost.
    assert "inoculation_cost" in reported
    assert run.summary["cost_interpretable"] == 0
    assert run.logged("inoculation_cost") == []
    shown = {f"report/{k}": v for k, v in reported.items() if k != "inoculation_cost"}
    assert {k: v for k, v in run.summary.items() if k.startswith("report/")} == shown
    assert "inoculation_cost" not in run.summary
    assert "report/accuracy" in original.summary
