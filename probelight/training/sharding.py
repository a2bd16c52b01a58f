"""FSDP: weights, gradients and moments are divided among processes, and gathered layer by layer."""

from __future__ import annotations

from pytorch_lightning.strategies import FSDPStrategy
from torch import nn
from transformers.modeling_layers import GradientCheckpointingLayer


def by_layer() -> FSDPStrategy:
    """Return FSDP that gathers a transformer's layers one after the other, and all else at once.

    Precision is that of autocast, as with DDP. FSDP's own rounds buffers too, such as the
    frequencies of rotary positions, so that the model that is saved would not be the one trained.
    """
    from torch.distributed.fsdp import MixedPrecision  # some builds of torch have none

    return FSDPStrategy(auto_wrap_policy=_is_layer, mixed_precision=MixedPrecision())


def _is_layer(module: nn.Module, recurse: bool, nonwrapped_numel: int) -> bool:
    """Return whether FSDP looks into a module, or gathers it alone."""
    return recurse or isinstance(module, GradientCheckpointingLayer)


def gathered_at_once(module: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the weights that a process has whole at the peak: outside of layers, and of layers.

    While a layer computes, the next one is gathered.
    """
    layers = [m for m in module.modules() if isinstance(m, GradientCheckpointingLayer)]
    layer_weights = [[*layer.parameters()] for layer in layers]
    in_layers = {id(weight) for weights in layer_weights for weight in weights}
    outside = [weight for weight in module.parameters() if id(weight) not in in_layers]
    largest = max(layer_weights, key=lambda weights: sum(w.numel() for w in weights), default=[])
    return outside, largest
