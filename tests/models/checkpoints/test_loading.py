from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, PreTrainedModel

from probelight.models.checkpoints.folder import PretrainedError
from probelight.models.checkpoints.forms import ENCODER, MASKED_LM
from probelight.models.checkpoints.loading import load_pretrained
from probelight.models.checkpoints.weights import model_fingerprint

Checkpoint = Callable[..., Path]


@pytest.fixture
def folder(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    """A copy of a BERT checkpoint that a test may damage."""
    return Path(shutil.copytree(checkpoint("bert"), tmp_path / "model"))


def test_a_checkpoint_is_loaded_whole_in_single_precision_and_eval_mode(
    checkpoint: Checkpoint, tiny_model: Callable[..., PreTrainedModel]
) -> None:
    model, tokenizer = load_pretrained(MASKED_LM, str(checkpoint("bert")))
    assert model_fingerprint(model) == model_fingerprint(tiny_model("bert"))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not model.training
    assert tokenizer.mask_token_id == 4


def test_half_precision_weights_become_single_precision(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    half = {name: tensor.half() for name, tensor in tensors.items()}
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "float16"}))
    for random_weights in (False, True):
        model, _ = load_pretrained(MASKED_LM, str(folder), random_weights=random_weights)
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_loading_says_nothing(checkpoint: Checkpoint, capfd: pytest.CaptureFixture[str]) -> None:
    load_pretrained(ENCODER, str(checkpoint("bert")))
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_loading_leaves_the_random_state_alone(checkpoint: Checkpoint) -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    load_pretrained(MASKED_LM, str(checkpoint("bert")), random_weights=True)
    load_pretrained(ENCODER, str(checkpoint("bert")))
    assert torch.equal(torch.rand(2), expected)


def test_missing_weights_are_refused_by_name(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["cls.predictions.transform.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    match = r"1 weights of BertForMaskedLM are missing \(cls.predictions.transform.dense.weight\)"
    with pytest.raises(PretrainedError, match=match):
        load_pretrained(MASKED_LM, str(folder))
    load_pretrained(ENCODER, str(folder))  # it needs no head


def test_a_new_head_that_the_config_hides_is_found(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint("deberta_v2_new_head"), tmp_path / "v3"))
    config = json.loads((folder / "config.json").read_text())
    del config["legacy"]  # as published DeBERTa-v3 checkpoints
    (folder / "config.json").write_text(json.dumps(config))
    model, _ = load_pretrained(MASKED_LM, str(folder))
    original, _ = load_pretrained(MASKED_LM, str(checkpoint("deberta_v2_new_head")))
    assert model_fingerprint(model) == model_fingerprint(original)


@pytest.mark.parametrize("keep", [0, 7, 5000])
def test_truncated_weights_give_one_error_naming_the_folder(folder: Path, keep: int) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(PretrainedError, match=f"cannot load the weights of folder {folder}"):
        load_pretrained(MASKED_LM, str(folder))


def test_a_broken_config_gives_one_error_naming_the_folder(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": ')
    with pytest.raises(PretrainedError, match=f"{folder}/config.json cannot be read"):
        load_pretrained(MASKED_LM, str(folder))


def test_a_pickle_is_not_opened_where_safetensors_lie(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"not opened")
    load_pretrained(MASKED_LM, str(folder))


class _Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("/tmp/probelight-evil"),)


def test_a_pickle_with_code_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    large_enough = {"y": torch.zeros(100_000)}
    torch.save({"bert.x": _Evil(), **large_enough}, folder / "pytorch_model.bin")
    with pytest.raises(PretrainedError, match=f"cannot load the weights of folder {folder}"):
        load_pretrained(MASKED_LM, str(folder))
    assert not Path("/tmp/probelight-evil").exists()


def test_a_tokenizer_that_does_not_fit_is_refused(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    small = {k: v[:20] if v.shape[:1] == (60,) else v for k, v in tensors.items()}
    save_file(small, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 20}))
    with pytest.raises(PretrainedError, match=r"the tokenizer has 5\d entries, the model only 20"):
        load_pretrained(MASKED_LM, str(folder))


@pytest.mark.parametrize(("architecture", "places"), [("bert", 64), ("roberta", 63), ("mpnet", 62)])
def test_no_input_is_longer_than_the_model_has_places(
    checkpoint: Checkpoint, tmp_path: Path, architecture: str, places: int
) -> None:
    """RoBERTa's first place is behind that of the padding, id 0 here; MPNet's padding has id 1."""
    folder = Path(shutil.copytree(checkpoint(architecture), tmp_path / "model"))
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    settings.pop("model_max_length", None)
    path.write_text(json.dumps(settings))
    model, tokenizer = load_pretrained(MASKED_LM, str(folder))
    assert tokenizer.model_max_length == places
    model(torch.full((1, places), 7))
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, places + 1), 7))


def test_a_causal_model_is_refused_by_name(folder: Path) -> None:
    GPT2Config(vocab_size=60).save_pretrained(folder)
    with pytest.raises(PretrainedError, match="GPT2Config"):
        load_pretrained(MASKED_LM, str(folder))


def test_a_name_on_the_hub_while_offline_is_one_clear_error() -> None:
    match = r"'no-such/model' \(a name on the Hub\).*HF_HUB_OFFLINE"
    with pytest.raises(PretrainedError, match=match):
        load_pretrained(MASKED_LM, "no-such/model")
