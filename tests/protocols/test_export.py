from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from probelight.models.checkpoint_files import EMBEDDED_DIR
from probelight.protocols import cli
from probelight.protocols.cli.errors import FAILURE
from probelight.protocols.export import MODEL_DIR, export_language_model


def test_what_is_no_state_is_named_in_a_line_and_no_folder_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "last.ckpt"
    state.write_bytes(b"no state")
    assert cli.main(["export", str(state), f"--output_dir={tmp_path / 'model'}"]) == FAILURE
    [line] = capsys.readouterr().err.strip().splitlines()
    assert line.startswith(f"train.py export: failed: {state}: not a readable training state")
    assert not (tmp_path / "model").exists()


def test_the_folder_is_that_of_the_embedded_model_where_none_is_named() -> None:
    default = inspect.signature(export_language_model).parameters["output_dir"].default
    assert Path(default) == MODEL_DIR == EMBEDDED_DIR
