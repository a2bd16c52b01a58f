from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoConfig, AutoModelForMultipleChoice, AutoTokenizer

import train
from protocols.cli.errors import FAILURE
from protocols.engine.models import saved_module
from protocols.inoculation.steps import InoculationSteps
from results.provenance import ROOT
from results.row import read_results
from results.run_folder import RunFolder
from tests.fixtures.small_disk import small_disk

BALLAST = "ballast"
KILLER = """
import os, signal, sys
from pathlib import Path
from lightning_modules.base import ChoiceModule
from tests.fixtures import small_disk

start, kill_at = ChoiceModule.{method}, int(sys.argv.pop(1))
seen = [0]

def {method}(self, batch, batch_idx, *place):
    seen[0] += 1
    if seen[0] == kill_at:
        {fault}
    return start(self, batch, batch_idx, *place)

ChoiceModule.{method} = {method}
import train
sys.exit(train.main(sys.argv[1:]))
"""


def run(config: dict[str, Any], output_dir: Path, tmp_path: Path) -> int:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return train.main(["inoculate", "--config", str(path), "--output_dir", str(output_dir)])


def run_killed(
    config: dict[str, Any],
    output_dir: Path,
    tmp_path: Path,
    kill_at: int,
    signal: str = "SIGKILL",
    method: str = "training_step",
) -> subprocess.CompletedProcess[str]:
    """A run that meets a fault at its `kill_at`-th step: a signal, "exception" or "full disk"."""
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    arguments = ["inoculate", "--config", str(path), "--output_dir", str(output_dir)]
    fault = f"os.kill(os.getpid(), signal.{signal})"
    if signal == "exception":
        fault = "raise RuntimeError('the machine coughed')"
    elif signal == "full disk":
        fault = f"small_disk.fill(Path({str(output_dir / BALLAST)!r}))"
    killer = KILLER.replace("{fault}", fault).replace("{method}", method)
    return subprocess.run(
        [sys.executable, "-c", killer, str(kill_at), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def assert_same(one: Path, two: Path) -> None:
    first, second = outcome(one), outcome(two)
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def outcome(folder: Path) -> dict[str, Any]:
    """Everything that must not depend on an interruption."""
    found: dict[str, Any] = {"results": (folder / "results.csv").read_bytes()}
    for path in sorted(folder.glob("runs/*/**/*")):
        if path.name in {
            "model.safetensors",
            "head.safetensors",
            "predictions.jsonl",
            "metrics.csv",
        }:
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


@pytest.fixture
def finished(inoculation_config: dict[str, Any], tmp_path: Path) -> Path:
    output_dir = tmp_path / "out"
    assert run(inoculation_config, output_dir, tmp_path) == 0
    return output_dir


def test_an_inoculation_reports_what_its_predictions_say(finished: Path) -> None:
    rows = read_results(finished / "results.csv")
    reported = {
        row["metric"]: float(row["value"])
        for row in rows
        if row["protocol"] == "inoculation" and row["split"] == "report" and not row["subset"]
    }
    [path] = finished.glob("runs/inoculate-*/predictions.jsonl")
    said = [json.loads(line) for line in path.read_text().splitlines()]
    share = {
        name: [row["correct"] for row in said if row["set"] == name]
        for name in {row["set"] for row in said}
    }
    assert {name: len(hits) for name, hits in share.items()} == {
        "report_probe": 22,
        "report_probe_before": 22,
        "report_original": 22,
        "report_original_before": 22,
    }
    mean = {name: sum(hits) / 22 for name, hits in share.items()}
    assert reported["probe_accuracy"] == pytest.approx(mean["report_probe"])
    assert reported["probe_accuracy_before"] == pytest.approx(mean["report_probe_before"])
    cost = mean["report_original_before"] - mean["report_original"]
    assert reported["inoculation_cost"] == pytest.approx(cost)
    average = (mean["report_probe"] + mean["report_original"]) / 2
    assert reported["aggregate"] == pytest.approx(average)
    for row in said:
        assert len(row["scores"]) == 5
        assert row["prediction"] == row["scores"].index(max(row["scores"]))
        assert row["correct"] == (row["prediction"] == row["answer"])


def test_a_model_is_scored_with_as_many_choices_as_it_was_trained_with(
    inoculation_config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six here, of questions with five: by the inoculation and by whoever scores the folder."""
    original = {**inoculation_config["original"], "num_choices": 6, "epochs": 1}
    config = {**inoculation_config, "original": original, "epochs": 1}
    assert run(config, tmp_path / "out", tmp_path) == 0
    [path] = tmp_path.glob("out/runs/inoculate-*/predictions.jsonl")
    said = [json.loads(line) for line in path.read_text().splitlines()]
    mirror = inoculation_config["mirror"]
    for name, probe, reported in (
        ("original", "first", "report_original_before"),
        ("inoculate", "second", "report_probe"),
    ):
        [folder] = tmp_path.glob(f"out/runs/{name}-*/checkpoints/best")
        command = ["zero-shot", "--data.path", f"{mirror}/tiny/{probe}/test.jsonl"]
        command += ["--data.setup", "mc_qa", "--model.name_or_path", str(folder)]
        command += ["--trainer.progress_bar", "false", "--output_dir", str(tmp_path / name)]
        assert train.main(command) == 0
        [lines] = tmp_path.glob(f"{name}/runs/*/predictions.jsonl")
        alone = {row["id"]: row["scores"] for row in map(json.loads, lines.open())}
        before = {row["id"]: row["scores"] for row in said if row["set"] == reported}
        assert {len(scores) for scores in before.values()} == {6}
        assert alone.keys() == before.keys()
        for item, scores in before.items():
            assert alone[item] == pytest.approx(scores, abs=1e-5)
    [folder] = tmp_path.glob("out/runs/original-*/checkpoints/best")
    other = {**original, "num_choices": 5, "checkpoint": str(folder)}
    capsys.readouterr()
    assert run({**config, "original": other}, tmp_path / "other", tmp_path) == FAILURE
    [said_last] = [x for x in capsys.readouterr().err.splitlines() if x.startswith("train.py")]
    assert f"{folder} was saved with num_choices 6; num_choices=5 does not fit it" in said_last


@pytest.mark.parametrize(
    ("pattern", "name", "text"),
    [
        ("original-*", "checkpoints/best/tokenizer.json", None),
        ("original-*", "checkpoints/best/chosen.json", ""),
        ("original-*", "result.json", "{}"),
        ("inoculate-*", "result.json", ""),
    ],
)
def test_damaged_files_of_a_finished_run_are_named(
    pattern: str,
    name: str,
    text: str | None,
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = {**inoculation_config, "epochs": 1}
    config["original"] = {**config["original"], "epochs": 1}
    assert run(config, tmp_path / "out", tmp_path) == 0
    [folder] = tmp_path.glob(f"out/runs/{pattern}")
    if name.startswith("checkpoints"):  # the original model is used again by another dose
        [finished] = tmp_path.glob("out/runs/inoculate-*/result.json")
        finished.unlink()
    (folder / name).unlink() if text is None else (folder / name).write_text(text)
    capsys.readouterr()
    assert run(config, tmp_path / "out", tmp_path) == FAILURE
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert f"{folder / name}: " in said
    assert f"remove {folder}" in said


def test_every_epoch_is_a_candidate_and_the_best_average_is_chosen(finished: Path) -> None:
    rows = read_results(finished / "results.csv")
    trajectory: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["protocol"] == "inoculation" and row["split"] == "selection":
            trajectory.setdefault(row["epoch"], {})[row["metric"]] = float(row["value"])
    assert list(trajectory) == ["0", "1", "2", "3"]
    for scores in trajectory.values():
        average = (scores["probe_accuracy"] + scores["original_accuracy"]) / 2
        assert scores["aggregate"] == pytest.approx(average)
    candidates = {epoch: s for epoch, s in trajectory.items() if epoch != "0"}
    best = max(
        candidates, key=lambda e: (candidates[e]["aggregate"], candidates[e]["original_accuracy"])
    )
    chosen = {row["epoch"] for row in rows if row["split"] == "report" and row["dose"]}
    assert chosen == {best}


def test_the_same_command_is_complete_and_another_one_refused(
    finished: Path,
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = outcome(finished)
    assert run(inoculation_config, finished, tmp_path) == 0
    assert "complete" in capsys.readouterr().out
    assert outcome(finished) == before
    assert run({**inoculation_config, "dose": 25}, finished, tmp_path) == train.USAGE_ERROR
    assert "-dose: 24\n+dose: 25" in capsys.readouterr().err


def test_three_kills_change_nothing(
    finished: Path, inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    disturbed = tmp_path / "disturbed"
    # In the first epoch of the original task, in its second, in the inoculation.
    for kill_at in (2, 4, 6):
        killed = run_killed(inoculation_config, disturbed, tmp_path, kill_at)
        assert killed.returncode == -9, killed.stderr
    assert run(inoculation_config, disturbed, tmp_path) == 0
    assert_same(disturbed, finished)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "48m") as folder:
        yield folder


@pytest.mark.slow
def test_twenty_faults_of_six_kinds_change_nothing(
    inoculation_config: dict[str, Any], tmp_path: Path, disk: Path
) -> None:
    config = {**inoculation_config, "epochs": 8}
    config["original"] = {**inoculation_config["original"], "epochs": 4}  # 12 + 24 steps in all
    assert run(config, tmp_path / "undisturbed", tmp_path) == 0
    disturbed = disk / "disturbed"
    rng = random.Random(0)
    exits = {"SIGKILL": -9, "SIGTERM": 143, "exception": 1, "full disk": 1}
    met: list[str] = []
    while not list(disturbed.glob("runs/inoculate-*/result.json")):
        kind = rng.choice([*exits, "truncated", "garbage"])
        state = newest_state_of(disturbed)
        if kind == "truncated" and state is not None:
            state.write_bytes(state.read_bytes()[: rng.randrange(1, state.stat().st_size)])
        elif kind == "garbage" and state is not None:
            state.write_bytes(rng.randbytes(2000))
        signal = kind if kind in exits else "SIGKILL"
        # The second or third step of each start: one at least is new, and kept.
        done = run_killed(config, disturbed, tmp_path, rng.choice([2, 2, 3]), signal)
        if done.returncode == 0:
            break
        assert done.returncode == exits[signal], done.stderr
        if kind not in exits and state is not None:
            assert "not a readable training state" in done.stderr
        if kind == "full disk":
            assert "No space left on device" in done.stderr
            (disturbed / BALLAST).unlink()
        met.append(kind)
        assert len(met) < 80, "no progress"
    assert len(met) >= 20
    assert set(met) == {*exits, "truncated", "garbage"}
    assert_same(disturbed, tmp_path / "undisturbed")


def newest_state_of(folder: Path) -> Path | None:
    """The state that the next start goes on from, if there is one."""
    states = folder.glob("runs/*/checkpoints/last.ckpt")
    return next((s for s in states if not (s.parents[1] / "result.json").exists()), None)


def test_sigterm_saves_the_state_and_exits_with_143(
    finished: Path, inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    config = {
        **inoculation_config,
        "trainer": {**inoculation_config["trainer"], "checkpoint_every": 99},
    }
    stopped = run_killed(config, tmp_path / "stopped", tmp_path, 2, "SIGTERM")
    assert stopped.returncode == 143, stopped.stderr
    assert list((tmp_path / "stopped").glob("runs/original-*/checkpoints/last.ckpt"))
    assert run(config, tmp_path / "stopped", tmp_path) == 0
    assert_same(tmp_path / "stopped", finished)


@pytest.mark.slow
def test_sigterm_in_each_validation_changes_nothing(
    inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    # With a budget of one token each item is a batch: 16 in a validation of the original task,
    # 36 in one of the inoculation.
    trainer = {**inoculation_config["trainer"], "max_eval_tokens": 1}
    config = {**inoculation_config, "trainer": trainer}
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert run(config, whole, tmp_path) == 0
    # Each start repeats the validation that the one before it died in, and dies in the next.
    for kill_at in (3, 16 + 3, 16 + 3, 36 + 3, 36 + 3):
        done = run_killed(config, stopped, tmp_path, kill_at, "SIGTERM", "validation_step")
        assert done.returncode == 143, done.stderr
    assert run(config, stopped, tmp_path) == 0
    assert_same(stopped, whole)


def test_a_damaged_state_is_said_and_the_run_ends_the_same(
    finished: Path, inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    disturbed = tmp_path / "disturbed"
    assert run_killed(inoculation_config, disturbed, tmp_path, 3).returncode == -9
    [state] = disturbed.glob("runs/original-*/checkpoints/last.ckpt")
    state.write_bytes(state.read_bytes()[:1000])
    with pytest.warns(RuntimeWarning, match="last.ckpt: not a readable training state"):
        assert run(inoculation_config, disturbed, tmp_path) == 0
    assert_same(disturbed, finished)


def test_scores_before_that_were_removed_while_the_run_trained_are_there_at_its_end(
    inoculation_config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, removed = InoculationSteps.train, []

    def train_and_remove(self: InoculationSteps, run: RunFolder, *arguments: Any) -> Any:
        removed.append((run.path / "before.json").read_bytes())
        (run.path / "before.json").unlink()
        return original(self, run, *arguments)

    monkeypatch.setattr(InoculationSteps, "train", train_and_remove)
    assert run(inoculation_config, tmp_path / "out", tmp_path) == 0
    [path] = tmp_path.glob("out/runs/*/before.json")
    assert [path.read_bytes()] == removed


def test_a_dose_that_is_too_large_is_a_usage_error(
    inoculation_config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run({**inoculation_config, "dose": 1000}, tmp_path / "out", tmp_path) == train.USAGE_ERROR
    )
    assert "only 60 probe examples are left" in capsys.readouterr().err


@pytest.mark.slow
def test_two_processes_inoculate_like_one(
    inoculation_config: dict[str, Any], tiny_model: Path, tmp_path: Path
) -> None:
    model = tmp_path / "tiny"
    shutil.copytree(tiny_model, model)
    # Each process drops other units, so equality is asked of a model without dropout.
    config = json.loads((model / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (model / "config.json").write_text(json.dumps(config))
    rows = []
    for devices in (1, 2):
        trainer = {**inoculation_config["trainer"], "devices": devices, "strategy": "ddp"}
        settings = {"model": {"name_or_path": str(model), "max_length": 32}, "trainer": trainer}
        path, folder = tmp_path / f"{devices}.yaml", tmp_path / f"out{devices}"
        path.write_text(yaml.safe_dump({**inoculation_config, **settings}))
        # DDP starts the second process with the first one's command, so it must be a script.
        command = [sys.executable, str(ROOT / "train.py"), "inoculate", f"--config={path}"]
        done = subprocess.run([*command, f"--output_dir={folder}"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        rows.append(read_results(folder / "results.csv"))
    assert len(rows[0]) == len(rows[1]) > 20
    for one, two in zip(*rows, strict=True):
        assert (one["metric"], one["epoch"]) == (two["metric"], two["epoch"])
        assert float(one["value"]) == pytest.approx(float(two["value"]), abs=1e-6)


def test_a_model_that_was_fine_tuned_elsewhere_is_inoculated(
    inoculation_config: dict[str, Any], tiny_model: Path, tmp_path: Path
) -> None:
    theirs = AutoModelForMultipleChoice.from_config(AutoConfig.from_pretrained(tiny_model))
    theirs.save_pretrained(tmp_path / "theirs")
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(tmp_path / "theirs")
    inoculation_config["original"]["checkpoint"] = str(tmp_path / "theirs")
    inoculation_config["epochs"] = 1
    assert run(inoculation_config, tmp_path / "out", tmp_path) == 0
    [best] = (tmp_path / "out" / "runs").glob("inoculate-*/checkpoints/best")
    inoculated = AutoModelForMultipleChoice.from_pretrained(best)
    weights = inoculated.classifier.weight, theirs.classifier.weight
    assert not torch.equal(*weights)
    assert saved_module(best).num_choices == 5
