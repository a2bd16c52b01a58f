from __future__ import annotations

import json
from pathlib import Path

import pytest

from probelight.lightning_modules.baselines.word_settings import is_word_folder, word_settings
from probelight.models.checkpoints.folder import PretrainedError


def write(folder: Path, **settings: object) -> Path:
    (folder / "word_module.json").write_text(json.dumps(settings))
    return folder


def test_the_settings_are_those_saved_with_the_kind(tmp_path: Path) -> None:
    assert not is_word_folder(tmp_path)
    write(tmp_path, format=1, kind="esim", num_choices=5)
    assert is_word_folder(tmp_path)
    assert word_settings(tmp_path) == {"kind": "esim", "num_choices": 5}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "esim"}, "format None is not known here"),
        ({"format": 2}, "format 2 is not known here"),
        ({"format": 1, "num_choices": 1}, "num_choices is 1, not a whole number from 2 on"),
    ],
)
def test_what_cannot_be_taken_is_named(
    settings: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(PretrainedError, match=f"word_module.json: {said}"):
        word_settings(write(tmp_path, **settings))
