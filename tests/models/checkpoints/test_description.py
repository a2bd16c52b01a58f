from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMultipleChoice, AutoTokenizer, GPT2Config

from probelight.models.checkpoints.description import (
    check_pretrained,
    describe,
    has_choice_head,
    load_tokenizer,
)
from probelight.models.checkpoints.folder import PretrainedError
from probelight.models.checkpoints.forms import MASKED_LM
from probelight.models.checkpoints.loading import load_pretrained

Checkpoint = Callable[..., Path]


@pytest.fixture
def folder(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    """A copy of a BERT checkpoint that a test may damage."""
    return Path(shutil.copytree(checkpoint("bert"), tmp_path / "model"))


def test_a_check_reads_no_weights(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    lost = {name: torch.full_like(tensor, torch.nan) for name, tensor in tensors.items()}
    save_file(lost, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer = check_pretrained(MASKED_LM, str(folder))
    assert tokenizer.get_vocab() == load_tokenizer(str(folder)).get_vocab()
    with pytest.raises(PretrainedError, match="NaN"):
        load_pretrained(MASKED_LM, str(folder))


def test_a_check_refuses_what_settings_and_tokenizer_tell(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(PretrainedError, match="no tokenizer"):
        check_pretrained(MASKED_LM, str(folder))
    GPT2Config(vocab_size=60).save_pretrained(folder)
    with pytest.raises(PretrainedError, match="causal language model"):
        check_pretrained(MASKED_LM, str(folder))


def test_an_encoder_of_sentence_transformers_has_no_head_to_fill_masks_with(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    (folder / "modules.json").write_text("[]")
    (folder / "model.safetensors").unlink()  # it is not looked at
    with pytest.raises(PretrainedError, match=r"keeps the encoder alone \(BertModel\)"):
        check_pretrained(MASKED_LM, str(folder))
    check_pretrained(MASKED_LM, str(folder), random_weights=True)


def test_an_outline_has_the_models_shapes_and_no_numbers(checkpoint: Checkpoint) -> None:
    outline = describe(MASKED_LM, str(checkpoint()), None, random_weights=False).outline()
    model, _ = load_pretrained(MASKED_LM, str(checkpoint()))
    shapes = {name: value.shape for name, value in model.named_parameters()}
    assert {name: value.shape for name, value in outline.named_parameters()} == shapes
    assert all(value.is_meta for value in outline.parameters())


def test_a_head_for_choices_is_known_by_the_config(checkpoint: Checkpoint, tmp_path: Path) -> None:
    assert not has_choice_head(str(checkpoint()))
    assert not has_choice_head(str(tmp_path))
    AutoModelForMultipleChoice.from_pretrained(checkpoint()).save_pretrained(tmp_path / "theirs")
    AutoTokenizer.from_pretrained(checkpoint()).save_pretrained(tmp_path / "theirs")
    assert has_choice_head(str(tmp_path / "theirs"))
