"""`train.py sweep plan` and `status` from the command line, and the SLURM example."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import train
from results.provenance import ROOT
from results.record import InoculationFacts, RunRecord
from tests.jobs.harness import queue_of


@pytest.fixture
def config_path(inoculation_config: dict[str, Any], tmp_path: Path) -> Path:
    row = {
        "model": "tiny",
        "original": "first",
        "probe": inoculation_config["probe"],
        "doses": [24],
        "learning_rates": [1.0e-3, 1.0e-4],
        "extras": ["none"],
        "batch_size": 8,
    }
    config = {
        "grid": {
            "models": {"tiny": inoculation_config["model"]},
            "originals": {"first": inoculation_config["original"]},
            "rows": [row],
        },
        "mirror": inoculation_config["mirror"],
        "trainer": {"accelerator": "cpu", "threads": 1},
    }
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def sweep(action: str, config_path: Path, folder: Path) -> int:
    return train.main(["sweep", action, f"--config={config_path}", f"--output_dir={folder}"])


def test_a_plan_says_what_is_to_be_done_and_a_second_one_adds_nothing(
    config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert sweep("plan", config_path, folder) == 0
    out = capsys.readouterr().out
    # The original task, its scores before, two learning rates, the best of them.
    assert "5 cells: 1 original, 1 before, 2 inoculation_cell, 1 inoculation" in out
    assert "0 done, 0 queued before (0 run), 5 queued now" in out
    # 80 questions less a fifth to select and a fifth reserved are 3 batches of 16, in 2 epochs;
    # 24 examples are 3 batches of 8, in 3 epochs, with 2 learning rates: 6 + 18.
    assert "time: 24 steps" in out
    assert "by rule: 6 operations a weight and token" in out
    assert len(list(folder.glob("runs/*/config.yaml"))) == 5
    assert sweep("plan", config_path, folder) == 0
    assert "0 done, 5 queued before (0 run), 0 queued now" in capsys.readouterr().out
    assert sweep("status", config_path, folder) == 0
    assert "0 done, 0 running, 5 waiting, 0 failed of 5" in capsys.readouterr().out


def test_what_runs_and_what_failed_is_shown(
    config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    sweep("plan", config_path, folder)
    queue = queue_of(folder)
    failed = queue.claim(lambda entry: not entry.needs)
    assert failed is not None
    queue.fail(failed, "Traceback ...\nMemoryError: 12 GB\n", max_retries=0)
    running = queue.claim(lambda entry: bool(entry.needs))
    assert running is not None
    metrics = "step,epoch,metric,value\n9,1,train/loss,0.5\n"
    (folder / "runs" / running.key / "metrics.csv").write_text(metrics)
    capsys.readouterr()
    sweep("status", config_path, folder)
    out = capsys.readouterr().out
    assert "0 done, 1 running, 3 waiting, 1 failed of 5" in out
    words = " ".join(out.replace("│", " ").split())
    assert "MemoryError: 12 GB" in words
    assert "step 10, epoch 2" in words
    assert str(running.owner).split(":")[1] in words


def test_without_a_plan_there_is_no_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train.main(["sweep", "work", f"--output_dir={tmp_path}"]) == train.USAGE_ERROR
    assert "no sweep is planned here" in capsys.readouterr().err
    assert train.main(["sweep", "cell", str(tmp_path)]) == train.USAGE_ERROR
    assert "is started by `sweep work`" in capsys.readouterr().err


def test_a_grace_shorter_than_two_heartbeats_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["sweep", "work", f"--output_dir={tmp_path}", "--engine.grace_seconds=1"]
    assert train.main(arguments) == train.USAGE_ERROR
    assert "less than two heartbeats" in capsys.readouterr().err


def test_the_slurm_example_is_valid_shell() -> None:
    path = ROOT / "configs" / "sweep" / "slurm.sh"
    subprocess.run(["bash", "-n", path], check=True)
    assert "train.py sweep work" in path.read_text()


def test_a_choice_made_without_a_failed_candidate_is_made_again(
    config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert sweep("plan", config_path, folder) == 0
    [chosen] = folder.glob("runs/chosen-*")
    [before] = folder.glob("runs/before-*")
    lacking = InoculationFacts(missing=("inoculate-...",))
    for folder_of, facts in ((before, InoculationFacts()), (chosen, lacking)):
        record = RunRecord(protocol="p", inoculation=facts)
        (folder_of / "result.json").write_text(json.dumps(record.to_json()))
    capsys.readouterr()
    assert sweep("plan", config_path, folder) == 0
    assert "1 done, 4 queued before" in capsys.readouterr().out
    assert not (chosen / "result.json").exists()
    assert (before / "result.json").exists()
