"""The baselines' configs run as they stand, on the shipped probes and vectors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from probelight.protocols import cli
from tests.fixtures.checkout import ROOT


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("fit_mlm_baseline", ["--trainer.max_epochs=3", "--data.num_train=64"]),
        (
            "fit_esim",
            [
                "--trainer.max_epochs=1",
                "--data.num_train=32",
                "--trainer.limit_val_batches=1",
                "--model.init_args.hidden_size=8",
            ],
        ),
    ],
)
def test_fit(name: str, more: list[str], tmp_path: Path) -> None:
    config = ROOT / "configs" / "experiment" / f"{name}.yaml"
    command = ["fit", f"--config={config}", f"--output_dir={tmp_path}", "--trainer.accelerator=cpu"]
    assert cli.main([*command, *more]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert 0 <= result["scores"]["val/accuracy"] <= 1
    ran = yaml.safe_load((tmp_path / "config.yaml").read_text())
    [stop] = ran["trainer"]["callbacks"]
    assert stop["class_path"].endswith("EarlyStopping")
    assert (stop["init_args"]["patience"], stop["init_args"]["monitor"]) == (10, "val/accuracy")


@pytest.mark.parametrize(
    ("name", "batch_size", "decay"), [("fit_mlm_baseline", 16, 0.1), ("fit_esim", 32, None)]
)
def test_the_authors_settings(name: str, batch_size: int, decay: float | None) -> None:
    path = ROOT / "configs" / "experiment" / f"{name}.yaml"
    config = yaml.safe_load(path.read_text())
    given = config["model"]["init_args"]
    assert (given["learning_rate"], given["max_grad_norm"]) == (4e-4, 10.0)
    assert given.get("weight_decay") == decay
    assert config["trainer"]["max_epochs"] == 75
    assert config["data"]["init_args"]["batch_size"] == batch_size
