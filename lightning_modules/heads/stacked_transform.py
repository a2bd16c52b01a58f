"""R copies of a head's hidden layer as one batched function.

Shapes: R runs, B batch, H hidden, E the head's inner size.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

Parameters = Mapping[str, Tensor]
_Step = Callable[[Parameters, Tensor], Tensor]


class StackedTransform:
    """A chain of modules and functions, applied with other parameters for each run.

    Linear maps and layer norms are written out as batched products, which takes fewer and quicker
    kernels than `torch.vmap`; any other module with parameters goes through `vmap`.

    Args:
        steps: Modules and functions from (..., H) to (..., E), one after the other. A function
            works on the last dimension alone.

    Attributes:
        initial: The parameters of one copy by name.
        plain: Names of the parameters without weight decay: biases and those of norms.
    """

    def __init__(self, steps: Iterable[Callable[[Tensor], Tensor]]) -> None:
        self.initial: dict[str, Tensor] = {}
        self.plain: set[str] = set()
        self._steps: list[_Step] = []
        for step in steps:
            for part in _unfolded(step):
                self._add(part)

    def __call__(self, parameters: Parameters, h: Tensor) -> Tensor:
        """(R, B, E) from h (R, B, H) and parameters (R, ...)."""
        for step in self._steps:
            h = step(parameters, h)
        return h

    def _add(self, part: Callable[[Tensor], Tensor]) -> None:
        if not isinstance(part, nn.Module) or not any(True for _ in part.parameters()):
            self._steps.append(lambda _, h: part(h))
            return
        prefix = f"{len(self._steps)}."
        is_linear = type(part) is nn.Linear
        for name, parameter in part.named_parameters():
            value = parameter.detach()
            # As (H, E), so that the gradient comes out of its product in the weight's own layout.
            self.initial[prefix + name] = value.t() if is_linear and value.dim() == 2 else value
            owner = part.get_submodule(name.rpartition(".")[0])
            if name.endswith("bias") or "norm" in type(owner).__name__.lower():
                self.plain.add(prefix + name)
        if is_linear:
            self._steps.append(_stacked_linear(prefix))
        elif type(part) is nn.LayerNorm and len(part.normalized_shape) == 1:
            self._steps.append(_stacked_norm(prefix, part.eps))
        else:
            self._steps.append(_mapped(prefix, part))


def _stacked_linear(prefix: str) -> _Step:
    def apply(parameters: Parameters, h: Tensor) -> Tensor:
        weight, bias = parameters[prefix + "weight"], parameters.get(prefix + "bias")
        if bias is None:
            return torch.bmm(h, weight)
        return torch.baddbmm(bias[:, None], h, weight)

    return apply


def _stacked_norm(prefix: str, eps: float) -> _Step:
    def apply(parameters: Parameters, h: Tensor) -> Tensor:
        weight, bias = parameters[prefix + "weight"], parameters.get(prefix + "bias")
        normed = F.layer_norm(h, h.shape[-1:], eps=eps)
        if bias is None:
            return normed * weight[:, None]
        return torch.addcmul(bias[:, None], normed, weight[:, None])

    return apply


def _mapped(prefix: str, part: nn.Module) -> _Step:
    part = copy.deepcopy(part)

    def one(own: dict[str, Tensor], h: Tensor) -> Tensor:
        result: Tensor = functional_call(part, own, (h,))
        return result

    def apply(parameters: Parameters, h: Tensor) -> Tensor:
        own = {name: parameters[prefix + name] for name, _ in part.named_parameters()}
        result: Tensor = torch.vmap(one)(own, h)
        return result

    return apply


def _unfolded(step: Callable[[Tensor], Tensor]) -> list[Callable[[Tensor], Tensor]]:
    """A module that is dense, activation and norm, or dense and activation, as these parts.

    Known by what it holds, and unfolded only if the chain of parts gives the module's own output.
    """
    if not isinstance(step, nn.Module):
        return [step]
    children = list(step.children())
    dense = [child for child in children if type(child) is nn.Linear]
    norms = [child for child in children if type(child) is nn.LayerNorm]
    others: list[Any] = [child for child in children if child not in dense + norms]
    if len(dense) != 1 or any(True for other in others for _ in other.parameters()):
        return [step]
    chain = [*dense, *others, *norms]
    weight = dense[0].weight
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(8, weight.shape[1], generator=generator).to(weight)
    with torch.no_grad():
        expected = found = probe
        for part in chain:
            found = part(found)
        expected = step(probe)
    return chain if torch.allclose(found, expected, rtol=1e-5, atol=1e-6) else [step]
