"""Many heads trained together on cached encoder outputs: the learning curve's engine.

With the encoder frozen, h at the mask never changes, so each distinct text is encoded once and the
heads of R runs (seeds x controls) of one size train as one stacked module. It is the same
mathematics as training them one after the other: the runs share no parameter, and AdamW works
element by element.

Shapes: R runs, N items, T items of a sample, B batch, K choices, H hidden, E the head's inner size,
U candidate words.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from probelight.lightning_modules.heads.plans import CachedItems, HeadPlan, PlateauPlan
from probelight.lightning_modules.heads.plateau_runs import PLATEAU_COPIES, PlateauRuns
from probelight.lightning_modules.heads.stacked_runs import Sample, TrainingRuns
from probelight.lightning_modules.heads.stacked_transform import Parameters, StackedTransform
from probelight.lightning_modules.modes import HeadMode
from probelight.models.batches import mask_choices

# Parameters, their gradients and AdamW's two moments of the runs that train together. More runs
# take fewer kernels, until their state no longer stays in a processor's cache.
_COPIES = 4
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


class HeadRows:
    """A head cut from its model: its hidden layer, and its rows of some words alone.

    Args:
        head: The head; it is left as it is.
        words: (U,) vocabulary items, which are rows 0 to U - 1 here.

    Attributes:
        weight: (U, E) rows of the decoder.
        bias: (U,) of them, where there is one.
    """

    def __init__(self, head: Head, words: Tensor) -> None:
        words = words.to(head.weight.device)
        self.weight = head.weight.detach()[words]
        self.bias = None if head.bias is None else head.bias.detach()[words]
        self._steps = copy.deepcopy(list(head.transform_steps()))

    def transform_steps(self) -> Iterable[Callable[[Tensor], Tensor]]:
        """The modules and functions of the hidden layer, in order."""
        return self._steps


class StackedHeads:
    """R independent heads, on the device of the first.

    Args:
        heads: What the runs start from, which is left as it is: one head for all of them, or one
            a run. All have the same form; runs may share one.
        vocabulary: (U,) sorted vocabulary items of all candidates.
        num_runs: R.
        mode: What is trained.

    Attributes:
        copies: The place in `parameters` of each run's transform.
    """

    def __init__(
        self, heads: Head | Sequence[Head], vocabulary: Tensor, num_runs: int, mode: HeadMode
    ) -> None:
        own = list(heads) if isinstance(heads, Sequence) else [heads] * num_runs
        distinct = list({id(head): head for head in own}.values())
        places = [next(i for i, d in enumerate(distinct) if d is head) for head in own]
        self.device = distinct[0].weight.device
        self.vocabulary = vocabulary.to(self.device)
        self.mode = mode
        self.num_runs = num_runs
        transforms = [StackedTransform(head.transform_steps()) for head in distinct]
        self.transform = transforms[0]
        # In mode linear no run changes its transform: one copy serves all that begin with it.
        self.copies = list(range(num_runs)) if mode == "mlp" else places
        sources = places if mode == "mlp" else range(len(distinct))
        self.parameters = {
            name: torch.stack([transforms[place].initial[name] for place in sources])
            for name in self.transform.initial
        }
        rows = torch.stack([head.weight.detach()[self.vocabulary] for head in distinct])
        self.weight = rows[places]  # (R, U, E)
        self.bias = None  # (R, U)
        if distinct[0].bias is not None:
            biases = [head.bias.detach() for head in distinct if head.bias is not None]
            self.bias = torch.stack([bias[self.vocabulary] for bias in biases])[places]

    def train(
        self,
        train: Sequence[CachedItems],
        orders: np.ndarray,
        plan: HeadPlan,
        held_out: Sequence[CachedItems] = (),
    ) -> list[int]:
        """Trains run r on `train[r]`, its items in the order `orders[r]` of each step.

        Args:
            train: R sets. Runs that share a set share its memory.
            orders: (R, epochs, T) item indices.
            plan: Rates and sizes.
            held_out: R sets that decide about rate and end of a `PlateauPlan` with patience.

        Returns:
            The epoch that each run's head is of, counted from 1.

        Raises:
            ValueError: If the plan's mode is not that of the stack.
        """
        if plan.mode != self.mode:
            raise ValueError(f"heads stacked for mode {self.mode} cannot train in mode {plan.mode}")
        order = torch.from_numpy(np.ascontiguousarray(orders))
        plateau = isinstance(plan, PlateauPlan)
        num_chunks = -(-self.num_runs // self._runs_at_once(train, orders.shape[2], plateau))
        size = -(-self.num_runs // num_chunks)  # as equal as they can be
        epochs = []
        for start in range(0, self.num_runs, size):
            runs = slice(start, min(start + size, self.num_runs))
            sample = Sample(self, runs, train[runs], order[runs], all_words=plateau)
            if isinstance(plan, PlateauPlan):
                epochs += PlateauRuns(self, runs, sample, plan, held_out[runs]).train()
            else:
                epochs += TrainingRuns(self, runs, sample, plan).train()
        return epochs

    @torch.no_grad()
    def scores(self, evaluation: Sequence[CachedItems]) -> Tensor:
        """(R, M, K) scores of run r on `evaluation[r]`, on the CPU."""
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
        """(N, E) from h (N, H), by one of the copies in some parameters."""
        own = {name: value[copy : copy + 1] for name, value in parameters.items()}
        return self.transform(own, features.to(self.device)[None])[0]

    def decoded(self, run: int, items: CachedItems, z: Tensor) -> Tensor:
        """(N, K) logits of a run's candidates at z (N, E), -inf where there is no choice."""
        rows = self.rows_of(items)
        logits = torch.einsum("be,bke->bk", z, self.weight[run, rows])
        if self.bias is not None:
            logits = logits + self.bias[run, rows]
        return mask_choices(logits, items.choice_mask.to(self.device))

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

    def _runs_at_once(self, train: Sequence[CachedItems], size: int, plateau: bool) -> int:
        """How many runs' training state fits the budget."""
        per_copy = sum(value.numel() for value in self.transform.initial.values())
        words = self.weight.shape[1]
        if not plateau:
            words = min(words, size * train[0].candidates.shape[1])
        numbers = (per_copy if self.mode == "mlp" else 0) + words * self.weight.shape[2]
        budget = float(_CPU_STATE_BYTES)
        if self.device.type == "cuda":
            budget = _GPU_STATE_SHARE * torch.cuda.mem_get_info(self.device)[0]
        copies = PLATEAU_COPIES if plateau else _COPIES
        return max(1, int(budget // (copies * numbers * self.weight.element_size())))


def sample_orders(num_items: int, size: int, epochs: int, seed: int) -> np.ndarray:
    """(epochs, size) item indices of one run: nested in size, shuffled anew in each epoch.

    The first `size` of one seeded permutation are the sample, so that the 62 are among the 125;
    controls use the same rows and seeds as standard (Talmor et al. 2020).
    """
    sample = np.random.default_rng([seed, 0]).permutation(num_items)[:size]
    shuffles = np.random.default_rng([seed, size])
    return np.stack([shuffles.permutation(sample) for _ in range(epochs)])
