"""A folder of weights, words and settings: what lies in it, and what of it is not taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lightning_modules.baselines.word_folder import load_word_module, save_word_module
from lightning_modules.checkpoints.folder import PretrainedError


class Scale(nn.Module):
    """Three weights of one value, and a rate that is no weight."""

    def __init__(self, width: int = 3, value: float = 0.0, rate: float = 0.1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((width,), value))
        self.rate = rate


def saved(folder: Path, value: float = 2.5, **settings: Any) -> Path:
    save_word_module(Scale(3, value), folder, "scale", {"width": 3, "rate": 0.2, **settings})
    return folder


def test_weights_and_settings_are_read_back_and_a_setting_can_be_another(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model")
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "word_module.json"}
    said = json.loads((folder / "word_module.json").read_text())
    assert said == {"format": 1, "kind": "scale", "width": 3, "rate": 0.2}
    module = load_word_module(Scale, folder, "scale", {})
    assert (module.weight.tolist(), module.rate) == ([2.5, 2.5, 2.5], 0.2)
    assert load_word_module(Scale, folder, "scale", {"rate": 0.7}).rate == 0.7


def test_a_folder_that_is_there_is_replaced_as_a_whole(tmp_path: Path) -> None:
    (saved(tmp_path / "model") / "notes.txt").touch()
    saved(tmp_path / "model", value=4.0)
    assert load_word_module(Scale, tmp_path / "model", "scale", {}).weight.tolist() == [4.0] * 3
    assert [path.name for path in tmp_path.rglob("*.txt")] == []


def test_a_model_of_another_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(PretrainedError, match="model holds a saved scale, not esim"):
        load_word_module(Scale, saved(tmp_path / "model"), "esim", {})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"colour": "red"}, "cannot load the settings of folder .*unexpected keyword.*'colour'"),
        ({"width": 4}, r"cannot load the weights of folder .*size mismatch for weight"),
        ({"width": 10_000_000}, r"a model of 10,000,000 weights, .*: they do not belong together"),
        ({"num_choices": 1}, "num_choices is 1, not a whole number from 2 on"),
    ],
)
def test_settings_of_another_model_are_refused(
    settings: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(PretrainedError, match=said):
        load_word_module(Scale, saved(tmp_path / "model", **settings), "scale", {})


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path / "model", value=torch.nan)
    with pytest.raises(PretrainedError, match="the weight weight holds NaN or infinite numbers"):
        load_word_module(Scale, folder, "scale", {})
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(PretrainedError, match="cannot load the weights of folder"):
        load_word_module(Scale, folder, "scale", {})
