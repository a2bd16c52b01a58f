"""Many heads in one stack: their parameters, scores, and hidden layers as one batched function.

Shapes: R runs, N items, M items measured, B batch, K choices, H hidden, E the head's inner size,
U candidate words.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from probelight.io.ranges import HeadMode
from probelight.models.networks import mask_choices

Parameters = Mapping[str, Tensor]
_Step = Callable[[Parameters, Tensor], Tensor]


@dataclass(frozen=True)
class CachedItems:
    """Items whose texts were encoded once."""

    features: Tensor  # (N, H) encoder output at the mask
    candidates: Tensor  # (N, K) rows of the heads; any row where there is no choice
    choice_mask: Tensor  # (N, K) which choices exist
    labels: Tensor  # (N,) gold choices

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, rows: Tensor) -> CachedItems:
        columns = (self.features, self.candidates, self.choice_mask, self.labels)
        return CachedItems(*(column[rows] for column in columns))


class Head(Protocol):
    """The interface of a masked-token head; `CandidateHead` is one."""

    @property
    def weight(self) -> Tensor:
        """Return the decoder's weight (V, E)."""
        ...

    @property
    def bias(self) -> Tensor | None:
        """Return the decoder's bias (V,), where it has one."""
        ...

    def transform_steps(self) -> Iterable[Callable[[Tensor], Tensor]]:
        """Return the modules and functions of the hidden layer, in order."""
        ...


@dataclass(frozen=True, eq=False)
class HeadRows:
    """A head without its model: its rows for U words, and its hidden layer, if any."""

    weight: Tensor  # (U, E)
    bias: Tensor | None  # (U,)
    hidden_layer: Sequence[Callable[[Tensor], Tensor]] = ()  # applied one after the other

    @classmethod
    def of(cls, head: Head, words: Tensor) -> HeadRows:
        """Copy the rows of some tokens (U,) from a head; half precision is upcast."""
        words = words.to(head.weight.device)
        dtype = torch.promote_types(head.weight.dtype, torch.float32)
        bias = None if head.bias is None else head.bias.detach()[words].to(dtype)
        steps = copy.deepcopy(list(head.transform_steps()))
        steps = [step.to(dtype) if isinstance(step, nn.Module) else step for step in steps]
        return cls(head.weight.detach()[words].to(dtype), bias, steps)

    def transform_steps(self) -> Iterable[Callable[[Tensor], Tensor]]:
        return self.hidden_layer


class StackedHeads:
    """R independent heads, on the device of the first.

    Args:
        heads: The R heads that runs start from, which runs may share. All have the same form, and a
            row for each of U candidate words; they are not changed.
        mode: What to train.
    """

    def __init__(self, heads: Sequence[Head], mode: HeadMode) -> None:
        distinct = list({id(head): head for head in heads}.values())
        indices = [next(i for i, d in enumerate(distinct) if d is head) for head in heads]
        self.device = distinct[0].weight.device
        self.mode = mode
        self.num_runs = len(heads)
        transforms = [StackedTransform(head.transform_steps()) for head in distinct]
        self.transform = transforms[0]
        # The place in `parameters` of each run's transform. In mode linear no run changes its
        # transform: one copy serves all that begin with it.
        self.copies = list(range(len(heads))) if mode == "mlp" else indices
        sources = indices if mode == "mlp" else range(len(distinct))
        self.parameters = {
            name: torch.stack([transforms[index].initial[name] for index in sources])
            for name in self.transform.initial
        }
        self.weight = torch.stack([head.weight.detach() for head in distinct])[indices]  # (R, U, E)
        self.bias = None  # (R, U)
        if distinct[0].bias is not None:
            biases = [head.bias.detach() for head in distinct if head.bias is not None]
            self.bias = torch.stack(biases)[indices]

    @torch.no_grad()
    def scores(self, evaluation: Sequence[CachedItems]) -> Tensor:
        """Return scores (R, M, K) of each run r on `evaluation[r]`, on the CPU."""
        tables: dict[tuple[int, int], Tensor] = {}
        scores = []
        for run, items in enumerate(evaluation):
            key = (id(items), self.copies[run])
            z = tables.get(key)
            if z is None:
                z = self.transformed(items.features, self.parameters, self.copies[run])
                if self.mode == "linear":
                    tables[key] = z
            scores.append(self.decoded(run, items, z).cpu())
        return torch.stack(scores)

    def transformed(self, features: Tensor, parameters: Parameters, copy: int) -> Tensor:
        """Return z (N, E) of h (N, H), by one of the copies in some parameters."""
        of_run = {name: value[copy : copy + 1] for name, value in parameters.items()}
        return self.transform(of_run, features.to(self.device)[None])[0]

    def decoded(self, run: int, items: CachedItems, z: Tensor) -> Tensor:
        """Return logits (N, K) of a run's candidates at z (N, E), -inf where there is no choice."""
        rows = items.candidates.to(self.device)
        logits = torch.einsum("be,bke->bk", z, self.weight[run, rows])
        if self.bias is not None:
            logits = logits + self.bias[run, rows]
        return mask_choices(logits, items.choice_mask.to(self.device))


