"""What a model learns before a curve: which facts, under which control, and what is recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jobs.context import RunContext, TrainerSettings
from lightning_modules.checkpoints.weights import model_fingerprint
from lightning_modules.scorers.trained import TrainedScorer
from probes.source import load_probe
from protocols.curve.stage import FirstStage, load_facts, train_facts
from protocols.engine.evaluation import predict
from protocols.engine.models import saved_module
from protocols.engine.settings import FitSettings, ModelSettings
from results.run_folder import RunFolder
from storage.errors import UsageError

TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)
FIT = FitSettings(epochs=1, batch_size=8, learning_rate=0.01)


def test_facts_are_a_split_of_a_probe_or_a_file(curve_probes: Path) -> None:
    path, mirror = curve_probes / "asked.yaml", str(curve_probes / "mirror")
    file = curve_probes / "mirror" / "tiny" / "asked-dev.jsonl"
    for facts in (load_facts(f"{path}:dev", mirror), load_facts(str(file), None)):
        assert [record.id for record in facts.records] == [f"asked-2-{n}" for n in range(12)]
    assert len(load_facts(str(path), mirror).records) == 40  # train, where none is named
    with pytest.raises(UsageError, match=r"--first_stage .*pairs.yaml:dev: it must be questions"):
        load_facts(f"{curve_probes / 'pairs.yaml'}:dev", mirror)


def test_facts_are_put_under_the_controls_that_fit_them(curve_probes: Path) -> None:
    asked = str(curve_probes / "asked.yaml")
    facts = load_probe(asked, "dev", mirror=str(curve_probes / "mirror"))
    stage = FirstStage(facts, FIT, seed=1)
    assert stage.control_of("standard") == "standard"
    assert stage.control_of("perturbed_language") == "perturbed_language"
    bare = replace(facts, config=replace(facts.config, arguments={}, key_words=()))
    assert FirstStage(bare, FIT, seed=1).control_of("perturbed_language") == "standard"


def test_the_facts_are_learned_and_their_accuracy_is_that_of_the_model_kept(
    curve_probes: Path, curve_model: Path, tmp_path: Path
) -> None:
    facts = load_facts(f"{curve_probes / 'asked.yaml'}:dev", str(curve_probes / "mirror"))
    run = RunFolder(tmp_path, "stage", {"seed": 3})
    model = ModelSettings(str(curve_model), name="tiny")
    train_facts(run, model, FirstStage(facts, FIT, seed=3), "standard", RunContext(TRAINER))
    record = run.result()
    assert record is not None
    kept = saved_module(run.best_dir)
    said = predict(TrainedScorer(kept), {"facts": facts.records}, TRAINER)["facts"]
    [row] = record.rows
    assert (row.metric, row.value) == ("train_accuracy", said.accuracy)
    assert (row.num_train, row.num_items, row.num_groups) == (12, 12, 6)  # clusters of two
    assert (row.seed, row.epoch, row.learning_rate, row.mode) == (3, 1, 0.01, "full")
    assert record.model_sha256 == model_fingerprint(kept)
    assert record.counts == {"train": 12}
