from __future__ import annotations

from pathlib import Path

import pytest

from protocols.engine.chosen_models import chosen_models, model_of
from protocols.engine.settings import ModelSettings
from storage.errors import UsageError


def test_names_configs_and_folders_stand_for_models(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("model: {name_or_path: some/model, head: pooler, max_length: 64}\n")
    models = chosen_models(f"embedded, bert-base-uncased,{path},other/one", ModelSettings(), False)
    assert [(m.name_or_path, m.head, m.max_length) for m in models] == [
        ("embedded", "mlp", 256),
        ("bert-base-uncased", "mlp", 256),
        ("some/model", "pooler", 64),
        ("other/one", "mlp", 256),
    ]
    assert chosen_models("", ModelSettings(name_or_path="one"), False) == [
        ModelSettings(name_or_path="one")
    ]


def test_every_transformer_gets_its_random_weights_control() -> None:
    esim = ModelSettings(kind="esim")
    models = chosen_models("", ModelSettings(), True) + chosen_models("", esim, True)
    assert [m.label for m in models[:2]] == ["embedded", "embedded (random weights)"]
    assert models[2:] == [esim]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="either --models a,b or --model"):
        chosen_models("embedded", ModelSettings(head="linear"), False)
    with pytest.raises(UsageError, match="two models are called 'embedded'"):
        chosen_models("embedded,embedded", ModelSettings(), False)
    with pytest.raises(UsageError, match=r"none\.yaml: there is no such file"):
        model_of(str(tmp_path / "none.yaml"))
    path = tmp_path / "wrong.yaml"
    path.write_text("model: {name: some/model}\n")
    with pytest.raises(UsageError, match=r"wrong.yaml: no config of a model"):
        model_of(str(path))


def test_folders_of_one_name_are_told_apart_by_path() -> None:
    models = chosen_models("runs/a/best,runs/b/best,embedded", ModelSettings(), True)
    names = ["a/best", "b/best", "embedded"]
    assert [m.label for m in models] == [*names, *(f"{name} (random weights)" for name in names)]
    assert models[2].name is None
