from __future__ import annotations

import json
import re
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BartConfig,
    BertTokenizer,
    MT5Config,
    PreTrainedModel,
)

from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.loading import (
    ENCODER,
    MASKED_LM,
    check_pretrained,
    load_pretrained,
    load_tokenizer,
    longest_text,
    refuse_foreign_tokenizer,
)
from probelight.models.networks import model_fingerprint
from tests.fixtures.architectures import ref_of

Checkpoint = Callable[..., Path]


@pytest.fixture
def folder(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    """A copy of a BERT checkpoint that a test may damage."""
    return Path(shutil.copytree(checkpoint("bert"), tmp_path / "model"))


def change(path: Path, **settings: Any) -> None:
    merged = {**json.loads(path.read_text()), **settings}
    path.write_text(json.dumps({name: v for name, v in merged.items() if v is not None}))


def test_a_checkpoint_is_loaded_whole_in_single_precision_and_eval_mode(
    checkpoint: Checkpoint, tiny_model: Callable[..., PreTrainedModel]
) -> None:
    model, tokenizer = load_pretrained(MASKED_LM, ref_of(checkpoint("bert")))
    assert model_fingerprint(model) == model_fingerprint(tiny_model("bert"))
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not model.training
    assert tokenizer.mask_token_id == 4


def test_half_precision_weights_become_single_precision(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    half = {name: tensor.half() for name, tensor in tensors.items()}
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    change(folder / "config.json", dtype="float16")
    for random_weights in (False, True):
        model, _ = load_pretrained(MASKED_LM, ref_of(folder, random_weights=random_weights))
        assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_loading_says_nothing_and_leaves_the_random_state_alone(
    checkpoint: Checkpoint, capfd: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    load_pretrained(MASKED_LM, ref_of(checkpoint("bert"), random_weights=True))
    load_pretrained(ENCODER, ref_of(checkpoint("bert")))
    assert torch.equal(torch.rand(2), expected)
    assert capfd.readouterr() == ("", "")


def test_integers_are_buffers_and_no_weights(folder: Path) -> None:
    path, metadata = folder / "model.safetensors", {"format": "pt"}
    tensors = load_file(path)
    places = torch.arange(64)[None]
    buffers = {"bert.embeddings.position_ids": places, "bert.layer.0.attn.bias": places > 3}
    save_file({**tensors, **buffers}, path, metadata)
    load_pretrained(MASKED_LM, ref_of(folder))
    name = "bert.encoder.layer.0.attention.self.query.bias"
    wrong = {**tensors, name: torch.ones(32, dtype=torch.int32)}
    for prefix in ("", "bert."):  # of an encoder alone, as it is saved with its head
        save_file({n.removeprefix(prefix): w for n, w in wrong.items()}, path, metadata)
        match = f"the weight {name.removeprefix(prefix)} has I32 numbers, not floating-point"
        with pytest.raises(PretrainedError, match=match):
            check_pretrained(MASKED_LM, ref_of(folder))  # before weights are read


@pytest.mark.parametrize(
    ("dtype", "name"), [("float8_e4m3fn", "F8_E4M3"), ("float8_e5m2", "F8_E5M2")]
)
def test_numbers_of_eight_bits_need_the_settings_that_say_how_they_are_scaled(
    dtype: str, name: str, folder: Path
) -> None:
    path, weight = folder / "model.safetensors", "bert.encoder.layer.0.output.dense.weight"
    tensors = load_file(path)
    tensors[weight] = tensors[weight].to(getattr(torch, dtype))
    save_file(tensors, path, metadata={"format": "pt"})
    match = f"the weight {weight} has {name} numbers, but config.json has no quantization_config"
    for read in (check_pretrained, load_pretrained):
        with pytest.raises(PretrainedError, match=match):
            read(MASKED_LM, ref_of(folder))


def test_missing_weights_are_refused_by_name(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors["cls.predictions.transform.dense.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    match = r"1 weights of BertForMaskedLM are missing \(cls.predictions.transform.dense.weight\)"
    with pytest.raises(PretrainedError, match=match):
        load_pretrained(MASKED_LM, ref_of(folder))
    load_pretrained(ENCODER, ref_of(folder))  # it needs no head


def test_a_name_that_is_not_in_the_cache_is_said_to_be_one_on_the_hub() -> None:
    with pytest.raises(PretrainedError, match=r"no folder 'no/such', and the Hub .*HF_HUB_OFFLINE"):
        check_pretrained(MASKED_LM, ref_of("no/such"))


def test_a_hub_that_is_not_reached_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-model").mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)  # nobody listens there now
    template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("it tries again"))
    error = (
        r"^there is no folder 'my-modle' \(did you mean 'my-model'\?\), and the Hub cannot "
        rf"be reached at {address} to look there \(ConnectError: .*refused\); where "
    )
    with pytest.raises(PretrainedError, match=error):
        check_pretrained(MASKED_LM, ref_of("my-modle"))
    with pytest.raises(PretrainedError, match=r"'roberta_large' \(did you mean 'roberta-large'"):
        check_pretrained(MASKED_LM, ref_of("roberta_large"))


@pytest.mark.parametrize(
    "name", ["bert-base-uncased", "roberta-large", "gpt2", "EleutherAI/pythia"]
)
def test_a_right_name_is_not_taken_for_a_typo_where_the_hub_is_not_reached(name: str) -> None:
    with pytest.raises(
        PretrainedError, match=f"^there is no folder '{name}', and the Hub"
    ) as error:
        check_pretrained(MASKED_LM, ref_of(name))
    assert "did you mean" not in str(error.value)
    assert f"`hf download {name} --local-dir FOLDER`" in str(error.value)


def test_a_new_head_that_the_config_hides_is_found(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint("deberta_v2_new_head"), tmp_path / "v3"))
    change(folder / "config.json", legacy=None)  # as published DeBERTa-v3 checkpoints
    model, _ = load_pretrained(MASKED_LM, ref_of(folder))
    original, _ = load_pretrained(MASKED_LM, ref_of(checkpoint("deberta_v2_new_head")))
    assert model_fingerprint(model) == model_fingerprint(original)


class _Evil:
    def __reduce__(self) -> Any:
        return Path.touch, (Path("/tmp/probelight-evil"),)


def test_a_pickle_with_code_is_not_opened_where_safetensors_lie(folder: Path) -> None:
    torch.save({"bert.x": _Evil(), "y": torch.zeros(100_000)}, folder / "pytorch_model.bin")
    load_pretrained(MASKED_LM, ref_of(folder))
    assert not Path("/tmp/probelight-evil").exists()


@pytest.mark.parametrize(("architecture", "places"), [("bert", 64), ("roberta", 63), ("mpnet", 62)])
def test_no_input_is_longer_than_the_model_has_places(
    checkpoint: Checkpoint, tmp_path: Path, architecture: str, places: int
) -> None:
    """RoBERTa's first place is behind that of the padding, id 0 here; MPNet's padding has id 1."""
    folder = Path(shutil.copytree(checkpoint(architecture), tmp_path / "model"))
    change(folder / "tokenizer_config.json", model_max_length=None)
    model, tokenizer = load_pretrained(MASKED_LM, ref_of(folder))
    assert tokenizer.model_max_length == places
    model(torch.full((1, places), 7))
    with pytest.raises((IndexError, RuntimeError)):
        model(torch.full((1, places + 1), 7))
    # Rotated and relative positions.
    assert longest_text(BartConfig(max_position_embeddings=30)) == 30
    assert longest_text(MT5Config()) > 10**9


def test_a_check_reads_no_weights(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    tensors = load_file(folder / "model.safetensors")
    lost = {name: torch.full_like(tensor, torch.nan) for name, tensor in tensors.items()}
    save_file(lost, folder / "model.safetensors", metadata={"format": "pt"})
    files = check_pretrained(MASKED_LM, ref_of(folder))
    assert files.tokenizer.get_vocab() == load_tokenizer(ref_of(folder)).get_vocab()
    outline = {name: weight.shape for name, weight in files.outline().named_parameters()}
    assert all(weight.is_meta for weight in files.outline().parameters())
    (folder / "model.safetensors").write_bytes(content)
    model, _ = load_pretrained(MASKED_LM, ref_of(folder))
    assert {name: weight.shape for name, weight in model.named_parameters()} == outline
    save_file(lost, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(PretrainedError, match="NaN"):
        load_pretrained(MASKED_LM, ref_of(folder))


def test_an_encoder_of_sentence_transformers_has_no_head_to_fill_masks_with(folder: Path) -> None:
    change(folder / "config.json", architectures=["BertModel"])
    (folder / "modules.json").write_text("[]")
    (folder / "model.safetensors").unlink()  # it is not looked at
    with pytest.raises(PretrainedError, match=r"has only the encoder \(BertModel\)"):
        check_pretrained(MASKED_LM, ref_of(folder))
    check_pretrained(MASKED_LM, ref_of(folder, random_weights=True))


def test_code_that_comes_with_a_model_is_refused_in_one_line(folder: Path) -> None:
    code = folder / "modeling.py"
    code.write_text(f"open({str(folder / 'ran')!r}, 'w')")
    classes = {"AutoConfig": "modeling.Config", "AutoModelForMaskedLM": "modeling.Model"}
    change(folder / "config.json", model_type="somebodys", auto_map=classes)
    error = (
        f"{folder}: transformers can read it only by Python code that comes with it, which "
        "Probelight never runs; give a model of a family that transformers has, or load this one "
        "yourself and pass it on in Python: probelight.zero_shot((model, tokenizer), probes)"
    )
    with pytest.raises(PretrainedError, match=f"^{re.escape(error)}$"):
        check_pretrained(MASKED_LM, ref_of(folder))
    assert not (folder / "ran").exists()


TinyModel = Callable[..., PreTrainedModel]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tokenizer(num_words: int) -> BertTokenizer:
    words = [*SPECIAL, *(f"w{i}" for i in range(num_words))]
    return BertTokenizer(vocab={word: i for i, word in enumerate(words)})


def test_a_vocabulary_may_leave_rows_to_spare_but_no_more(tiny_model: TinyModel) -> None:
    model = tiny_model("bert")  # 60 rows
    for num_words in (55, 20, 10):
        refuse_foreign_tokenizer(MASKED_LM, "here", model, tokenizer(num_words))
    with pytest.raises(
        PretrainedError, match="here: the tokenizer has 14 entries, but the model 60"
    ):
        refuse_foreign_tokenizer(MASKED_LM, "here", model, tokenizer(9))
    with pytest.raises(PretrainedError, match="has 61 entries, but the model only 60"):
        refuse_foreign_tokenizer(MASKED_LM, "here", model, tokenizer(56))


def test_a_form_asks_for_its_own_special_tokens(tiny_model: TinyModel) -> None:
    model, maskless, padless = tiny_model("bert"), tokenizer(40), tokenizer(40)
    maskless.mask_token = None
    refuse_foreign_tokenizer(ENCODER, "here", model, maskless)
    with pytest.raises(PretrainedError, match="here: the tokenizer has no mask token"):
        refuse_foreign_tokenizer(MASKED_LM, "here", model, maskless)
    padless.pad_token = None
    with pytest.raises(PretrainedError, match="here: the tokenizer has no padding token"):
        refuse_foreign_tokenizer(ENCODER, "here", model, padless)
