"""The folder of a pre-trained model, and its card."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertForPreTraining

from probelight.callbacks.last_state import UnreadableCheckpointError
from probelight.io.errors import UsageError
from tests.fixtures.checkout import ROOT
from tests.fixtures.dictionary import PIECES, small_dictionary
from tools.dictionary_text import DictionaryText
from tools.export import MODEL_DIR, export_language_model
from tools.masked_lm import MaskedLanguageModel


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (None, UnreadableCheckpointError, "not a readable training state"),
        ({"state_dict": {}, "hyper_parameters": {"odd": 1}}, UsageError, "keyword argument"),
    ],
)
def test_what_is_no_state_is_named_and_no_folder_is_made(
    content: object, error: type[Exception], message: str, tmp_path: Path
) -> None:
    state = tmp_path / "last.ckpt"
    state.write_bytes(b"no state")
    if content is not None:
        torch.save(content, state)
    with pytest.raises(error, match=f"{re.escape(str(state))}: .*{message}"):
        export_language_model(str(state), str(tmp_path / "model"))
    assert not (tmp_path / "model").exists()


def test_the_folder_is_that_of_the_bundled_model_where_none_is_named() -> None:
    default = inspect.signature(export_language_model).parameters["output_dir"].default
    assert Path(default) == MODEL_DIR
    assert MODEL_DIR.resolve() == ROOT / "assets" / "bookshelf-lm"


@pytest.fixture
def state(tmp_path: Path, quiet_trainer: Callable[..., Any]) -> Path:
    """Three steps of a model of one layer."""
    torch.manual_seed(0)
    data = DictionaryText(**small_dictionary(tmp_path / "cache"))
    module = MaskedLanguageModel(len(PIECES), 16, num_layers=1, num_heads=2, max_length=24)
    trainer = quiet_trainer(max_epochs=-1, max_steps=3, limit_val_batches=0)
    trainer.fit(module, datamodule=data)
    path = tmp_path / "last.ckpt"
    trainer.save_checkpoint(path)
    return path


def test_the_folder_loads_by_name_and_replaces_the_one_that_is_there(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "old.txt").touch()
    assert export_language_model(str(state), str(folder)) == folder
    assert f'{folder}: held-out {{"val/loss": ' in capsys.readouterr().out
    assert not (folder / "old.txt").exists()
    assert (folder / "vocab.txt").read_text().split() == PIECES
    words = AutoTokenizer.from_pretrained(folder)("w3 w4s .")["input_ids"]
    assert [PIECES[index] for index in words] == ["[CLS]", "w3", "w4", "##s", ".", "[SEP]"]
    trained = torch.load(state, weights_only=True)["state_dict"]
    exported = BertForPreTraining.from_pretrained(folder, dtype="auto")
    name = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(exported.state_dict()[name], trained[f"model.{name}"].half())
    assert AutoModelForMaskedLM.from_pretrained(folder).config.vocab_size == len(PIECES) == 67


def test_the_card_says_what_a_reader_can_count(state: Path, tmp_path: Path) -> None:
    folder = export_language_model(str(state), str(tmp_path / "model"))
    card = (folder / "README.md").read_text()
    weights = folder / "model.safetensors"
    model = BertForPreTraining.from_pretrained(folder)
    number = sum(parameter.numel() for parameter in model.parameters())
    assert f"(1 layers, hidden size 16, {number:,} parameters, 67 WordPiece pieces)" in card
    # Thirty documents of three sentences: w, w, ##s and w.
    counts = re.search(r"360 pieces in (\d+) training documents; (\d+) documents held out", card)
    assert counts is not None
    assert sum(map(int, counts.groups())) == 30
    assert "training | 3 steps of" in card
    assert "AdamW, precision 32-true, " in card
    assert "0% of a dictionary's are a definition" in card
    assert f"sha256 `{hashlib.sha256(weights.read_bytes()).hexdigest()}`" in card
    assert f"float16, {weights.stat().st_size / 1e6:.1f} MB" in card
    assert "{" not in card
