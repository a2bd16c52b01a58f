from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from probelight.lightning_modules.baselines.esim import ESIM
from probelight.lightning_modules.baselines.mlm_baseline import MLMBaseline
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import is_word_folder, word_settings

LINES = "the 1 0\nhot 2 -1\n"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "v.txt"
    path.write_text(LINES)
    MLMBaseline(str(path), num_tokens=3, seed=7).save_pretrained(tmp_path / "saved")
    return tmp_path / "saved"


def test_the_folder_says_what_it_was_made_of_and_another_kind_is_refused(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == [
        "model.safetensors",
        "word_module.json",
    ]
    assert json.loads((saved / "word_module.json").read_text()) == {
        "format": 1,
        "kind": "mlm_baseline",
        "vectors": str(saved.with_name("v.txt")),
        "vectors_sha256": hashlib.sha256(LINES.encode()).hexdigest(),
        "dimension": 2,
        "num_tokens": 3,
        "seed": 7,
    }
    with pytest.raises(PretrainedError, match="has a saved mlm_baseline, not esim"):
        ESIM.from_folder(saved)


def test_the_settings_are_those_saved_with_the_kind(tmp_path: Path) -> None:
    assert not is_word_folder(tmp_path)
    settings = {"format": 1, "kind": "esim", "num_choices": 5}
    (tmp_path / "word_module.json").write_text(json.dumps(settings))
    assert is_word_folder(tmp_path)
    assert word_settings(tmp_path) == {"kind": "esim", "num_choices": 5}
