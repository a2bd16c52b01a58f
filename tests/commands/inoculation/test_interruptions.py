"""An inoculation that is killed, stopped, damaged or divided ends with the same bytes."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from probelight.commands.inoculation.inoculate import InoculationRun
from tests.commands.inoculation.conftest import assert_same, run
from tests.fixtures import faults
from tests.fixtures.checkout import ROOT
from tests.fixtures.faults import TRAINING_STEP, run_with_fault
from tests.fixtures.rows import read_results
from tests.fixtures.small_disk import fill, small_disk

BALLAST = "ballast"


def run_killed(
    config: dict[str, Any],
    output_dir: Path,
    tmp_path: Path,
    kill_at: int,
    fault: faults.Fault = faults.kill,
    method: str = TRAINING_STEP,
) -> subprocess.CompletedProcess[str]:
    """A run that meets a fault at its `kill_at`-th step."""
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    arguments = ["inoculate", f"--config={path}", f"--output_dir={output_dir}"]
    return run_with_fault(arguments, kill_at, fault, method)


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
    kinds: dict[str, tuple[faults.Fault, int]] = {"SIGKILL": (faults.kill, -9)}
    kinds |= {"SIGTERM": (faults.terminate, 143), "exception": (faults.cough, 1)}
    kinds["full disk"] = (partial(fill, disturbed / BALLAST), 1)
    met: list[str] = []
    while not list(disturbed.glob("runs/inoculate-*/result.json")):
        kind = rng.choice([*kinds, "truncated", "garbage"])
        state = newest_state_of(disturbed)
        if kind == "truncated" and state is not None:
            state.write_bytes(state.read_bytes()[: rng.randrange(1, state.stat().st_size)])
        elif kind == "garbage" and state is not None:
            state.write_bytes(rng.randbytes(2000))
        # The second or third step of each start: one at least is new, and kept.
        fault, exit_code = kinds.get(kind, kinds["SIGKILL"])
        done = run_killed(config, disturbed, tmp_path, rng.choice([2, 2, 3]), fault)
        if done.returncode == 0:
            break
        assert done.returncode == exit_code, done.stderr
        if kind not in kinds and state is not None:
            assert "not a readable training state" in done.stderr
        if kind == "full disk":
            assert "No space left on device" in done.stderr
            (disturbed / BALLAST).unlink()
        met.append(kind)
        assert len(met) < 80, "no progress"
    assert len(met) >= 20
    assert set(met) == {*kinds, "truncated", "garbage"}
    assert_same(disturbed, tmp_path / "undisturbed")


def newest_state_of(folder: Path) -> Path | None:
    """The state that the next start goes on from, if there is one."""
    states = folder.glob("runs/*/checkpoints/last.ckpt")
    return next((s for s in states if not (s.parents[1] / "result.json").exists()), None)


@pytest.mark.thorough
def test_sigterm_saves_the_state_and_exits_with_143(
    finished: Path, inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    trainer = {**inoculation_config["trainer"], "checkpoint_every": 99}
    config, out = {**inoculation_config, "trainer": trainer}, tmp_path / "stopped"
    stopped = run_killed(config, out, tmp_path, 2, faults.terminate)
    assert stopped.returncode == 143, stopped.stderr
    assert list(out.glob("runs/original-*/checkpoints/last.ckpt"))
    assert run(config, out, tmp_path) == 0
    assert_same(out, finished)


@pytest.mark.slow
def test_sigterm_in_each_validation_changes_nothing(
    inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    # With a budget of one token each item is a batch: 16 in a validation of the original task,
    # 60 in one of the inoculation: 24 of the dose, 20 and 16 to select with.
    trainer = {**inoculation_config["trainer"], "max_eval_tokens": 1}
    config = {**inoculation_config, "trainer": trainer}
    reference, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert run(config, reference, tmp_path) == 0
    validation = TRAINING_STEP.replace("training_step", "validation_step")
    # Each start repeats the validation that the one before it died in, and dies in the next.
    for kill_at in (3, 16 + 3, 16 + 3, 60 + 3, 60 + 3):
        done = run_killed(config, stopped, tmp_path, kill_at, faults.terminate, validation)
        assert done.returncode == 143, done.stderr
    assert run(config, stopped, tmp_path) == 0
    assert_same(stopped, reference)


def test_scores_before_that_were_removed_while_the_run_trained_are_there_at_its_end(
    inoculation_config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, removed = InoculationRun.train, []

    def train_and_remove(self: InoculationRun, *arguments: Any) -> Any:
        removed.append((self.run.path / "before.json").read_bytes())
        (self.run.path / "before.json").unlink()
        return original(self, *arguments)

    monkeypatch.setattr(InoculationRun, "train", train_and_remove)
    assert run(inoculation_config, tmp_path / "out", tmp_path) == 0
    [path] = tmp_path.glob("out/runs/*/before.json")
    assert [path.read_bytes()] == removed


@pytest.mark.slow
def test_kills_where_items_are_kept_change_nothing(
    inoculation_config: dict[str, Any], second_worded: Path, tmp_path: Path
) -> None:
    probe = {"name": str(second_worded), "phrasings": ["all"]}
    config = {**inoculation_config, "probe": {**inoculation_config["probe"], **probe}}
    path, reference, killed = tmp_path / "config.yaml", tmp_path / "whole", tmp_path / "killed"
    assert run(config, reference, tmp_path) == 0
    arguments = ["inoculate", f"--config={path}", f"--output_dir={killed}"]
    for where, call in (
        ("probelight.results.run_folder.RunFolder.write", 1),
        (
            "probelight.commands.inoculation.inoculate.write_scores_before",
            1,
        ),  # scored, not yet kept
        ("probelight.callbacks.run_metrics.ItemHistory.on_validation_epoch_end", 2),
        ("probelight.commands.inoculation.inoculate.dynamics_lines", 1),  # trained
        ("probelight.commands.inoculation.inoculate.write_predictions", 1),
        ("probelight.results.run_folder.RunFolder.write_lines", 1),  # hits.json
    ):
        assert run_with_fault(arguments, call, method=where).returncode == -9, where
    assert run(config, killed, tmp_path) == 0
    assert_same(killed, reference)
    [saved] = reference.glob("runs/inoculate-*/before.json")
    again = killed / saved.relative_to(reference)
    assert again.read_bytes() == saved.read_bytes()
    assert (again.parent / "hits.json").read_bytes() == (saved.parent / "hits.json").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["replay", "l2_sp", "distillation"])
def test_kills_of_a_run_that_keeps_what_was_known_change_nothing(
    method: str, inoculation_config: dict[str, Any], tmp_path: Path
) -> None:
    config = {**inoculation_config, "keeping": method}
    reference, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(config, reference, tmp_path) == 0
    for step in (12, 2):  # 8 of them train the original task
        done = run_killed(config, killed, tmp_path, step)
        assert done.returncode == -9, done.stderr
    assert run(config, killed, tmp_path) == 0
    assert_same(killed, reference)
    [trained] = reference.glob("runs/inoculate-*")
    assert f"-none-{method}" in trained.name


@pytest.mark.slow
def test_two_processes_inoculate_like_one(
    inoculation_config: dict[str, Any], tiny_model: Path, second_worded: Path, tmp_path: Path
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
        probe = {"name": str(second_worded), "phrasings": ["all"]}
        settings["probe"] = {**inoculation_config["probe"], **probe}
        path.write_text(yaml.safe_dump({**inoculation_config, **settings}))
        # DDP starts the second process with the first one's command, so it must be a script.
        command = [sys.executable, str(ROOT / "train.py"), "inoculate", f"--config={path}"]
        done = subprocess.run([*command, f"--output_dir={folder}"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        rows.append(read_results(folder / "results.csv"))
    assert len(rows[0]) == len(rows[1]) > 20
    for single, double in zip(*rows, strict=True):
        assert (single["metric"], single["epoch"]) == (double["metric"], double["epoch"])
        assert float(single["value"]) == pytest.approx(float(double["value"]), abs=1e-6)
