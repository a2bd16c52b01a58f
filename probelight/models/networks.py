"""Networks in memory: checksums, checks of numbers, random states, running on batches, precision.

Half precision is made up for: its close calls are computed again in float32.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nlargest
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import safe_open
from torch import Tensor, nn
from xxhash import xxh3_128_digest

from probelight.io.errors import NoMemoryError, is_out_of_device_memory, is_out_of_memory
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.checkpoint_files import ADAPTER_WRAPPER, adapter_sum, refuse_integers

Batch = dict[str, Tensor]
INPUTS = ("input_ids", "attention_mask", "token_type_ids")  # of encoders
FLOAT32: Final = "float32"
DTYPES: dict[str, torch.dtype] = {
    FLOAT32: torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
READ_AGAIN = "_probelight_read_again"  # attribute of a model: returns it in float32
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_CLOSE = 4  # of the dtype's steps at the best score


def model_fingerprint(model: nn.Module | Mapping[str, Tensor]) -> str:
    """Return the sha256 of a model's weights, as hex: names, types, shapes and values.

    Values count by their 128-bit xxHash, which is ten times as fast. The settings of an adapter
    count too: its weights do not show by how much they are multiplied. A model of which this
    process holds only a shard gives its weights by name instead.
    """
    digest = hashlib.sha256()
    weights = model.state_dict() if isinstance(model, nn.Module) else model
    for name, tensor in sorted(weights.items()):
        value = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(xxh3_128_digest(value.reshape(-1).view(torch.uint8).numpy()))
    for module in model.modules() if isinstance(model, nn.Module) else ():
        for settings in getattr(vars(module).get(ADAPTER_WRAPPER), "peft_config", {}).values():
            digest.update(adapter_sum(settings.to_dict()).encode())
    return digest.hexdigest()


def bit_sum(weight: Tensor) -> int:
    """Return the sum of a tensor's bits, eight bytes at a time, which takes next to no time."""
    octets = weight.detach().reshape(-1).view(torch.uint8)
    if octets.storage_offset() % 8:
        octets = octets.clone()  # an int64 begins at a multiple of its size
    num_in_eights = len(octets) // 8 * 8
    return int(octets[:num_in_eights].view(torch.int64).sum() + octets[num_in_eights:].sum())


def is_spread(network: nn.Module) -> bool:
    """Return whether `device_map` put parts of a network on several devices: they stay there."""
    maps = (getattr(module, "hf_device_map", None) or {} for module in network.modules())
    return any(len({*map(str, device_map.values())}) > 1 for device_map in maps)


def is_gathered_by_layer(network: nn.Module) -> bool:
    """Return whether FSDP gathers layers for each call; all processes must then make as many."""
    names = (type(module).__name__ for module in network.modules())
    return any(name.startswith(("FSDP", "FullySharded")) for name in names)


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
        numbers = weight.detach()
        if numbers.dtype.itemsize == 1:  # torch stores eight bits, and computes nothing with them
            numbers = numbers.to(torch.bfloat16)
        low, high = torch.aminmax(numbers)
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


def own_dtype(source: str, config: Any) -> torch.dtype:
    """Return the precision that a checkpoint has, or float32 where it is none that is scored in.

    The config names it, or else the first tensor of a folder's safetensors has it.
    """
    saved_dtype = getattr(config, "dtype", None) or getattr(config.get_text_config(), "dtype", None)
    if saved_dtype is None:
        for path in sorted(Path(source).glob("*.safetensors")):
            with safe_open(path, framework="pt") as file:
                saved_dtype = next((file.get_tensor(name).dtype for name in file.keys()), None)  # noqa: SIM118
            break
    dtype = getattr(torch, saved_dtype, None) if isinstance(saved_dtype, str) else saved_dtype
    return dtype if dtype in _NAMES else torch.float32


def dtype_name(network: nn.Module) -> str:
    """Return the precision of a network's weights: a half one where any of them has it."""
    half = half_dtype(network)
    return FLOAT32 if half is None else _NAMES[half]


def half_dtype(network: nn.Module) -> torch.dtype | None:
    """Return the precision of the weights of less than 32 bits; None where there are none."""
    halves = (weight.dtype for weight in network.parameters() if _is_half(weight))
    return next(halves, None)


def is_too_close(scores: Sequence[float], dtype: torch.dtype) -> bool:
    """Return whether an item's two best scores are too close for a precision, or no numbers.

    `scores` holds only the choices that the item has.
    """
    if len(scores) < 2:
        return False
    if any(score != score for score in scores):
        return True
    best, second = nlargest(2, scores)
    # "Not above" rather than "at most": two that overflowed differ by what is no number.
    return not best - second > _CLOSE * torch.finfo(dtype).eps * abs(best)


@contextmanager
def upcast(network: nn.Module, reads_again: bool = True) -> Iterator[None]:
    """Give a network its weights in float32, and back as they were.

    With `reads_again` they are those of the checkpoint where the network was read in less precision
    than it has and is as it was read; otherwise the same values.

    Raises:
        NoMemoryError: If there is no room for them; the network is as it was.
    """
    weights = (*network.parameters(), *network.buffers())
    halves = [(weight, weight.dtype) for weight in weights if _is_half(weight)]
    if any(weight.is_meta for weight, _ in halves):
        raise NoMemoryError("some of the model's weights are not in memory")
    exact = _checkpoint_weights(network) if halves and reads_again else {}
    try:
        for weight, _ in halves:
            try:
                # Weights that are made in inference mode could not be trained afterwards.
                with torch.inference_mode(False):
                    weight.data = exact.get(id(weight), weight.data).to(weight.device).float()
            except (RuntimeError, MemoryError) as error:
                if not (is_out_of_device_memory(error) or is_out_of_memory(error)):
                    raise
                raise NoMemoryError(
                    f"the weights in float32 do not fit into the memory of {weight.device}"
                ) from error
        device = halves[0][0].device.type if halves else "cpu"
        with torch.autocast(device, enabled=False):
            yield
    finally:
        with torch.inference_mode(False):
            for weight, dtype in halves:
                weight.data = weight.data.to(dtype)


def _checkpoint_weights(network: nn.Module) -> dict[int, Tensor]:
    """Return the checkpoint's exact weights by the ids of the network's rounded ones."""
    exact_weights = {}
    for module in network.modules():
        if (read_again := getattr(module, READ_AGAIN, None)) is None:
            continue
        exact = read_again()[0].state_dict()
        for name, weight in module.named_parameters():
            rounded = exact[name].to(weight.dtype) if name in exact else None
            if rounded is not None and torch.equal(rounded, weight.detach().cpu()):
                exact_weights[id(weight)] = exact[name]
    return exact_weights


def _is_half(weight: Tensor) -> bool:
    return weight.dtype in (torch.bfloat16, torch.float16)
