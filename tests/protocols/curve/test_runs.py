"""What each kind of job of a curve leaves in its record."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from probelight.protocols.curve.command import curve_jobs, run_job
from probelight.protocols.curve.curve import Curve
from probelight.protocols.curve.heads import device_of
from probelight.protocols.curve.settings import CurveSettings, ProbeOptions
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder

SETTINGS = CurveSettings(
    sizes=[8],
    seeds=[1, 2],
    modes=["mlp"],
    controls=["standard"],
    epochs=1,
    learning_rate={"mlp": 0.02},
    mlm_baseline=FitSettings(epochs=2, batch_size=4, learning_rate=0.03, patience=1, held_out=0.2),
)


@pytest.fixture
def context(curve_probes: Path) -> RunContext:
    quiet = TrainerSettings(accelerator="cpu", progress_bar=False)
    return RunContext(quiet, mirror=str(curve_probes / "mirror"))


def records(
    model: ModelSettings, probes: Path, context: RunContext, folder: Path
) -> list[RunRecord]:
    """Those of a curve's runs, N = 0 first."""
    path = str(probes / "pairs.yaml")
    curve = Curve(path, model, (model,), SETTINGS, ProbeOptions(), context)
    runs = []
    for job in curve_jobs(curve):
        run = RunFolder(folder, job.name, job.config)
        run_job(run, job.config, context)
        runs.append(run.result())
    return [run for run in runs if run is not None]


def rates(record: RunRecord) -> set[float | None]:
    return {row.learning_rate for row in record.rows if row.metric == "accuracy"}


def test_heads_of_one_encoder_have_one_checksum_and_are_trained_at_the_rate_of_their_mode(
    curve_model: Path, curve_probes: Path, context: RunContext, tmp_path: Path
) -> None:
    model = ModelSettings(str(curve_model))
    untrained, trained = records(model, curve_probes, context, tmp_path)
    assert (rates(untrained), rates(trained)) == ({None}, {0.02})
    assert untrained.model_sha256 == trained.model_sha256
    assert (untrained.seeds, trained.seeds) == ((), (1, 2))
    assert trained.curve is not None
    assert (trained.curve.sha256_by_seed, trained.curve.early_stopping) == ({}, None)
    levels = {row.metric for row in untrained.rows} - {row.metric for row in trained.rows}
    assert levels == {"chance", "majority_accuracy"}  # once a curve


def test_weights_that_are_drawn_have_a_checksum_a_seed(
    curve_model: Path, curve_probes: Path, context: RunContext, tmp_path: Path
) -> None:
    model = ModelSettings(str(curve_model), random_weights=True)
    for record in records(model, curve_probes, context, tmp_path):
        assert record.curve is not None
        assert list(record.curve.sha256_by_seed) == ["1", "2"]
        assert record.model_sha256 == record.curve.sha256_by_seed["1"]
        assert len(set(record.curve.sha256_by_seed.values())) == 2


def test_a_baseline_is_trained_as_its_kind_is_and_says_where_it_stopped(
    curve_probes: Path, context: RunContext, tmp_path: Path
) -> None:
    baseline = ModelSettings(kind="mlm_baseline")
    untrained, trained = records(baseline, curve_probes, context, tmp_path)
    assert (rates(untrained), rates(trained)) == ({None}, {0.03})
    assert untrained.curve is not None
    assert untrained.curve.early_stopping is None
    assert trained.curve is not None
    said = str(trained.curve.early_stopping)
    assert "patience 1 on 8 held-out train rows" in said  # a fifth of 40
    assert trained.counts == {"train": 32, "evaluation": 12}


def test_a_frozen_encoder_runs_on_one_gpu_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    found = {name: device_of(TrainerSettings(accelerator=name)).type for name in ("auto", "gpu")}
    assert found == {"auto": "cuda", "gpu": "cuda"}
    assert device_of(TrainerSettings(accelerator="cpu")).type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(TrainerSettings(accelerator="gpu")).type == "cpu"
