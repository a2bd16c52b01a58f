"""The jobs of one subject: their order, their steps, the size of their model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from probelight.io.errors import UsageError
from probelight.lightning_modules.baselines.esim import ESIM
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.inoculation.jobs import inoculation_jobs, weights_bytes
from probelight.protocols.inoculation.settings import (
    FirstStage,
    Setting,
    Subject,
)
from probelight.protocols.inoculation.sweep import SweepGrid, sweep_jobs
from tests.protocols.inoculation.conftest import kinds, under


def test_weights_are_counted_in_single_precision(tmp_path: Path) -> None:
    weights = {"a": torch.zeros(2, 3, dtype=torch.float16), "b": torch.zeros(5)}
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert weights_bytes(ModelSettings(str(tmp_path))) == 4 * (6 + 5)
    assert weights_bytes(ModelSettings("some/hub-model")) == 0


def test_weights_of_esim_are_those_of_the_module() -> None:
    counted = {name: p.numel() for name, p in ESIM().named_parameters() if "words" not in name}
    assert weights_bytes(ModelSettings(kind="esim")) == 4 * sum(counted.values())


def test_a_first_stage_comes_before_the_original_task(
    grid: SweepGrid, mirror: str, tiny_probes: Path
) -> None:
    stage = FirstStage("race", [str(tiny_probes / "second.yaml")], epochs=1, learning_rate=1e-3)
    task = replace(grid.originals["colours"], first=stage)
    cells = sweep_jobs(replace(grid, originals={"colours": task}), under(mirror))
    assert kinds(cells)[:3] == ["first", "original", "before"]
    assert cells[1].needs == (cells[0].key,)


def test_an_inoculation_of_ones_own_is_one_job_behind_the_original_task(
    grid: SweepGrid, mirror: str
) -> None:
    [row] = grid.rows
    subject = Subject(grid.models["tiny"], grid.originals["colours"], row.probe)
    settings = [Setting(dose, "x1", 3, epochs=2, batch_size=8) for dose in (8, 12)]
    original, small, large = inoculation_jobs(subject, settings, under(mirror))
    assert kinds([original, small, large]) == ["original", "inoculation", "inoculation"]
    assert small.needs == large.needs == (original.key,)
    # 8 examples and as many that balance them are 2 steps of 8, 12 are 3.
    assert [small.num_steps, large.num_steps] == [2 * 2, 2 * 3]
    assert small.name == "inoculate-second-k8-x1-s3"
    sweep = sweep_jobs(grid, under(mirror))
    assert sweep[0].key == original.key


def test_a_given_model_needs_no_job_and_its_checksums_are_in_the_key(
    grid: SweepGrid, mirror: str, tmp_path: Path
) -> None:
    task = replace(grid.originals["colours"], checkpoint=str(tmp_path))
    subject = Subject(grid.models["tiny"], task, grid.rows[0].probe)
    keys = []
    for value in (0.0, 1.0):
        save_file({"a": torch.full((2,), value)}, tmp_path / "model.safetensors")
        [job] = inoculation_jobs(subject, [Setting(8, "none", 0)], under(mirror))
        assert job.needs == ()
        keys.append(job.key)
    assert keys[0] != keys[1]


def test_a_dose_that_is_too_large_is_said_before_anything_runs(
    grid: SweepGrid, mirror: str
) -> None:
    subject = Subject(grid.models["tiny"], grid.originals["colours"], grid.rows[0].probe)
    with pytest.raises(UsageError, match="--dose 61: only 60"):
        inoculation_jobs(subject, [Setting(61, "none", 0)], under(mirror))