class StackedTransform:
    """A chain of modules and functions from (..., H) to (..., E), with own parameters for each run.

    Linear maps and layer norms are batched products, which need fewer and faster kernels than
    `torch.vmap`; any other module with parameters goes through `vmap`. A function works on the last
    dimension only.
    """

    def __init__(self, steps: Iterable[Callable[[Tensor], Tensor]]) -> None:
        self.initial: dict[str, Tensor] = {}  # parameters of one copy by name
        self.plain: set[str] = set()  # names of those without weight decay: biases, and of norms
        self._steps: list[_Step] = []
        for step in steps:
            for layer in _unfolded(step):
                self._add(layer)

    def __call__(self, parameters: Parameters, h: Tensor) -> Tensor:
        """Return z (R, B, E) of h (R, B, H) and parameters (R, ...)."""
        for step in self._steps:
            h = step(parameters, h)
        return h

    def _add(self, layer: Callable[[Tensor], Tensor]) -> None:
        if not isinstance(layer, nn.Module) or not any(True for _ in layer.parameters()):
            self._steps.append(lambda _, h: layer(h))
            return
        prefix = f"{len(self._steps)}."
        is_linear = type(layer) is nn.Linear
        for name, parameter in layer.named_parameters():
            value = parameter.detach()
            # As (H, E), so that the gradient comes out of its product in the weight's own layout.
            self.initial[prefix + name] = value.t() if is_linear and value.dim() == 2 else value
            owner = layer.get_submodule(name.rpartition(".")[0])
            if name.endswith("bias") or "norm" in type(owner).__name__.lower():
                self.plain.add(prefix + name)
        self._steps.append(_stacked(prefix, layer))


def _stacked(prefix: str, layer: nn.Module) -> _Step:
    """Return a module as a function of the parameters (R, ...) of all runs and h (R, B, H)."""

    def linear(parameters: Parameters, h: Tensor) -> Tensor:
        weight, bias = parameters[prefix + "weight"], parameters.get(prefix + "bias")
        return torch.bmm(h, weight) if bias is None else torch.baddbmm(bias[:, None], h, weight)

    def norm(parameters: Parameters, h: Tensor) -> Tensor:
        weight, bias = parameters[prefix + "weight"], parameters.get(prefix + "bias")
        normed = F.layer_norm(h, h.shape[-1:], eps=layer.eps)  # type: ignore[arg-type]
        if bias is None:
            return normed * weight[:, None]
        return torch.addcmul(bias[:, None], normed, weight[:, None])

    def mapped(parameters: Parameters, h: Tensor) -> Tensor:
        named = {name: parameters[prefix + name] for name, _ in layer.named_parameters()}
        run = torch.vmap(lambda values, x: functional_call(layer, values, (x,)))
        output: Tensor = run(named, h)
        return output

    if type(layer) is nn.Linear:
        return linear
    if type(layer) is nn.LayerNorm and len(layer.normalized_shape) == 1:
        return norm
    layer = copy.deepcopy(layer)
    return mapped


def _unfolded(step: Callable[[Tensor], Tensor]) -> list[Callable[[Tensor], Tensor]]:
    """Return the layers of a module (dense, activation, norm) if their chain gives its output."""
    if not isinstance(step, nn.Module):
        return [step]
    children = list(step.children())
    dense = [child for child in children if type(child) is nn.Linear]
    norms = [child for child in children if type(child) is nn.LayerNorm]
    activations: list[Any] = [child for child in children if child not in dense + norms]
    if len(dense) != 1 or any(True for activation in activations for _ in activation.parameters()):
        return [step]
    chain = [*dense, *activations, *norms]
    weight = dense[0].weight
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(8, weight.shape[1], generator=generator).to(weight)
    with torch.no_grad():
        expected = output = probe
        for layer in chain:
            output = layer(output)
        expected = step(probe)
    return chain if torch.allclose(output, expected, rtol=1e-5, atol=1e-6) else [step]
