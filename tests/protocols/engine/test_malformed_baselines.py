"""Damaged folders of baselines over word vectors: one line that names the folder and the cause."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from probelight.models.checkpoint_files import PretrainedError
from probelight.protocols.engine.models import module_for, saved_module
from probelight.protocols.engine.settings import ModelSettings
from tests.protocols.engine.model_damage import (
    Cases,
    Damage,
    at_first,
    cases,
    change,
    inoculate,
    one_line,
    weights,
    without,
    write,
)

WORDS = "word_module.json"
WORD_MODULE: Cases = {
    "settings empty": (write(WORDS, ""), "word_module.json cannot be read"),
    "settings a list": (write(WORDS, "[]"), "word_module.json cannot be read"),
    "settings without format": (write(WORDS, "{}"), "format None"),
    "format": (lambda f: change(f / WORDS, {"format": 9}), "format 9"),
    "kind": (lambda f: change(f / WORDS, {"kind": "elmo"}), "'elmo'"),
    "a setting more": (lambda f: change(f / WORDS, {"nosuch": 1}), "nosuch"),
    "dimension text": (lambda f: change(f / WORDS, {"dimension": "x"}), "settings"),
    "dimension other": (lambda f: change(f / WORDS, {"dimension": 7}), "7 are wanted"),
    "weights missing": (without("model.safetensors"), "weights"),
    "weights of nothing": (weights(lambda t: t.clear()), "do not belong together"),
    "a weight missing": (weights(lambda t: t.pop("words.weight")), "words.weight"),
    "words missing": (weights(lambda t: t.pop("words.spelling")), "words.spelling"),
    "a weight of another shape": (at_first(lambda w: w[:, :-1]), "weights"),
    "a weight NaN": (at_first(lambda w: w * torch.nan), "NaN or infinite"),
    "words no text": (
        weights(lambda t: t.update({"words.spelling": torch.tensor([255], dtype=torch.uint8)})),
        "weights",
    ),
}
ESIM: Cases = {
    "size huge": (lambda f: change(f / WORDS, {"hidden_size": 10**6}), "do not belong together"),
    "size negative": (lambda f: change(f / WORDS, {"hidden_size": -1}), "settings"),
    "size text": (lambda f: change(f / WORDS, {"hidden_size": "x"}), "settings"),
    "dropout": (lambda f: change(f / WORDS, {"dropout": 7}), "dropout"),
    "length": (lambda f: change(f / WORDS, {"max_length": "x"}), "max_length is 'x'"),
    "choices": (lambda f: change(f / WORDS, {"num_choices": 0}), "num_choices is 0"),
}
BASELINE: Cases = {
    "tokens huge": (lambda f: change(f / WORDS, {"num_tokens": 10**6}), "belong together"),
    "tokens negative": (lambda f: change(f / WORDS, {"num_tokens": -1}), "settings"),
    "mode": (lambda f: change(f / WORDS, {"mode": "full"}), "mode='full'"),
}


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def esim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "esim"
    module_for(ModelSettings(kind="esim"), "mc_qa").save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def mlm_baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "mlm_baseline"
    module_for(ModelSettings(kind="mlm_baseline"), "mc_mlm").save_pretrained(folder)
    return folder


@cases(WORD_MODULE, ESIM)
def test_inoculation_of_a_saved_esim(
    damage: Damage,
    cause: str,
    esim: Path,
    inoculation_config: dict[str, Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = Path(shutil.copytree(esim, tmp_path / "model"))
    damage(folder)
    capfd.readouterr()  # what was said while it was made
    inoculation_config["model"] = {"kind": "esim"}
    one_line(inoculate(folder, inoculation_config, tmp_path), folder, cause, capfd)


@cases(WORD_MODULE, BASELINE)
def test_a_saved_mlm_baseline(
    damage: Damage, cause: str, mlm_baseline: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(mlm_baseline, tmp_path / "model"))
    damage(folder)
    with pytest.raises(PretrainedError) as raised:
        saved_module(folder)
    said = str(raised.value)
    assert len(said.splitlines()) == 1
    assert str(folder) in said
    assert cause in said
