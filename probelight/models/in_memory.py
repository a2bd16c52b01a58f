"""A model of transformers in memory as a scorer, and left as it was by what is asked of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from probelight.io.documents import STRICT
from probelight.io.errors import UsageError
from probelight.io.ranges import Scoring, WeightsDtype
from probelight.models.checkpoint_files import CheckpointRef
from probelight.models.loading import Form, refuse_foreign_tokenizer
from probelight.models.pair_choice import PairChoice
from probelight.models.registry import MODEL_TYPES, detected_type, module_of
from probelight.models.scorer import Scorer, TrainedScorer
from probelight.probes.record import Setup

IN_MEMORY = CheckpointRef("model in memory")


@dataclass(frozen=True)
class TextSettings:
    """How a model in memory is given its text, as in `ModelSettings`."""

    __pydantic_config__: ClassVar = STRICT

    max_length: int = 256
    multi_token: Literal["error", "skip", "pseudo_log_likelihood"] = "error"
    answer_prefix: str = "auto"
    pll: Literal["original", "within_word_l2r"] = "original"
    # What else scorers ask for is as it is.
    checkpoint: ClassVar[CheckpointRef] = IN_MEMORY
    vectors: ClassVar[str] = ""
    scoring: ClassVar[Scoring] = "auto"
    dtype: ClassVar[WeightsDtype] = "auto"

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise UsageError(f"max_length {self.max_length}: give a number of tokens, at least 1")


def name_of(network: Any) -> str:
    """Return what tables call a model: the last part of what it was loaded from, or its class."""
    source = str(getattr(network.config, "name_or_path", "") or "").rstrip("/")
    return source.rpartition("/")[2] or type(network).__name__


def scorer_of(network: Any, tokenizer: Any, setup: Setup, settings: TextSettings) -> Scorer:
    """Return what scores probes of a setup with a model, whose weights are used, not copied.

    Raises:
        UsageError: If models of its type do not answer the setup.
        PretrainedError: If its family, its head or its tokenizer is not supported.
    """
    # Batches set the truncation and the padding of a tokenizer, and training has its own.
    tokenizer = copy.deepcopy(tokenizer)

    def read(form: Form, *_: Any, **__: Any) -> tuple[Any, Any]:
        refuse_foreign_tokenizer(form, name_of(network), network, tokenizer)
        return network, tokenizer

    if type(network).__name__.endswith("ForMultipleChoice"):
        if setup != "mc_qa":
            raise UsageError(f"a {type(network).__name__} answers questions, not sentences")
        return TrainedScorer(
            PairChoice(IN_MEMORY, "multiple_choice", settings.max_length, read=read)
        )
    kind, _ = detected_type(network)
    scorer: Scorer = module_of(MODEL_TYPES[kind]).load(settings, setup, read=read)
    return scorer


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
