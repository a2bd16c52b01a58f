"""Adapters through original tasks, inoculations, sweeps and curves, from end to end."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from probelight import cli
from probelight.commands.inoculation import command as inoculation
from probelight.commands.inoculation import original_task, runs
from probelight.commands.inoculation.sweep import SweepGrid, sweep_jobs
from probelight.models.tuning import Tuning
from probelight.runs.context import RunContext
from probelight.runs.estimates import plan_of
from probelight.runs.spec import Job
from probelight.training.modules import saved_module
from tests.commands.inoculation.conftest import KEPT, assert_same, run
from tests.commands.inoculation.test_interruptions import run_killed
from tests.fixtures.tiny import Refused, make_runs

LORA = {"method": "lora", "rank": 2, "dropout": 0.2}


@pytest.fixture
def config(inoculation_config: dict[str, Any]) -> dict[str, Any]:
    original = {**inoculation_config["original"], "tuning": LORA}
    return {**inoculation_config, "original": original, "tuning": {**LORA, "rank": 4}}


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = load_file(folder / "adapter_model.safetensors")
    return weights


@pytest.mark.thorough
def test_an_inoculation_trains_an_adapter_over_that_of_the_original_task(
    config: dict[str, Any], tiny_model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(config, out, tmp_path) == 0
    [original] = out.glob("runs/original-*/checkpoints/best")
    [inoculated] = out.glob("runs/inoculate-*/checkpoints/best")
    for folder, base, rank in ((original, tiny_model, 2), (inoculated, original, 4)):
        settings = json.loads((folder / "adapter_config.json").read_text())
        assert settings["base_model_name_or_path"] == str(base)
        assert {w.shape[0] for n, w in weights_of(folder).items() if "lora_A" in n} == {rank}
        assert all(w.abs().max() > 0 for w in weights_of(folder).values())
        assert not (folder / "model.safetensors").exists()
    heads = [load_file(folder / "head.safetensors") for folder in (original, inoculated)]
    assert all(heads[1][name].equal(weight) for name, weight in heads[0].items())
    # In a folder of its own, an inoculation of the adapter knows when what is below it changes.
    task = {**config["original"], "checkpoint": str(original)}
    again = {**config, "original": task}
    assert run(again, tmp_path / "given", tmp_path) == 0
    [best] = (tmp_path / "given").glob("runs/inoculate-*/checkpoints/best")
    for name, weight in weights_of(inoculated).items():
        assert weight.equal(weights_of(best)[name])


@pytest.mark.slow
@pytest.mark.parametrize("kill_at", [4, 12])
def test_a_kill_changes_no_byte_of_an_adapter(
    kill_at: int, config: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    killed = run_killed(config, out, tmp_path, kill_at)
    assert killed.returncode == -9
    assert run(config, out, tmp_path) == 0
    copy = shutil.copytree(out, tmp_path / "kept")
    shutil.rmtree(out)  # the same place again, as an adapter says where its model is
    assert run(config, out, tmp_path) == 0
    assert_same(out, copy)
    names = {path.name for path in out.rglob("adapter_model.safetensors")}
    assert names
    for path in out.rglob("adapter_model.safetensors"):
        assert path.read_bytes() == (copy / path.relative_to(out)).read_bytes()
    assert "adapter_model.safetensors" not in KEPT


@pytest.mark.thorough
def test_a_first_stage_and_a_full_training_over_it(
    config: dict[str, Any], tiny_probes: Path, tmp_path: Path
) -> None:
    """A full training merges the adapter that it begins with, and writes the whole model."""
    first = {"name": "facts", "sets": [str(tiny_probes / "second.yaml")], "epochs": 1}
    original = {**config["original"], "tuning": "full", "first": {**first, "tuning": LORA}}
    out = tmp_path / "out"
    assert run({**config, "original": original}, out, tmp_path) == 0
    [stage] = out.glob("runs/first-*/checkpoints/best")
    [best] = out.glob("runs/original-*/checkpoints/best")
    assert (stage / "adapter_model.safetensors").exists()
    assert (best / "model.safetensors").exists()
    assert not (best / "adapter_config.json").exists()


def test_a_sweep_has_rows_of_adapters(
    grid: SweepGrid, mirror: str, context: RunContext, tmp_path: Path
) -> None:
    [row] = grid.rows
    full = [job.key for job in sweep_jobs(grid, context)]
    small = replace(row, doses=[8], learning_rates=[1e-3], extras=["none"])
    with_lora = replace(grid, rows=[replace(small, tuning=Tuning("lora", rank=2))])
    assert full == [job.key for job in sweep_jobs(replace(grid, rows=[row]), context)]
    jobs = sweep_jobs(with_lora, context)
    assert len({job.key for job in jobs} - set(full)) == 2  # the run, and the chosen one
    records = make_runs(jobs, tmp_path / "out", context)
    assert len(records) == len(jobs)
    [cell] = (tmp_path / "out").glob("runs/inoculate-*/checkpoints/best")
    assert saved_module(cell).num_choices is None
    assert (cell / "adapter_model.safetensors").exists()


@pytest.mark.thorough
def test_a_dry_run_says_that_frozen_weights_take_less(
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for module in (runs, original_task):
        monkeypatch.setattr(module, "LARGE", 0)
    needs: dict[str, list[Any]] = {"full": [], "lora": []}
    for method, sizes in needs.items():
        config = {**inoculation_config, "dry_run": True, "tuning": method}
        config["original"] = {**inoculation_config["original"], "tuning": method}
        planned: list[Job] = []
        monkeypatch.setattr(
            inoculation,
            "plan_of",
            lambda jobs, *others, plan=planned: (plan.extend(jobs), plan_of(jobs, *others))[1],
        )
        assert run(config, tmp_path / "out", tmp_path) == 0
        sizes += [job.memory() for job in planned if job.memory is not None]
    for full, lora in zip(*needs.values(), strict=True):
        assert lora is not None
        assert not lora.problem
        assert lora.gradients < 0.3 * full.gradients
        assert lora.moments < 0.3 * full.moments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--tuning lorra", "did you mean 'lora'"),
        ("--tuning lora --tuning.rnk 3", "rnk"),
        ("--tuning.rank 3", "tuning.rank is only for lora"),
        ("--tuning lora --tuning.target_modules [qurey]", "did you mean 'query'"),
        ("--model.adapter missing", "missing"),
    ],
)
def test_typos_are_named_in_one_line(
    options: str,
    message: str,
    inoculation_config: dict[str, Any],
    refused: Refused,
    tmp_path: Path,
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(inoculation_config))
    code = cli.FAILURE if "missing" in options else cli.USAGE_ERROR
    line = refused(f"inoculate --config {path} --output_dir {tmp_path / 'out'} {options}", code)
    assert message in line
    assert not list((tmp_path / "out").glob("runs/*/result.json"))
