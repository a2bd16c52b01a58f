from __future__ import annotations

import json
from pathlib import Path

import pytest

from probelight.build.olmpics.frame import read_vocabulary


def test_vocabulary_of_a_model_folder(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 1}}}))
    assert read_vocabulary(tmp_path) == {"a", "b"}
    (tmp_path / "vocab.txt").write_text("c\nd\n")
    assert read_vocabulary(tmp_path) == read_vocabulary(tmp_path / "vocab.txt") == {"c", "d"}
    with pytest.raises(FileNotFoundError, match=r"no vocab\.txt or tokenizer\.json"):
        read_vocabulary(tmp_path / "elsewhere")
