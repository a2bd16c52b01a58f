"""Curves whose seeds begin with other weights: the MLM-baseline's heads and the random control."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from probelight.io.errors import UsageError
from probelight.lightning_modules.baselines.mlm_baseline import MLMBaseline
from probelight.models.networks import model_fingerprint
from probelight.probes.record import group_of
from probelight.probes.source import load_probe
from probelight.protocols import cli
from probelight.protocols.curve.data import hold_out, load_curve_data
from probelight.protocols.curve.rows import early_stopping
from probelight.protocols.curve.settings import CurveSettings, ProbeOptions
from probelight.protocols.engine.models import module_for
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.jobs.job import RunContext
from tests.fixtures.rows import read_results

SEEDS = (1, 2)


def arguments(probes: Path, folder: Path, *more: str) -> list[str]:
    return [
        "curve",
        f"--probes={probes / 'pairs.yaml'}",
        f"--mirror={probes / 'mirror'}",
        "--grid.sizes=[8, 16]",
        f"--grid.seeds={list(SEEDS)}",
        "--grid.modes=[mlp, linear]",
        "--grid.controls=[standard, no_language]",
        "--grid.epochs=2",
        "--grid.batch_size=4",
        "--trainer.progress_bar=false",
        "--trainer.accelerator=cpu",
        f"--output_dir={folder}",
        *more,
    ]


@pytest.fixture(scope="module")
def baseline(curve_probes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("draws") / "out"
    given = arguments(curve_probes, folder, "--models=mlm_baseline", "--grid.mlm_baseline.epochs=9")
    more = ["--grid.mlm_baseline.patience=2", "--grid.mlm_baseline.held_out=0.2"]
    assert cli.main([*given, *more]) == 0
    return folder


def results(folder: Path, size: int) -> list[dict[str, object]]:
    paths = sorted(folder.glob(f"runs/curve-pairs-*-{size}-*/result.json"))
    return [json.loads(path.read_text()) for path in paths]


def test_the_baseline_stops_on_held_out_rows_and_says_so(
    baseline: Path, curve_probes: Path
) -> None:
    [result] = results(baseline, 16)
    rows = [r for r in read_results(baseline / "results.csv") if r["metric"] == "accuracy"]
    epochs = [int(r["epoch"]) for r in rows if (r["num_train"], r["subset"]) == ("16", "")]
    assert len(epochs) == 4  # two seeds under two controls
    assert all(1 <= epoch <= 9 for epoch in epochs)
    data = load_curve_data(
        RunContext(mirror=str(curve_probes / "mirror")),
        str(curve_probes / "pairs.yaml"),
        CurveSettings(),
        ProbeOptions(),
    )
    kept = hold_out(data, FitSettings(patience=2, held_out=0.2), 0)
    said = str(result["curve"]["early_stopping"])
    assert said == early_stopping(kept, FitSettings(epochs=9, patience=2), epochs)
    assert f"patience 2 on {len(kept.held_out)} held-out train rows" in said
    assert result["counts"] == {"train": len(kept.train), "evaluation": len(kept.evaluation)}
    groups = [{group_of(r, data.config.group_by) for r in s} for s in (kept.train, kept.held_out)]
    assert not groups[0] & groups[1]


def test_each_seed_has_a_head_of_its_own(baseline: Path, curve_probes: Path) -> None:
    [path] = baseline.glob("runs/curve-pairs-mlp-0-*/predictions.jsonl")
    said = [json.loads(line) for line in path.read_text().splitlines()]
    records = load_probe(
        str(curve_probes / "pairs.yaml"), "dev", mirror=str(curve_probes / "mirror")
    ).records
    for seed in SEEDS:
        module = MLMBaseline(seed=seed)
        batch = module.encoder().encode(records).collate(range(len(records)))
        with torch.no_grad():
            expected = module(batch)
        found = [row["scores"] for row in said if row["set"] == f"standard-seed{seed}"]
        torch.testing.assert_close(torch.tensor(found), expected, rtol=1e-5, atol=1e-6)
    seeds = {r["seed"] for r in read_results(baseline / "results.csv") if r["num_train"] == "0"}
    assert seeds == {"1", "2", ""}  # chance and majority have none


def test_a_curve_that_goes_on_ends_with_the_same_numbers(
    baseline: Path, curve_probes: Path
) -> None:
    before = (baseline / "results.csv").read_bytes()
    for name in ("mlp-8", "mlp-0"):
        [path] = baseline.glob(f"runs/curve-pairs-{name}-*/result.json")
        path.unlink()
    (baseline / "results.csv").unlink()
    given = arguments(curve_probes, baseline, "--models=mlm_baseline")
    more = ["--grid.mlm_baseline.patience=2", "--grid.mlm_baseline.held_out=0.2"]
    assert cli.main([*given, "--grid.mlm_baseline.epochs=9", *more]) == 0
    assert (baseline / "results.csv").read_bytes() == before


def test_random_weights_are_drawn_for_each_seed(
    curve_probes: Path, curve_model: Path, tmp_path: Path
) -> None:
    model = ModelSettings(str(curve_model), random_weights=True)
    given = ["--model.name_or_path", str(curve_model), "--model.random_weights=true"]
    assert cli.main(arguments(curve_probes, tmp_path / "out", *given)) == 0
    records = load_probe(
        str(curve_probes / "pairs.yaml"), "dev", mirror=str(curve_probes / "mirror")
    ).records
    fingerprints = {}
    for seed in SEEDS:
        module = module_for(model, "mc_mlm", mode="mlp", seed=seed)
        fingerprints[str(seed)] = model_fingerprint(module.model)
        batch = module.encoder().encode(records).collate(range(len(records)))
        with torch.no_grad():
            expected = module(batch)
        for mode in ("mlp", "linear"):
            [path] = tmp_path.glob(f"out/runs/curve-pairs-{mode}-0-*/predictions.jsonl")
            said = [json.loads(line) for line in path.read_text().splitlines()]
            found = [row["scores"] for row in said if row["set"] == f"standard-seed{seed}"]
            torch.testing.assert_close(torch.tensor(found), expected, rtol=1e-4, atol=1e-5)
    assert len(set(fingerprints.values())) == 2
    for result in results(tmp_path / "out", 16):
        assert result["curve"]["sha256_by_seed"] == fingerprints
        assert result["model_sha256"] == fingerprints["1"]
        assert result["model_sha256"] == fingerprints["1"]


def test_groups_that_cannot_be_held_out_are_said(curve_probes: Path) -> None:
    path, mirror = str(curve_probes / "pairs.yaml"), str(curve_probes / "mirror")
    data = load_curve_data(RunContext(mirror=mirror), path, CurveSettings(), ProbeOptions())
    few = replace(data, train=data.train[:2])
    with pytest.raises(UsageError, match=r"pairs: no train rows can be held out.*patience null"):
        hold_out(few, FitSettings(patience=1), 0)
    said = hold_out(data, FitSettings(patience=1), 0, [8, len(data.train)]).notices[-1]
    assert said.endswith(f"the curve stops before N = {len(data.train)}")
