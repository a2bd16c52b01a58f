"""Each kind of model becomes its module, and a saved folder becomes what it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from probelight.io.errors import RecordError, UsageError
from probelight.lightning_modules.baselines.esim import ESIM
from probelight.lightning_modules.baselines.mlm_baseline import MLMBaseline
from probelight.lightning_modules.masked_choice import MaskedChoice
from probelight.lightning_modules.sentence_choice import SentenceChoice
from probelight.models.checkpoint_files import PretrainedError
from probelight.probes.record import Record, Setup
from probelight.protocols.engine.models import (
    check_module,
    check_scorer,
    module_for,
    saved_module,
    source_of,
)
from probelight.protocols.engine.settings import ModelSettings
from tests.fixtures.checkout import ROOT

MLM, PAIRS = ModelSettings(kind="mlm_baseline"), ModelSettings(kind="esim", max_length=40)


def test_a_masked_sentence() -> None:
    module = module_for(MLM, "mc_mlm", mode="linear", learning_rate=2e-3, seed=3)
    assert isinstance(module, MLMBaseline)
    assert (module.mode, module.learning_rate) == ("linear", 2e-3)
    module = module_for(ModelSettings(max_length=64), "mc_mlm", mode="mlp", learning_rate=2e-3)
    assert isinstance(module, MaskedChoice)
    assert (module.mode, module.max_length) == ("mlp", 64)


def test_a_question_with_answers() -> None:
    module = module_for(PAIRS, "mc_qa", num_choices=5, monitor="val/accuracy", max_grad_norm=1.0)
    assert isinstance(module, ESIM)
    assert (module.num_choices, module.max_length, module.max_grad_norm) == (5, 40, 1.0)
    assert (module.learning_rate, module.monitor) == (4e-4, "val/accuracy")
    linear = ModelSettings(head="linear")
    module = module_for(linear, "mc_qa", learning_rate=1e-3, monitor="ignored")
    assert isinstance(module, SentenceChoice)
    assert (module.head_kind, module.learning_rate) == ("linear", 1e-3)


@pytest.mark.parametrize(
    ("model", "setup", "message"),
    [
        (PAIRS, "mc_mlm", r"choose model\.kind mlm_baseline"),
        (MLM, "mc_qa", r"choose model\.kind esim"),
        (ModelSettings(kind="esim", random_weights=True), "mc_qa", "random_weights"),
    ],
)
def test_a_type_that_is_not_trained_for_a_setup_says_what_to_choose(
    model: ModelSettings, setup: Setup, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        module_for(model, setup)


@pytest.mark.parametrize(
    ("model", "setup"), [(MLM, "mc_mlm"), (PAIRS, "mc_qa"), (ModelSettings(), "mc_qa")]
)
def test_a_saved_module_comes_back_as_what_it_was(
    model: ModelSettings, setup: Setup, tmp_path: Path
) -> None:
    module = module_for(model, setup)
    module.save_pretrained(tmp_path / "saved")
    loaded = saved_module(tmp_path / "saved", learning_rate=0.25, monitor="val/accuracy")
    assert (type(loaded), loaded.learning_rate) == (type(module), 0.25)


@pytest.mark.parametrize("kind", ["mlm_baseline", "esim"])
def test_the_presets_are_the_kinds(kind: str) -> None:
    path = ROOT / "configs" / "model" / f"{kind}.yaml"
    settings = ModelSettings(**yaml.safe_load(path.read_text())["model"])
    assert settings == ModelSettings(kind=kind)


SPLIT = Record("7", "A cat is [MASK].", ("zzyzxian", "small"), 0)


def test_models_are_checked_without_their_weights() -> None:
    posed = []
    skipping = ModelSettings(multi_token="skip", name="mine")
    records = [SPLIT, replace(SPLIT, choices=("large", "small"))]
    check_scorer(skipping, "mc_mlm", [records], lambda _, kept: posed.extend(kept))
    assert posed == [1]
    with pytest.raises(RecordError, match=r"^dictionary-lm: 7@0: the candidate 'zzyzxian' is"):
        check_scorer(ModelSettings(), "mc_mlm", [records])
    check_scorer(ModelSettings(), "mc_qa", [records])
    check_module(ModelSettings(), "mc_qa")
    check_module(PAIRS, "mc_qa")
    nowhere = ModelSettings("./nowhere")
    with pytest.raises(PretrainedError, match="no folder"):
        check_scorer(nowhere, "mc_qa", [records])
    with pytest.raises(PretrainedError, match="no folder"):
        check_module(nowhere, "mc_qa")


def test_a_folder_has_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("roberta-large", "FacebookAI/roberta-large"):
        assert source_of(ModelSettings(name)).hub_id == name
    (tmp_path / "local").mkdir()
    control = ModelSettings("roberta-large", random_weights=True)
    for model in (control, PAIRS, ModelSettings(), ModelSettings("local")):
        assert source_of(model).hub_id is None


def test_a_control_names_the_model_that_it_is_of_and_a_baseline_its_vectors() -> None:
    control = source_of(ModelSettings("bert-base-uncased", "abc", random_weights=True))
    assert (control.loaded_from, control.revision) == ("bert-base-uncased@abc", "abc")
    assert (control.control_of, control.hub_id) == ("bert-base-uncased", None)
    baseline = source_of(ModelSettings(kind="esim", vectors="/x/glove.6B.50d.txt"))
    assert (baseline.loaded_from, baseline.vectors) == ("/x/glove.6B.50d.txt", "glove.6B.50d")
