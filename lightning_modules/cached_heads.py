"""Many heads trained together on cached encoder outputs: the learning curve's engine.

With the encoder frozen, h at the mask never changes, so each distinct text is encoded once and the
heads of R runs (seeds x controls) of one size train as one stacked module. It is the same
mathematics as training them one after the other: the runs share no parameter, and AdamW works
element by element.

Shapes: R runs, N items, T items of a sample, B batch, K choices, H hidden, E the head's inner size,
U candidate words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from lightning_modules.base import mask_choices
from lightning_modules.stacked_runs import CachedItems, HeadMode, HeadPlan, Sample, TrainingRuns
from lightning_modules.stacked_transform import StackedTransform

__all__ = ["CachedItems", "Head", "HeadMode", "HeadPlan", "StackedHeads", "sample_orders"]

# Parameters, their gradients and AdamW's two moments of the runs that train together. More runs
# take fewer kernels, until their state no longer stays in a processor's cache.
_CPU_STATE_BYTES = 24 * 2**20
_GPU_STATE_SHARE = 0.5  # of the memory that is free


class Head(Protocol):
    """What is needed of a masked-token head; `CandidateHead` is one."""

    @property
    def weight(self) -> Tensor:
        """The decoder's weight (V, E)."""
        ...

    @property
    def bias(self) -> Tensor | None:
        """The decoder's bias (V,), where it has one."""
        ...

    def transform_steps(self) -> Iterable[Callable[[Tensor], Tensor]]:
        """The modules and functions of the hidden layer, in order."""
        ...


class StackedHeads:
    """R independent copies of one head, on the device of that head.

    Args:
        head: The pre-trained head that every run starts from; it is left as it is.
        vocabulary: (U,) sorted vocabulary items of all candidates.
        num_runs: R.
        mode: What is trained.
    """

    def __init__(self, head: Head, vocabulary: Tensor, num_runs: int, mode: HeadMode) -> None:
        weight, bias = head.weight.detach(), head.bias
        self.device = weight.device
        self.vocabulary = vocabulary.to(self.device)
        self.mode = mode
        self.num_runs = num_runs
        self.transform = StackedTransform(head.transform_steps())
        # In mode linear no run changes the transform: one copy serves all.
        copies = num_runs if mode == "mlp" else 1
        self.parameters = {
            name: value.expand(copies, *value.shape).clone(memory_format=torch.contiguous_format)
            for name, value in self.transform.initial.items()
        }
        rows = weight[self.vocabulary]
        self.weight = rows.expand(num_runs, -1, -1).clone()  # (R, U, E)
        self.bias = None  # (R, U)
        if bias is not None:
            self.bias = bias.detach()[self.vocabulary].expand(num_runs, -1).clone()

    def train(self, train: Sequence[CachedItems], orders: np.ndarray, plan: HeadPlan) -> None:
        """Trains run r on `train[r]`, its items in the order `orders[r]` of each step.

        Args:
            train: R sets. Runs that share a set share its memory.
            orders: (R, epochs, T) item indices.
            plan: Rates and sizes.

        Raises:
            ValueError: If the plan's mode is not that of the stack.
        """
        if plan.mode != self.mode:
            raise ValueError(f"heads stacked for mode {self.mode} cannot train in mode {plan.mode}")
        order = torch.from_numpy(np.ascontiguousarray(orders))
        num_chunks = -(-self.num_runs // self._runs_at_once(train, orders.shape[2]))
        size = -(-self.num_runs // num_chunks)  # as equal as they can be
        for start in range(0, self.num_runs, size):
            runs = slice(start, min(start + size, self.num_runs))
            sample = Sample(self, train[runs], order[runs])
            TrainingRuns(self, runs, sample, plan).train()

    @torch.no_grad()
    def scores(self, evaluation: Sequence[CachedItems]) -> Tensor:
        """(R, M, K) scores of run r on `evaluation[r]`, on the CPU."""
        tables: dict[int, Tensor] = {}
        scores = []
        for run, items in enumerate(evaluation):
            own = slice(run, run + 1) if self.mode == "mlp" else slice(0, 1)
            z = tables.get(id(items))
            if z is None:
                parameters = {name: value[own] for name, value in self.parameters.items()}
                z = self.transform(parameters, items.features.to(self.device)[None])[0]
                if self.mode == "linear":
                    tables[id(items)] = z
            rows = self.rows_of(items)
            logits = torch.einsum("be,bke->bk", z, self.weight[run, rows])
            if self.bias is not None:
                logits = logits + self.bias[run, rows]
            scores.append(mask_choices(logits, items.choice_mask.to(self.device)).cpu())
        return torch.stack(scores)

    def rows_of(self, items: CachedItems) -> Tensor:
        """(N, K) rows of the candidates among the U words; any row where a choice is none.

        Raises:
            ValueError: If a candidate is not among the words.
        """
        candidates = items.candidates.to(self.device)
        rows = torch.searchsorted(self.vocabulary, candidates)
        rows = rows.clamp(max=len(self.vocabulary) - 1)
        unknown = (self.vocabulary[rows] != candidates) & items.choice_mask.to(self.device)
        if unknown.any():
            word = int(candidates[unknown][0])
            raise ValueError(f"candidate {word} is not in the vocabulary of these heads")
        return rows

    def _runs_at_once(self, train: Sequence[CachedItems], size: int) -> int:
        """How many runs' training state fits the budget."""
        per_copy = sum(value.numel() for value in self.transform.initial.values())
        words = min(self.weight.shape[1], size * train[0].candidates.shape[1])
        numbers = (per_copy if self.mode == "mlp" else 0) + words * self.weight.shape[2]
        budget = float(_CPU_STATE_BYTES)
        if self.device.type == "cuda":
            budget = _GPU_STATE_SHARE * torch.cuda.mem_get_info(self.device)[0]
        return max(1, int(budget // (4 * numbers * self.weight.element_size())))


def sample_orders(num_items: int, size: int, epochs: int, seed: int) -> np.ndarray:
    """(epochs, size) item indices of one run: nested in size, shuffled anew in each epoch.

    The first `size` of one seeded permutation are the sample, so that the 62 are among the 125;
    controls use the same rows and seeds as standard (SPEC A).
    """
    sample = np.random.default_rng([seed, 0]).permutation(num_items)[:size]
    shuffles = np.random.default_rng([seed, size])
    return np.stack([shuffles.permutation(sample) for _ in range(epochs)])
