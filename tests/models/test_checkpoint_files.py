from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probelight.models import checkpoint_files as source
from probelight.models.checkpoint_files import (
    PretrainedError,
    agree,
    check_config,
    check_input_sizes,
    check_size,
    check_tokenizer_files,
    check_weights,
    one_error,
    read_settings,
    resolve,
)


def written(folder: Path, **config: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_whole_checkpoint_passes(checkpoint: Callable[..., Path]) -> None:
    folder = checkpoint("bert")
    assert check_config(folder)["model_type"] == "bert"
    check_tokenizer_files(folder)
    assert check_weights(folder) == (folder / "model.safetensors").stat().st_size


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "model_type is None, not the name of a kind of model"),
        ({"model_type": "bert", "hidden_size": 0}, "hidden_size is 0, not a whole number from 1"),
        ({"model_type": "bert", "num_hidden_layers": 10**6}, "num_hidden_layers is 1000000"),
        ({"model_type": "bert", "attn_implementation": "a/b"}, "'a/b' is code, which is never run"),
    ],
)
def test_settings_that_no_model_has_are_refused(
    config: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(PretrainedError, match=said):
        check_config(written(tmp_path, **config))


def test_a_folder_without_a_model_says_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(PretrainedError, match="give the one that save_pretrained wrote"):
        check_config(tmp_path)
    (tmp_path / "checkpoints" / "best").mkdir(parents=True)
    with pytest.raises(PretrainedError, match="it is a run; give its model"):
        check_config(tmp_path)
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(PretrainedError, match="it holds an adapter"):
        check_config(tmp_path)
    with pytest.raises(PretrainedError, match="has no tokenizer"):
        check_tokenizer_files(tmp_path)
    with pytest.raises(PretrainedError, match=r"has no weights: model\.safetensors is missing"):
        check_weights(tmp_path)


def test_shards_must_lie_beside_their_list(tmp_path: Path) -> None:
    index = {"metadata": {}, "weight_map": {"a": "../model-1.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(PretrainedError, match=r"which is no \.safetensors file beside it"):
        check_weights(tmp_path)
    index["weight_map"] = {"a": "model-1.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(PretrainedError, match=r"its weights model-1\.safetensors are not"):
        check_weights(tmp_path)


def test_a_model_larger_than_its_files_or_the_machine_is_refused() -> None:
    check_size("here", 100, 25)
    with pytest.raises(PretrainedError, match="they do not belong together"):
        check_size("here", 101, 25)
    check_size("here", 100, None)
    with pytest.raises(PretrainedError, match="this machine has"):
        check_size("here", 1 << 50, None)


def test_settings_of_our_own_are_checked_where_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text("[]")
    with pytest.raises(PretrainedError, match="it holds a list, no object"):
        read_settings(path)
    with pytest.raises(PretrainedError, match="num_choices is 1, not a whole number from 2 on"):
        check_input_sizes(path, {"num_choices": 1})
    check_input_sizes(path, {"max_length": 8, "num_choices": None})


def test_whatever_a_library_raises_is_one_line_with_its_place(tmp_path: Path) -> None:
    said = r"^cannot load the head of folder .*: KeyError: 'x'"
    with pytest.raises(PretrainedError, match=said), one_error(tmp_path, "head"):
        raise KeyError("x")
    said = r"'a/b' \(a name on the Hub\): ValueError: no: 1"
    with pytest.raises(PretrainedError, match=said), one_error("a/b", "weights"):
        raise ValueError("no:\n 1\n 2")
    with pytest.raises(KeyboardInterrupt), one_error(tmp_path, "head"):
        raise KeyboardInterrupt


def test_what_is_asked_for_must_be_what_was_saved() -> None:
    assert agree("num_choices", None, 5, "here") == 5
    assert agree("num_choices", 4, None, "here") == 4
    assert agree("num_choices", 5, 5, "here") == 5
    with pytest.raises(PretrainedError, match="here was saved with num_choices 5; num_choices=4"):
        agree("num_choices", 4, 5, "here")


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
