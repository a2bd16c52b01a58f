"""A model of transformers in memory as a scorer, and left as it was by what is asked of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import torch

from probelight.io.errors import UsageError
from probelight.io.ranges import Scoring, WeightsDtype
from probelight.io.settings import STRICT
from probelight.models.checkpoint_files import IN_MEMORY, CheckpointRef
from probelight.models.loading import Form, name_of, refuse_foreign_tokenizer
from probelight.models.networks import is_spread, model_fingerprint
from probelight.models.pair_choice import PairChoice
from probelight.models.registry import MODEL_TYPES, ModelSettings, detected_type, module_of
from probelight.models.scorer import Scorer, TrainedScorer
from probelight.probes.record import Setup


@dataclass(frozen=True)
class TextSettings:
    """How a model in memory is given its text, as in `ModelSettings`."""

    __pydantic_config__: ClassVar = STRICT

    max_length: int = 256
    multi_token: Literal["error", "skip", "pseudo_log_likelihood"] = "error"
    answer_prefix: str = "auto"
    pll: Literal["original", "within_word_l2r"] = "original"
    # What else scorers ask for is as it is.
    checkpoint: ClassVar[CheckpointRef] = CheckpointRef("model in memory")
    vectors: ClassVar[str] = ""
    scoring: ClassVar[Scoring] = "auto"
    dtype: ClassVar[WeightsDtype] = "auto"

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise UsageError(f"max_length {self.max_length}: give a number of tokens, at least 1")


def model_inside(network: Any) -> Any:
    """Return the model inside of torch.compile's wrapper, and of peft's for a model without a task.

    Its adapters are in its layers.

    Raises:
        UsageError: If peft puts prompts before the texts, which are outside of the model.
    """
    network = getattr(network, "_orig_mod", network)
    if type(network).__name__ == "PeftModel":
        if network.active_peft_config.is_prompt_learning:
            raise UsageError(
                "a PeftModel with prompts and no task_type: what it answers cannot be told; give "
                "get_peft_model a config with task_type"
            )
        network = network.get_base_model()
    return getattr(network, "_orig_mod", network)


def scorer_of(network: Any, tokenizer: Any, setup: Setup, settings: TextSettings) -> Scorer:
    """Return what scores probes of a setup with a model, whose weights are used, not copied.

    Raises:
        UsageError: If models of its type do not answer the setup.
        PretrainedError: If its family, its head or its tokenizer is not supported.
    """
    network = model_inside(network)
    tokenizer = copy.deepcopy(tokenizer)  # batches set its truncation and padding

    def read(form: Form, *_: Any, **__: Any) -> tuple[Any, Any]:
        refuse_foreign_tokenizer(form, name_of(network), network, tokenizer)
        return network, tokenizer

    if type(network).__name__.endswith("ForMultipleChoice"):
        if setup != "mc_qa":
            raise UsageError(f"a {type(network).__name__} answers questions, not sentences")
        return TrainedScorer(
            PairChoice(settings.checkpoint, "multiple_choice", settings.max_length, read=read)
        )
    kind, _ = detected_type(network)
    # There is no folder to look for a trained head in.
    with _registered(settings.checkpoint.name, network, tokenizer):
        return cast(Scorer, module_of(MODEL_TYPES[kind]).load(settings, setup, read=read))


@contextmanager
def _registered(name: str, network: Any, tokenizer: Any) -> Iterator[None]:
    IN_MEMORY[name] = network, tokenizer
    try:
        yield
    finally:
        del IN_MEMORY[name]


@contextmanager
def held(network: Any, tokenizer: Any) -> Iterator[ModelSettings]:
    """Let runs score a model where it is, by the settings that are yielded; it stays as it was.

    Its name has the checksum of the weights: a folder of results is of one state of them.
    """
    network = model_inside(network)
    kind, _ = detected_type(network)
    label = name_of(network).replace("+", "-")
    name = f"memory:{model_fingerprint(network)[:12]}/{label}"
    device = network.device
    tokenizer = copy.deepcopy(tokenizer)  # batches set its truncation and padding
    try:
        with _registered(name, network, tokenizer), as_it_was(network):
            yield ModelSettings(name_or_path=name, kind=kind)
    finally:
        if not is_spread(network):
            network.to(device)


@contextmanager
def as_it_was(network: Any) -> Iterator[None]:
    """Leave a model and the random states of torch as they were, whatever is asked of it."""
    modes = [(module, module.training) for module in network.modules()]
    # Accelerate, and so transformers' Trainer, wraps a forward pass in autocast; scores are those
    # of the weights as they would be saved.
    wrapped = vars(network).get("forward") if hasattr(network, "_original_forward") else None
    if wrapped is not None:
        network.forward = network._original_forward
    weights = [(weight, weight.requires_grad) for weight in network.parameters()]
    devices = {w.device.index or 0 for w, _ in weights if w.device.type == "cuda"}
    try:
        with torch.random.fork_rng(sorted(devices)):
            yield
    finally:
        if wrapped is not None:
            network.forward = wrapped
        for module, mode in modes:
            module.training = mode
        for weight, is_trained in weights:
            weight.requires_grad_(is_trained)
