"""Networks in memory: checksums, checks of numbers, random states, running on batches."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import ADAPTER_WRAPPER, adapter_sum, refuse_integers

Batch = dict[str, Tensor]
INPUTS = ("input_ids", "attention_mask", "token_type_ids")  # of encoders


def model_fingerprint(model: nn.Module | Mapping[str, Tensor]) -> str:
    """Return the sha256 of a model's weights, as hex: names, types, shapes and values.

    The settings of an adapter count too: its weights do not show by how much they are multiplied.
    A model of which this process holds only a shard gives its weights by name instead.
    """
    digest = hashlib.sha256()
    weights = model.state_dict() if isinstance(model, nn.Module) else model
    for name, tensor in sorted(weights.items()):
        value = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    for module in model.modules() if isinstance(model, nn.Module) else ():
        for settings in getattr(vars(module).get(ADAPTER_WRAPPER), "peft_config", {}).values():
            digest.update(adapter_sum(settings.to_dict()).encode())
    return digest.hexdigest()


def bit_sum(weight: Tensor) -> int:
    """Return the sum of a tensor's bits, eight bytes at a time, which takes next to no time."""
    octets = weight.detach().clone().reshape(-1).view(torch.uint8)
    num_in_eights = len(octets) // 8 * 8
    return int(octets[:num_in_eights].view(torch.int64).sum() + octets[num_in_eights:].sum())


def is_spread(network: nn.Module) -> bool:
    """Return whether `device_map` put parts of a network on several devices: they stay there."""
    maps = (getattr(module, "hf_device_map", None) or {} for module in network.modules())
    return any(len({*map(str, device_map.values())}) > 1 for device_map in maps)


@contextmanager
def own_random_state(seed: int) -> Iterator[None]:
    """Seed torch on the CPU, and leave the caller's random state as it was.

    What a run draws later must not depend on how its model was made.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Put a network into eval mode, and each of its modules back into its own."""
    modes = {module: module.training for module in network.modules()}
    network.train(False)
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def run_encoder(encoder: nn.Module, batch: Mapping[str, Tensor]) -> Any:
    """Run an encoder on the inputs of `batch` that it knows; `last_hidden_state` is (B, L, H).

    Not every encoder takes `token_type_ids`, and some ignore unknown arguments in silence.
    """
    parameters = inspect.signature(encoder.forward).parameters
    names = (*INPUTS, "decoder_input_ids")
    return encoder(**{name: batch[name] for name in names if name in batch and name in parameters})


@contextmanager
def read_by_head(head: nn.Module, select: Callable[[Tensor], Tensor]) -> Iterator[list[Tensor]]:
    """Let a model's head read a part of the hidden states alone; yield the list of those parts.

    The model itself calls its head, so that its scales and caps before and behind the head apply.
    """
    read: list[Tensor] = []

    def selected(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        read.append(select(inputs[0]))
        return (read[-1], *inputs[1:])

    hook = head.register_forward_pre_hook(selected)
    try:
        yield read
    finally:
        hook.remove()


def check_numbers(source: str | Path, weights: Iterable[tuple[str, Tensor]]) -> None:
    """Raise PretrainedError, which names it, for a weight that is NaN, infinite or an integer."""
    for name, weight in weights:
        refuse_integers(source, name, str(weight.dtype))
        if weight.numel() == 0 or weight.is_meta:
            continue
        low, high = torch.aminmax(weight.detach())
        if not (low.isfinite() and high.isfinite()):
            raise PretrainedError(f"{source}: the weight {name} contains NaN or infinite numbers")


def at_path(module: nn.Module, path: str, default: Any = None) -> Any:
    """Return the value at an attribute path, or the default."""
    try:
        return attrgetter(path)(module)
    except AttributeError:
        return default


def mask_choices(logits: Tensor, choice_mask: Tensor) -> Tensor:
    """Set the logits (B, K) of choices that an item does not have to -inf."""
    return logits.masked_fill(~choice_mask, float("-inf"))
