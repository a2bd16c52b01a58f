"""Frozen texts encoded once, heads trained on them, and what a run of them records."""

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
from probelight.probes.record import Record
from probelight.protocols.curve.command import curve_jobs
from probelight.protocols.curve.curve import Curve
from probelight.protocols.curve.data import CurveData
from probelight.protocols.curve.heads import CurveProbe, device_of, encode, refuse_unposed
from probelight.protocols.curve.settings import CurveSettings, ProbeOptions
from probelight.protocols.engine.models import module_for
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.jobs.job import RunContext, TrainerSettings
from probelight.results.details import CurveDetails
from tests.protocols.conftest import make_runs

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
