from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probelight.encoding.chat import MAX_TEMPLATE
from probelight.models import checkpoint_files as source
from probelight.models.checkpoint_errors import PretrainedError, check_size, one_error
from probelight.models.checkpoint_files import (
    CheckpointRef,
    agree,
    base_of,
    check_tokenizer_files,
    resolve,
)
from tests.fixtures.architectures import ref_of

Checkpoint = Callable[..., Path]


def test_a_model_with_a_revision_and_an_adapter_is_read_from_its_text(tmp_path: Path) -> None:
    whole = CheckpointRef("a/b", "main", "c/d")
    assert ref_of("a/b@main+c/d", reads_revision=True) == whole
    assert ref_of("a/b@main+c/d", seed=1) == CheckpointRef("a/b@main", adapter="c/d", seed=1)
    assert ref_of("a+b+c") == CheckpointRef("a+b", adapter="c")  # on top of another adapter
    for name in ("+a", "a+", str(tmp_path / "a@b+c")):
        (tmp_path / "a@b+c").mkdir(exist_ok=True)
        assert ref_of(name, reads_revision=True) == CheckpointRef(name)
    assert (str(whole), whole.folder) == ("a/b@main+c/d", Path("c/d"))


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "adapter": (lambda folder: base_of(ref_of(f"model+{folder}")), "has no adapter_config.json"),
    "larger than memory": (lambda _: check_size("here", 1 << 50, None), "this machine has"),
    "saved otherwise": (
        lambda _: agree("num_choices", 4, 5, "here"),
        "here was saved with num_choices 5, so num_choices=4",
    ),
}


@pytest.mark.parametrize(("check", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_loaded_is_refused(
    check: Callable[[Path], Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(PretrainedError, match=message):
        check(tmp_path)


def test_whatever_a_library_raises_is_one_line_with_its_place(tmp_path: Path) -> None:
    message = r"^cannot load the head of folder .*: KeyError: 'x'"
    with pytest.raises(PretrainedError, match=message), one_error(tmp_path, "head"):
        raise KeyError("x")
    message = r"'a/b' \(a name on the Hub\): ValueError: no: 1"
    with pytest.raises(PretrainedError, match=message), one_error("a/b", "weights"):
        raise ValueError("no:\n 1\n 2")
    with pytest.raises(KeyboardInterrupt), one_error(tmp_path, "head"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("tokenizer.json", 1 << 30),
        ("vocab.txt", 1 << 30),
        ("tokenizer_config.json", 16 << 20),
        ("chat_template.jinja", MAX_TEMPLATE),
        ("additional_chat_templates/tool.jinja", MAX_TEMPLATE),
    ],
)
def test_a_tokenizers_files_are_as_large_as_one_can_be(
    name: str, most: int, tmp_path: Path
) -> None:
    (tmp_path / "tokenizer.json").touch()
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, most)  # it takes no room on the disk
    check_tokenizer_files(tmp_path)
    os.truncate(path, most + 1)
    error = rf"{name} cannot be read by a tokenizer: it has {most + 1:,} bytes, more than {most:,}$"
    with pytest.raises(PretrainedError, match=error):
        check_tokenizer_files(tmp_path)


def test_the_bundled_model_is_the_folder_in_the_repository(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resolve("bookshelf-lm").endswith("/assets/bookshelf-lm")
    assert resolve("dictionary-lm").endswith("/assets/dictionary-lm")
    shutil.copytree(checkpoint("bert"), tmp_path / "bookshelf-qa")
    monkeypatch.setattr(source, "ASSETS", tmp_path)
    assert resolve("bookshelf-qa") == str(tmp_path / "bookshelf-qa")
    with pytest.raises(
        PretrainedError, match=r"the bundled model is missing: there is no folder .*-lm$"
    ):
        resolve("dictionary-lm")
