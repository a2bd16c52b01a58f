"""A model that is read once for several jobs, whatever adapters are put into it in turn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from probelight.models.adapters import detach, merge
from probelight.models.checkpoint_files import CheckpointRef, without_adapter
from probelight.models.loading import (
    Form,
    load_pretrained,
    load_tokenizer,
    num_positions,
    put_adapter,
    refuse_foreign_tokenizer,
)
from probelight.models.networks import READ_AGAIN, bit_sum, model_fingerprint


class KeptModel:
    """A model for jobs that come one after the other: read once for all setups, and hashed once.

    Args:
        load: Reads it, as `load_pretrained` does.
    """

    def __init__(self, load: Callable[..., Any] = load_pretrained) -> None:
        self._load = load
        self._read: dict[Any, tuple[PreTrainedModel, PreTrainedTokenizerBase]] = {}
        self._ref: CheckpointRef | None = None  # of the model as it is now
        self._adapter: Path | None = None  # that it has
        self._bits: Any = None  # of the model without it
        self._hashed: tuple[Any, str] = None, ""

    def read(
        self, form: Form, ref: CheckpointRef, **options: Any
    ) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        """Return what `load_pretrained` does, the same model each time, whatever adapter it has."""
        base, adapter = (ref, None) if ref.random_weights else without_adapter(ref)
        key = (form, base, *sorted(options.items()))
        if key in self._read and self._adapter is not None and self._ref != ref:
            detach(self._read[key][0])
            self._adapter = None
            if self._bits != _bits(self._read[key][0]):
                self._read.clear()  # some adapters change the weights that they are put next to
        if key not in self._read:
            self._read.clear()
            self._adapter = self._bits = None
            self._read[key] = self._load(form, base, **options)
            self._ref = base
        if self._ref == ref:
            return self._read[key]
        model, _ = self._read.pop(key)  # kept again once it is whole
        tokenizer = load_tokenizer(ref)
        if adapter is not None:
            merge(model)  # the one below
            self._bits = self._bits or _bits(model)
            put_adapter(model, ref, tokenizer)
        refuse_foreign_tokenizer(form, str(ref), model, tokenizer)
        tokenizer.model_max_length = min(tokenizer.model_max_length, num_positions(model))
        if hasattr(model, READ_AGAIN):
            pooler = options.get("pooler", False)
            setattr(model, READ_AGAIN, partial(load_pretrained, form, ref, pooler=pooler))
        self._ref, self._adapter = ref, adapter
        self._read[key] = model.train(False), tokenizer
        return self._read[key]

    def fingerprint(self, network: nn.Module) -> str:
        """Return the sha256 of the weights, computed again where one was changed or moved."""
        # Fused optimisers, and writes to `.data`, count no version: the sum of the bits shows them.
        weights = network.state_dict()
        pointers = [(w.data_ptr(), w._version) for w in weights.values()]
        state = self._ref, pointers, _bits(network)
        if state != self._hashed[0]:
            self._hashed = state, model_fingerprint(network)
        return self._hashed[1]


def _bits(network: nn.Module) -> list[tuple[str, int]]:
    return [(name, bit_sum(weight)) for name, weight in network.state_dict().items()]
