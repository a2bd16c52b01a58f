"""What a run records of its model: an id on the Hub, or nothing that a name could pretend."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.models.networks import model_fingerprint
from probelight.protocols.engine.model_source import hub_id, original_source, source_of
from probelight.protocols.engine.models import module_for, saved_module
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.inoculation.settings import OriginalTask
from probelight.results.details import OriginalParts
from probelight.results.record import ModelSource, RunRecord


def test_a_folder_has_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hub_id(ModelSettings("roberta-large")) == "roberta-large"
    assert hub_id(ModelSettings("FacebookAI/roberta-large")) == "FacebookAI/roberta-large"
    assert hub_id(ModelSettings("roberta-large", random_weights=True)) is None
    assert hub_id(ModelSettings(kind="esim")) is None
    assert hub_id(ModelSettings()) is None
    (tmp_path / "roberta-large").mkdir()
    assert hub_id(ModelSettings("roberta-large")) is None


def test_a_checkpoint_is_what_the_run_that_made_it_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "original-x" / "checkpoints" / "best"
    module_for(ModelSettings(kind="esim"), "mc_qa").save_pretrained(folder)
    parts = OriginalParts(sets=("sciq",))
    made = RunRecord(
        protocol="original",
        source=ModelSource(loaded_from="elsewhere", hub_id="roberta-large"),
        details=(parts,),
        model_sha256=model_fingerprint(saved_module(folder)),
    )
    path = folder.parent.parent / "result.json"
    path.write_text(json.dumps(made.to_json()))
    task = OriginalTask("science", ["arc_easy"], checkpoint=str(folder))
    model = ModelSettings("bert-base-uncased")
    known = ModelSource(loaded_from="bert-base-uncased", hub_id="roberta-large")
    assert original_source(model, task) == (known, parts)
    unknown = replace(known, hub_id=None), None
    other = replace(made, model_sha256="0" * 64)  # other weights since
    path.write_text(json.dumps(other.to_json()))
    assert original_source(model, task) == unknown
    path.unlink()
    assert original_source(model, task) == unknown
    own = OriginalTask("science", ["arc_easy"])
    source, of_own = original_source(model, own)
    assert (source.hub_id, of_own) == ("bert-base-uncased", OriginalParts(sets=("arc_easy",)))


def test_a_control_names_the_model_that_it_is_of_and_a_baseline_its_vectors() -> None:
    control = source_of(ModelSettings("bert-base-uncased", "abc", random_weights=True))
    assert (control.loaded_from, control.revision) == ("bert-base-uncased@abc", "abc")
    assert (control.control_of, control.hub_id) == ("bert-base-uncased", None)
    baseline = source_of(ModelSettings(kind="esim", vectors="/x/glove.6B.50d.txt"))
    assert (baseline.loaded_from, baseline.vectors) == ("/x/glove.6B.50d.txt", "glove.6B.50d")
