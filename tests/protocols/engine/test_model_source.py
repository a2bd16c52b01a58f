"""What a run records of its model: an id on the Hub, or nothing that a name could pretend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lightning_modules.checkpoints.weights import model_fingerprint
from protocols.engine.model_source import hub_id, original_source
from protocols.engine.models import module_for, saved_module
from protocols.engine.settings import ModelSettings
from protocols.inoculation.settings import OriginalTask


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
    made = {
        "protocol": "original",
        "rows": [],
        "model_hub_id": "roberta-large",
        "model_revision": None,
        "original_parts": {"sets": ["sciq"], "train_items": None},
        "model_sha256": model_fingerprint(saved_module(folder)),
    }
    path = folder.parent.parent / "result.json"
    path.write_text(json.dumps(made))
    task = OriginalTask("science", ["arc_easy"], checkpoint=str(folder))
    model = ModelSettings("bert-base-uncased")
    assert original_source(model, task) == {
        "model_hub_id": "roberta-large",
        "model_revision": None,
        "original_parts": {"sets": ["sciq"], "train_items": None},
    }
    unknown = dict.fromkeys(("model_hub_id", "model_revision", "original_parts"))
    path.write_text(json.dumps({**made, "model_sha256": "0" * 64}))  # other weights since
    assert original_source(model, task) == unknown
    path.unlink()
    assert original_source(model, task) == unknown
    own = OriginalTask("science", ["arc_easy"])
    assert original_source(model, own)["model_hub_id"] == "bert-base-uncased"
