"""The precision of a model's weights: how it is chosen, and how half precision is made up for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import nlargest
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import safe_open
from torch import Tensor, nn

from probelight.io.errors import NoMemoryError, is_out_of_memory

FLOAT32: Final = "float32"
DTYPES: dict[str, torch.dtype] = {
    FLOAT32: torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
READ_AGAIN = "_probelight_read_again"  # attribute of a model: returns it in float32
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_CLOSE = 4  # of the dtype's steps at the best score


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
                if not (isinstance(error, torch.OutOfMemoryError) or is_out_of_memory(error)):
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
