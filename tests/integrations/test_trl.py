"""Probes in the loops of TRL that learn from preferences and from rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from peft import LoraConfig
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, set_seed
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from probelight.integrations.transformers import ProbeTrainerCallback
from tests.fixtures.causal import VOCAB_SIZE, causal_tokenizer

PROMPTS = ["a cat is", "the antelope is"] * 4
PREFERENCES = {
    "prompt": PROMPTS,
    "chosen": [" smaller than a dog ."] * 8,
    "rejected": [" larger than a dog ."] * 8,
}


def num_characters(completions: list[str], **_: Any) -> list[float | None]:
    return [float(len(text)) for text in completions]


def trained(loop: str, out: Path, *callbacks: ProbeTrainerCallback) -> dict[str, Tensor]:
    """The weights after three steps, with a LoRA where preferences are learned."""
    set_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": VOCAB_SIZE, "hidden_size": 16, "intermediate_size": 16,
        "num_hidden_layers": 1, "num_attention_heads": 2,
    }  # fmt: skip
    options: dict[str, Any] = {
        "output_dir": str(out), "max_steps": 3, "per_device_train_batch_size": 2, "bf16": False,
        "learning_rate": 1e-2, "report_to": [], "save_strategy": "no", "disable_tqdm": True,
    }  # fmt: skip
    common: dict[str, Any] = {
        "model": LlamaForCausalLM(LlamaConfig(**sizes)),
        "processing_class": causal_tokenizer("llama"),
        "callbacks": [*callbacks],
    }
    common["processing_class"].pad_token = common["processing_class"].eos_token
    trainer: DPOTrainer | GRPOTrainer
    if loop == "dpo":
        trainer = DPOTrainer(
            args=DPOConfig(**options),
            train_dataset=Dataset.from_dict(PREFERENCES),
            peft_config=LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM"),
            **common,
        )
    else:
        trainer = GRPOTrainer(
            reward_funcs=num_characters,
            args=GRPOConfig(**options, num_generations=2, max_completion_length=4),
            train_dataset=Dataset.from_dict({"prompt": PROMPTS}),
            **common,
        )
    trainer.train()
    assert trainer.model is not None
    return {name: value.clone() for name, value in trainer.model.state_dict().items()}


@pytest.mark.thorough
@pytest.mark.parametrize("loop", ["dpo", "grpo"])
def test_trl_trainers_are_watched_and_learn_the_same_weights(loop: str, tmp_path: Path) -> None:
    watch = ProbeTrainerCallback(["age_small"], every=2, max_items=20)
    watched = trained(loop, tmp_path / "watched", watch)
    assert [look.step for look in watch.watch.looks] == [0, 2, 3]
    assert [*watch.changes["last_step"]] == [3]
    without = trained(loop, tmp_path / "alone")
    assert watched.keys() == without.keys()
    assert all(torch.equal(value, without[name]) for name, value in watched.items())
