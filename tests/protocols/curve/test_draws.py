"""Curves whose seeds begin with other weights: the MLM-baseline's heads and the random control."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from probelight.lightning_modules.base import ChoiceModule
from probelight.lightning_modules.baselines.mlm_baseline import MLMBaseline
from probelight.models.networks import model_fingerprint
from probelight.protocols import cli
from probelight.protocols.curve.data import CurveData, hold_out
from probelight.protocols.curve.rows import early_stopping
from probelight.protocols.engine.models import module_for
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from tests.fixtures.rows import read_predictions, read_result, read_results
from tests.protocols.curve.conftest import curve_command

SEEDS = (1, 2)


def arguments(probes: Path, folder: Path, *more: str) -> list[str]:
    grid = ["--grid.sizes=[8, 16]", f"--grid.seeds={list(SEEDS)}", "--grid.modes=[mlp, linear]"]
    grid += ["--grid.controls=[standard, no_language]", "--grid.epochs=2", "--grid.batch_size=4"]
    return curve_command(probes, folder, f"--probes={probes / 'pairs.yaml'}", *grid, *more)


@pytest.fixture(scope="module")
def baseline(curve_probes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("draws") / "out"
    given = arguments(curve_probes, folder, "--models=mlm_baseline", "--grid.mlm_baseline.epochs=9")
    more = ["--grid.mlm_baseline.patience=2", "--grid.mlm_baseline.held_out=0.2"]
    assert cli.main([*given, *more]) == 0
    return folder


def test_the_baseline_stops_on_held_out_rows_and_says_so(baseline: Path, pairs: CurveData) -> None:
    result = read_result(baseline, "curve-pairs-*-16-*")
    rows = [r for r in read_results(baseline / "results.csv") if r["metric"] == "accuracy"]
    epochs = [int(r["epoch"]) for r in rows if (r["num_train"], r["subset"]) == ("16", "")]
    assert len(epochs) == 4  # two seeds under two controls
    assert all(1 <= epoch <= 9 for epoch in epochs)
    kept = hold_out(pairs, FitSettings(patience=2, held_out=0.2), 0)
    said = str(result["curve"]["early_stopping"])
    assert said == early_stopping(kept, FitSettings(epochs=9, patience=2), epochs)
    assert f"patience 2 on {len(kept.held_out)} held-out train rows" in said
    assert result["counts"] == {"train": len(kept.train), "evaluation": len(kept.evaluation)}


def test_each_seed_has_a_head_of_its_own(baseline: Path, pairs: CurveData) -> None:
    said = read_predictions(baseline, "curve-pairs-mlp-0-*")
    for seed in SEEDS:
        assert_scores(said, seed, MLMBaseline(seed=seed), pairs)
    seeds = {r["seed"] for r in read_results(baseline / "results.csv") if r["num_train"] == "0"}
    assert seeds == {"1", "2", ""}  # chance and majority have none


def assert_scores(
    said: list[dict[str, Any]], seed: int, module: ChoiceModule, data: CurveData
) -> None:
    """The model itself gives the scores of the seed's items."""
    batch = module.encoder().encode(data.evaluation).collate(range(len(data.evaluation)))
    with torch.no_grad():
        expected = module(batch)
    found = [row["scores"] for row in said if row["set"] == f"standard-seed{seed}"]
    torch.testing.assert_close(torch.tensor(found), expected, rtol=1e-4, atol=1e-5)


def test_random_weights_are_drawn_for_each_seed(
    curve_probes: Path, curve_model: Path, pairs: CurveData, tmp_path: Path
) -> None:
    model = ModelSettings(str(curve_model), random_weights=True)
    given = ["--model.name_or_path", str(curve_model), "--model.random_weights=true"]
    assert cli.main(arguments(curve_probes, tmp_path, *given)) == 0
    fingerprints = {}
    for seed in SEEDS:
        module = module_for(model, "mc_mlm", mode="mlp", seed=seed)
        fingerprints[str(seed)] = model_fingerprint(module.model)
        for mode in ("mlp", "linear"):
            said = read_predictions(tmp_path, f"curve-pairs-{mode}-0-*")
            assert_scores(said, seed, module, pairs)
    assert len(set(fingerprints.values())) == 2
    for mode in ("mlp", "linear"):
        result = read_result(tmp_path, f"curve-pairs-{mode}-16-*")
        assert result["curve"]["sha256_by_seed"] == fingerprints
        assert result["model_sha256"] == fingerprints["1"]
