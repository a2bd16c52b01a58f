"""Adapters whose tokenizer has more tokens than their model: read as peft reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

from probelight.lightning_modules.causal_choice import CausalChoice
from probelight.models.adapters import merge
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.kept_model import KeptModel
from probelight.models.loading import (
    CAUSAL_LM,
    ENCODER,
    MASKED_LM,
    Form,
    check_pretrained,
    load_pretrained,
)
from probelight.training.modules import saved_module
from tests.fixtures.architectures import ref_of
from tests.fixtures.causal import causal_folder

__all__ = ["causal_folder"]
Folder = Callable[..., Path]
WORDS = ("qwert", "<extra>")


def adapter_of(
    base: Path, folder: Path, auto_class: Any, saves: Any = "auto", **options: Any
) -> tuple[Any, torch.Tensor]:
    """Write an adapter and its tokenizer as peft does; return the model and ids of new tokens."""
    tokenizer, model = AutoTokenizer.from_pretrained(base), auto_class.from_pretrained(base)
    num_rows = len(model.get_input_embeddings().weight)
    fillers = [f"filler{i}" for i in range(num_rows - len(tokenizer))]  # of rows to spare
    tokenizer.add_tokens([*fillers, *WORDS])
    new = tokenizer.convert_tokens_to_ids(list(WORDS))
    assert new == [num_rows, num_rows + 1]
    torch.manual_seed(1)
    model.resize_token_embeddings(len(tokenizer))
    for name, indices in options.items():
        options[name] = new if name == "trainable_token_indices" else indices
    config = peft.LoraConfig(r=2, init_lora_weights=False, **options)
    wrapper = peft.get_peft_model(model, config).eval()
    with torch.no_grad():
        rows = () if options else (model.get_input_embeddings().weight,)
        for weight in wrapper.parameters():
            if weight.requires_grad or any(weight is row for row in rows):
                weight += 0.5 * torch.randn_like(weight)
    wrapper.save_pretrained(folder, save_embedding_layers=saves)
    tokenizer.save_pretrained(folder)
    return wrapper, torch.tensor([[5, new[0], 6, new[1], 7]])


def logits(model: Any, ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        outputs: torch.Tensor = model(input_ids=ids).logits
    return outputs


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("gpt2", {}),  # one weight for both ends
        ("llama", {}),
        ("llama", {"modules_to_save": ["embed_tokens", "lm_head"]}),
        ("gpt2", {"trainable_token_indices": [0]}),  # of the new tokens
        ("llama", {"trainable_token_indices": [0]}),
    ],
    ids=str,
)
def test_a_model_gets_the_rows_of_its_adapters_tokenizer(
    family: str, options: dict[str, Any], causal_folder: Folder, tmp_path: Path
) -> None:
    base = causal_folder(family)
    _, ids = adapter_of(base, tmp_path / "a", AutoModelForCausalLM, **options)
    plain = AutoModelForCausalLM.from_pretrained(base)
    plain.resize_token_embeddings(int(ids.max()) + 1)
    expected = logits(peft.PeftModel.from_pretrained(plain, tmp_path / "a").eval(), ids)
    ref = ref_of(tmp_path / "a")
    assert (
        check_pretrained(CAUSAL_LM, ref).outline().get_input_embeddings().weight.shape[0]
        == (expected.shape[-1])
    )
    model, tokenizer = load_pretrained(CAUSAL_LM, ref)
    assert tokenizer.tokenize("qwert") == ["qwert"]
    assert logits(model, ids).tolist() == expected.tolist()
    merge(model)
    torch.testing.assert_close(logits(model, ids), expected, rtol=0, atol=1e-4)
    fresh, _ = load_pretrained(CAUSAL_LM, replace(ref, random_weights=True, seed=1))
    assert logits(fresh, ids).shape == expected.shape


def test_an_encoder_needs_no_rows_of_the_head(checkpoint: Folder, tmp_path: Path) -> None:
    wrapper, ids = adapter_of(checkpoint("roberta"), tmp_path / "a", AutoModelForMaskedLM)
    for form in (MASKED_LM, ENCODER):
        model, _ = load_pretrained(form, ref_of(tmp_path / "a"))
        with torch.no_grad():
            expected = wrapper.get_base_model().base_model(input_ids=ids).last_hidden_state
            actual = model.base_model(input_ids=ids).last_hidden_state
        assert actual.tolist() == expected.tolist()


@pytest.mark.parametrize(("family", "layer"), [("gpt2", "transformer.wte"), ("llama", "lm_head")])
def test_rows_that_were_not_saved_are_not_made_up(
    family: str, layer: str, causal_folder: Folder, tmp_path: Path
) -> None:
    saves = {"gpt2": False, "llama": "auto"}[family]
    adapter_of(causal_folder(family), tmp_path / "a", AutoModelForCausalLM, saves)
    path = tmp_path / "a" / "adapter_model.safetensors"
    if family == "llama":
        from safetensors.torch import load_file, save_file

        weights = load_file(path)
        del weights[f"base_model.model.{layer}.weight"]
        save_file(weights, path)
    error = (
        f"a: its tokenizer has 2 tokens that its model lacks, but their rows of {layer} were not "
        "saved with the adapter; save it again with save_embedding_layers=True"
    )
    with pytest.raises(PretrainedError, match=error):
        load_pretrained(CAUSAL_LM, ref_of(tmp_path / "a"))


def test_a_model_that_is_kept_is_read_again_for_another_adapter(
    causal_folder: Folder, tmp_path: Path
) -> None:
    base, kept_model = causal_folder("llama"), KeptModel()
    _, ids = adapter_of(base, tmp_path / "a", AutoModelForCausalLM)
    form: Form = CAUSAL_LM
    refs = [ref_of(base), ref_of(tmp_path / "a"), ref_of(base)]
    expected = [logits(load_pretrained(form, ref)[0], ids.clamp(max=9)).tolist() for ref in refs]
    assert expected[0] != expected[1]
    sizes = [len(kept_model.read(form, ref)[1]) for ref in refs]
    assert sizes[1] > sizes[0] == sizes[2]
    scores = [logits(kept_model.read(form, ref)[0], ids.clamp(max=9)).tolist() for ref in refs]
    assert scores == expected


def test_rows_are_saved_again_with_an_adapter_that_is_trained_further(
    causal_folder: Folder, tmp_path: Path
) -> None:
    _, ids = adapter_of(causal_folder("llama"), tmp_path / "a", AutoModelForCausalLM)
    module = CausalChoice(str(tmp_path / "a"))
    names = [name for name, weight in module.named_parameters() if weight.requires_grad]
    assert {"lora_" in name for name in names} == {True}
    module.save_pretrained(tmp_path / "b")
    expected = logits(load_pretrained(CAUSAL_LM, ref_of(tmp_path / "a"))[0], ids)
    assert logits(load_pretrained(CAUSAL_LM, ref_of(tmp_path / "b"))[0], ids).equal(expected)
    again: Any = saved_module(tmp_path / "b")
    gathered = {name: weight.clone() for name, weight in again.state_dict().items()}
    with torch.no_grad():
        for weight in again.parameters():
            weight.zero_()  # as each process of a sharded fit has only a part
    again.save_pretrained(tmp_path / "c", gathered)
    assert logits(load_pretrained(CAUSAL_LM, ref_of(tmp_path / "c"))[0], ids).equal(expected)
