"""Frozen texts encoded once, heads trained on them, seeds with other weights, and records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from probelight.io.errors import RecordError
from probelight.lightning_modules.base import ChoiceModule
from probelight.lightning_modules.baselines.mlm_baseline import MLMBaseline
from probelight.models.networks import model_fingerprint
from probelight.probes.record import Record
from probelight.protocols import cli
from probelight.protocols.curve.command import curve_jobs
from probelight.protocols.curve.curve import Curve
from probelight.protocols.curve.data import CurveData, hold_out
from probelight.protocols.curve.heads import CurveProbe, device_of, encode, refuse_unposed
from probelight.protocols.curve.rows import early_stopping
from probelight.protocols.curve.settings import CurveSettings, ProbeOptions
from probelight.protocols.engine.models import module_for
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.jobs.job import RunContext, TrainerSettings
from probelight.results.details import CurveDetails
from tests.fixtures.rows import read_predictions, read_result, read_results
from tests.protocols.conftest import make_runs
from tests.protocols.curve.conftest import curve_command

SETTINGS = CurveSettings(sizes=[8], seeds=[1, 2], controls=["standard"], epochs=1, batch_size=4)


@pytest.fixture
def module(curve_model: Path) -> ChoiceModule:
    return module_for(ModelSettings(str(curve_model)), "mc_mlm", mode="mlp")


def test_a_text_that_many_records_share_is_encoded_once(module: ChoiceModule) -> None:
    stems = ["a w1 is [MASK] than a w2 .", "a w3 is [MASK] .", "a w1 is [MASK] than a w2 ."]
    records = [Record(str(n), stem, ("red", "green"), n % 2) for n, stem in enumerate(stems)]
    original, rows = module.features, []

    def counted(batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        rows.append(len(batch["input_ids"]))
        found: torch.Tensor = original(batch)  # type: ignore[operator]
        return found

    module.features = counted  # type: ignore[assignment]
    items = encode(module, records, 512)
    assert sum(rows) == 2
    assert torch.equal(items.features[0], items.features[2])
    assert items.labels.tolist() == [0, 1, 0]
    assert len(encode(module, [], 512)) == 0


def test_before_training_the_scores_are_those_of_the_model_itself(
    curve_model: Path, module: ChoiceModule, pairs: CurveData
) -> None:
    probe = CurveProbe(module, pairs, SETTINGS, TrainerSettings())
    assert probe.one_start
    [measured] = probe.point("mlp", 0)
    assert (measured.control, measured.seed, measured.epoch) == ("standard", None, 0)
    model = AutoModelForMaskedLM.from_pretrained(curve_model).eval()
    tokenizer = AutoTokenizer.from_pretrained(curve_model)
    words = tokenizer.convert_tokens_to_ids(["red", "green"])
    for record, scores in zip(pairs.evaluation, measured.predictions.scores, strict=True):
        inputs: Any = tokenizer(record.stem, return_tensors="pt")
        place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.no_grad():
            expected = model(**inputs).logits[0, place, words]
        assert scores == pytest.approx(expected.tolist(), abs=1e-5)


def test_each_seed_is_trained_from_the_same_start_and_rows_are_those_of_the_probe(
    module: ChoiceModule, pairs: CurveData
) -> None:
    settings = replace(SETTINGS, controls=["standard", "perturbed_language"])
    measured = CurveProbe(module, pairs, settings, TrainerSettings()).point("linear", 8)
    names = [one.predictions.name for one in measured]
    assert names == [f"{control}-seed{seed}" for control in settings.controls for seed in (1, 2)]
    assert [one.epoch for one in measured] == [1] * 4
    assert list(measured[0].predictions.records) == list(pairs.evaluation)
    assert "than" not in measured[2].predictions.records[0].stem
    first, second = (one.predictions.scores for one in measured[:2])
    assert first != second  # other samples


def test_rows_that_cannot_be_posed_are_counted_and_the_first_is_named() -> None:
    records = [Record(str(n), "a [MASK] .", ("red", "green"), 0, position=n) for n in range(4)]
    refuse_unposed(records, [0, 1, 2, 3])
    with pytest.raises(
        RecordError, match=r"2 of 4 items cannot be posed .*such as 1@1;.*multi_token skip"
    ):
        refuse_unposed(records, [0, 2])


JOB_SETTINGS = replace(SETTINGS, modes=["mlp"], learning_rate={"mlp": 0.02})


def test_heads_of_one_encoder_have_one_checksum_and_are_trained_at_the_rate_of_their_mode(
    curve_model: Path, curve_probes: Path, context: RunContext, tmp_path: Path
) -> None:
    model = ModelSettings(str(curve_model))
    path, options = str(curve_probes / "pairs.yaml"), ProbeOptions()
    curve = Curve(path, model, (model,), JOB_SETTINGS, options, context)
    untrained, trained = make_runs(curve_jobs(curve), tmp_path, context).values()
    for record, rate in ((untrained, None), (trained, 0.02)):
        assert {r.learning_rate for r in record.rows if r.metric == "accuracy"} == {rate}
    assert untrained.model_sha256 == trained.model_sha256
    assert (untrained.seeds, trained.seeds) == ((), (1, 2))
    trained_details = trained.detail(CurveDetails)
    assert trained_details is not None
    assert (trained_details.sha256_by_seed, trained_details.early_stopping) == ({}, None)
    levels = {row.metric for row in untrained.rows} - {row.metric for row in trained.rows}
    assert levels == {"chance", "majority_accuracy"}  # once a curve


def test_a_frozen_encoder_runs_on_one_gpu_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    found = {name: device_of(TrainerSettings(accelerator=name)).type for name in ("auto", "gpu")}
    assert found == {"auto": "cuda", "gpu": "cuda"}
    assert device_of(TrainerSettings(accelerator="cpu")).type == "cpu"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(TrainerSettings(accelerator="gpu")).type == "cpu"


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
