from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.models.checkpoints import source
from probelight.models.checkpoints.folder import PretrainedError
from probelight.models.checkpoints.source import resolve

Checkpoint = Callable[..., Path]


def test_a_folder_that_is_not_there_is_refused() -> None:
    with pytest.raises(PretrainedError, match=r"no folder \./runs/model-7"):
        resolve("./runs/model-7")


def test_a_file_is_refused(checkpoint: Checkpoint) -> None:
    with pytest.raises(PretrainedError, match="is a file; give the folder"):
        resolve(str(checkpoint() / "model.safetensors"))


def test_embedded_is_the_folder_in_the_repository(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert source.EMBEDDED_DIR.parts[-2:] == ("assets", "dictionary-lm")
    monkeypatch.setattr(source, "EMBEDDED_DIR", checkpoint("bert"))
    assert resolve("embedded") == str(checkpoint("bert"))
    monkeypatch.setattr(source, "EMBEDDED_DIR", tmp_path / "gone")
    with pytest.raises(PretrainedError, match="the embedded model is missing"):
        resolve("embedded")
