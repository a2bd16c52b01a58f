"""What a model learns before a curve: which facts, under which control, and what is recorded."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytorch_lightning.strategies import SingleDeviceStrategy, StrategyRegistry

from probelight.callbacks import aggregate_checkpoint
from probelight.io.errors import UsageError
from probelight.models.networks import model_fingerprint
from probelight.models.scorer import TrainedScorer
from probelight.probes.source import load_probe
from probelight.protocols.curve.curve import FirstStage, load_facts
from probelight.protocols.curve.fine_tuning import train_facts
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.models import saved_module
from probelight.protocols.engine.settings import FitSettings, ModelSettings
from probelight.protocols.engine.training import Direct, fit_directly
from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.results.run_folder import RunFolder

TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)
FIT = FitSettings(epochs=1, batch_size=8, learning_rate=0.01)


class InParts(SingleDeviceStrategy):
    """Leaves a module without its weights behind a fit, as FSDP leaves each process a part.

    FSDP itself runs between GPUs alone; what is sharded there is gathered by the same method.
    """

    gathered = 0

    def lightning_module_state_dict(self) -> dict[str, Any]:
        InParts.gathered += 1
        return super().lightning_module_state_dict()

    def teardown(self) -> None:
        assert self.lightning_module is not None
        for weight in self.lightning_module.parameters():
            weight.detach().zero_()
        super().teardown()


@pytest.fixture
def sharded(monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainerSettings]:
    """Settings of a fit behind which no process has the whole model."""
    monkeypatch.setattr(InParts, "gathered", 0)
    monkeypatch.setattr(aggregate_checkpoint, "FSDPStrategy", InParts)
    StrategyRegistry.register("fsdp_in_parts", InParts, override=True)
    yield replace(TRAINER, strategy="fsdp_in_parts")
    StrategyRegistry.remove("fsdp_in_parts")


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
    stage = FirstStage(facts, FIT, seed=3)
    record = train_facts(run, model, stage, "standard", RunContext(TRAINER))
    kept = saved_module(run.best_dir)
    said = predict(TrainedScorer(kept), {"facts": facts.records}, TRAINER)["facts"]
    [row] = record.rows
    assert (row.metric, row.value) == ("train_accuracy", said.accuracy)
    assert (row.num_train, row.num_items, row.num_groups) == (12, 12, 6)  # clusters of two
    assert (row.seed, row.epoch, row.learning_rate, row.mode) == (3, 1, 0.01, "full")
    assert record.model_sha256 == model_fingerprint(kept)
    assert record.counts == {"train": 12}


def test_what_sharded_fits_leave_is_whole(
    curve_probes: Path, curve_model: Path, tmp_path: Path, sharded: TrainerSettings
) -> None:
    facts = load_facts(f"{curve_probes / 'asked.yaml'}:dev", str(curve_probes / "mirror"))
    model, stage = ModelSettings(str(curve_model), name="tiny"), FirstStage(facts, FIT, seed=3)
    direct = Direct(model, replace(FIT, patience=None), seed=3)
    found = []
    for name, settings in (("plain", TRAINER), ("sharded", sharded)):
        run, context = RunFolder(tmp_path / name, "stage", {}), RunContext(settings)
        record = train_facts(run, model, stage, "standard", context)
        point = fit_directly(
            RunFolder(tmp_path / name, "point", {}), direct, facts.records, (), context
        )
        found.append((record.model_sha256, record.rows, model_fingerprint(point.module)))
        assert model_fingerprint(saved_module(run.best_dir)) == record.model_sha256
    # Run names differ, weights and accuracies do not; the weights of a part would be all zero.
    plain, gathered = found
    assert gathered[0] == plain[0]
    assert [row.value for row in gathered[1]] == [row.value for row in plain[1]]
    assert gathered[2] == plain[2]
    assert InParts.gathered == 2


def test_a_sharded_fit_that_goes_on_from_its_end_leaves_the_model_of_the_state(
    curve_probes: Path, curve_model: Path, tmp_path: Path, sharded: TrainerSettings
) -> None:
    facts = load_facts(f"{curve_probes / 'asked.yaml'}:dev", str(curve_probes / "mirror"))
    model, run = ModelSettings(str(curve_model), name="tiny"), RunFolder(tmp_path, "point", {})
    direct = Direct(model, replace(FIT, patience=None), seed=3)
    found = []
    for settings in (replace(sharded, checkpoint_every=1), sharded):
        trained = fit_directly(run, direct, facts.records, (), RunContext(settings))
        found.append(model_fingerprint(trained.module))
        shutil.rmtree(run.best_dir)  # as if the first was killed behind its last state
    assert found[0] == found[1]
