"""Models in memory inside of wrappers of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PromptTuningConfig, get_peft_model
from transformers import AutoModelForMaskedLM, AutoTokenizer

import probelight
from probelight.io.errors import UsageError
from probelight.models.in_memory import model_inside

ITEMS = [{"sentence": "the cat is [MASK] than the dog", "choices": ["older", "younger"], "gold": 0}]


def scores_of(model: Any, folder: Path) -> list[float]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    run = probelight.zero_shot((model, tokenizer), ITEMS)
    scores: list[float] = run.items["scores"].iloc[0]
    return scores


def with_lora(folder: Path) -> tuple[Any, Any]:
    """Return peft's wrapper without a task, its adapter not zero, and a model with it merged."""
    settings = LoraConfig(target_modules=["query", "value"], init_lora_weights=False)
    torch.manual_seed(0)
    wrapped = get_peft_model(AutoModelForMaskedLM.from_pretrained(folder), settings)
    torch.manual_seed(0)
    twin = get_peft_model(AutoModelForMaskedLM.from_pretrained(folder), settings)
    return wrapped, twin.merge_and_unload()


def test_an_adapter_without_a_task_and_a_compiled_model_are_read(
    checkpoint: Callable[..., Path],
) -> None:
    wrapped, merged = with_lora(checkpoint())
    expected = scores_of(merged, checkpoint())
    plain = scores_of(AutoModelForMaskedLM.from_pretrained(checkpoint()), checkpoint())
    assert plain != pytest.approx(expected, abs=1e-3)
    assert type(wrapped).__name__ == "PeftModel"
    for model in (wrapped, torch.compile(wrapped), torch.compile(merged)):
        assert scores_of(model, checkpoint()) == pytest.approx(expected, abs=1e-5)


def test_prompts_that_are_outside_of_the_model_are_refused(checkpoint: Callable[..., Path]) -> None:
    model = AutoModelForMaskedLM.from_pretrained(checkpoint())
    wrapped = get_peft_model(model, LoraConfig(target_modules=["query"]))
    wrapped.peft_config["default"] = PromptTuningConfig(num_virtual_tokens=2)
    with pytest.raises(UsageError, match="with prompts and no task_type"):
        model_inside(wrapped)
