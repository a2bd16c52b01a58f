"""Many heads trained together on cached encoder outputs: the engine of learning curves.

With a frozen encoder, h at the mask never changes, so each distinct text is encoded once, and the
heads of R runs (seeds x controls) of one size train as one stacked module. Mathematically this is
the same as training them one after the other: the runs share no parameter, and AdamW works element
by element. Runs with a `PlateauPlan` each halve their learning rate and stop on their own.

Shapes: R runs, N items, T items of a sample, B batch, K choices, H hidden, E the head's inner size,
U candidate words, W candidate words of a run's sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from probelight.lightning_modules.base import halving, slanted_triangular
from probelight.lightning_modules.heads.stacked_heads import CachedItems, StackedHeads
from probelight.metrics.accuracy import score_sum, weighted_scores

# Parameters, gradients and AdamW's two moments of the runs that train together; with a plateau plan
# also the start of the last step and the best epoch. More runs take fewer kernels, until their
# state no longer fits a processor's cache.
_COPIES, _PLATEAU_COPIES = 4, 6
_CPU_STATE_BYTES = 24 * 2**20
_GPU_STATE_SHARE = 0.5  # of the memory that is free


@dataclass(frozen=True)
class HeadPlan:
    """How heads are trained; the same for every run of a stack."""

    learning_rate: float  # peak rate of AdamW
    epochs: int = 4  # passes over a run's sample
    batch_size: int = 16  # items per step of each run
    weight_decay: float = 0.1  # on everything but biases and norms


@dataclass(frozen=True)
class PlateauPlan(HeadPlan):
    """How heads with random first weights are trained, as Talmor et al. 2020 train their baseline.

    Adam with a penalty on the square of every weight. The learning rate is halved after each epoch
    that is not better on held-out items than all epochs before. A run ends after `patience` epochs
    without a better one, and keeps its best; None trains all epochs at the full rate and keeps the
    last.
    """

    max_grad_norm: float | None = 10.0  # of each run's gradient; None does not clip
    patience: int | None = 10


def train_stack(
    heads: StackedHeads,
    train: Sequence[CachedItems],
    orders: np.ndarray,
    plan: HeadPlan,
    held_out: Sequence[CachedItems] = (),
) -> list[int]:
    """Train each run r of a stack on the items `train[r]`, in the order `orders[r]`.

    Args:
        heads: The stack; afterwards it has the result of each run.
        train: R sets. Runs that share a set share its memory.
        orders: (R, epochs, T) item indices.
        plan: Learning rate and sizes.
        held_out: R sets by which a `PlateauPlan` with patience halves the rate and stops.

    Returns:
        The epoch of each run's head, counted from 1.
    """
    order = torch.from_numpy(np.ascontiguousarray(orders))
    plateau = isinstance(plan, PlateauPlan)
    num_chunks = -(-heads.num_runs // _runs_at_once(heads, train, orders.shape[2], plateau))
    size = -(-heads.num_runs // num_chunks)  # as equal as they can be
    epochs = []
    for start in range(0, heads.num_runs, size):
        runs = slice(start, min(start + size, heads.num_runs))
        sample = Sample(heads, runs, train[runs], order[runs], all_words=plateau)
        if isinstance(plan, PlateauPlan):
            epochs += PlateauRuns(heads, runs, sample, plan, held_out[runs]).train()
        else:
            epochs += TrainingRuns(heads, runs, sample, plan).train()
    return epochs


def _runs_at_once(
    heads: StackedHeads, train: Sequence[CachedItems], size: int, plateau: bool
) -> int:
    """Return how many runs' training state fits the budget."""
    per_copy = sum(value.numel() for value in heads.transform.initial.values())
    words = heads.weight.shape[1]
    if not plateau:
        words = min(words, size * train[0].candidates.shape[1])
    numbers = (per_copy if heads.mode == "mlp" else 0) + words * heads.weight.shape[2]
    budget = float(_CPU_STATE_BYTES)
    if heads.device.type == "cuda":
        budget = _GPU_STATE_SHARE * torch.cuda.mem_get_info(heads.device)[0]
    copies = _PLATEAU_COPIES if plateau else _COPIES
    return max(1, int(budget // (copies * numbers * heads.weight.element_size())))


def sample_of(num_items: int, size: int, seed: int) -> np.ndarray:
    """Return the item indices (size,) of a run's sample; smaller samples are its prefixes."""
    return np.random.default_rng([seed, 0]).permutation(num_items)[:size]


def sample_orders(num_items: int, size: int, epochs: int, seed: int) -> np.ndarray:
    """Return item indices (epochs, size) of a run: a sample, shuffled again in each epoch.

    The sample is the first `size` items of one seeded permutation, so the 62 are among the 125.
    Controls use the same rows and seeds as standard (Talmor et al. 2020).
    """
    sample = sample_of(num_items, size, seed)
    shuffles = np.random.default_rng([seed, size])
    return np.stack([shuffles.permutation(sample) for _ in range(epochs)])


class Sample:
    """The samples of some runs: features that runs share, and the items of each step.

    `order` (R, epochs, T) indexes the items of each run's set. With `all_words` the sample has all
    words of the stack, for an optimiser that changes every one.

    Attributes:
        features: h (., H) of distinct items, or z (., E) if the transform is not trained.
        index: (R, epochs, T) rows of `features`.
        words: (R, W) rows of the stack's weight that occur in a run's sample, padded with the last.
        num_words: Length of each row of `words` without that padding.
        rows: (R, epochs, T, K) candidates as places in `words`.
        gold: (R, epochs, T, 1) gold choices.
        mask: (R, epochs, T, K) -inf where there is no choice; None if all are there.
    """

    def __init__(
        self,
        heads: StackedHeads,
        runs: slice,
        train: Sequence[CachedItems],
        order: Tensor,
        *,
        all_words: bool = False,
    ) -> None:
        # Where the transform is not trained, items are kept as each head's transform gives them.
        copies = heads.copies[runs] if heads.mode == "linear" else [0] * len(train)
        keys = [(id(items), copy) for items, copy in zip(train, copies, strict=True)]
        distinct = dict(zip(keys, train, strict=True))
        self.index = torch.empty_like(order)
        pool: list[CachedItems] = []
        begin = 0
        for key, items in distinct.items():
            runs_of_key = torch.tensor([run for run, run_key in enumerate(keys) if run_key == key])
            used, places = torch.unique(order[runs_of_key], return_inverse=True)
            self.index[runs_of_key] = places + begin
            used_items = items.at(used)
            if heads.mode == "linear":
                with torch.no_grad():
                    z = heads.transformed(used_items.features, heads.parameters, key[1])
                used_items = replace(used_items, features=z)
            pool.append(used_items)
            begin += len(used)
        self.index = self.index.to(heads.device)
        features, rows, exists, labels = (
            torch.cat(columns).to(heads.device)
            for columns in zip(
                *((p.features, p.candidates, p.choice_mask, p.labels) for p in pool),
                strict=True,
            )
        )
        self.features = features
        first = rows.gather(1, exists.long().argmax(dim=1, keepdim=True))
        self.gold = labels[self.index][..., None]
        self.mask = None
        if not bool(exists.all()):
            absent = torch.zeros(exists.shape, dtype=features.dtype, device=heads.device)
            self.mask = absent.masked_fill(~exists, float("-inf"))[self.index]
        rows = torch.where(exists, rows, first)[self.index]  # (R, epochs, T, K)
        if all_words:
            words = torch.arange(heads.weight.shape[1], device=heads.device)
            self.words, self.rows = words.expand(len(rows), -1), rows
            self.num_words = [len(words)] * len(rows)
        else:
            pairs = [torch.unique(run, return_inverse=True) for run in rows]
            self.num_words = [len(words) for words, _ in pairs]
            most = max(self.num_words)
            padded = [torch.cat([w, w[-1:].expand(most - len(w))]) for w, _ in pairs]
            self.words = torch.stack(padded)
            self.rows = torch.stack([places for _, places in pairs])


class TrainingRuns:
    """Runs of a stack while they train together."""

    def __init__(self, heads: StackedHeads, runs: slice, sample: Sample, plan: HeadPlan) -> None:
        self.heads = heads
        self.runs = runs
        self.sample = sample
        self.plan = plan
        # Views of the stack: the optimiser writes into it.
        self.parameters = {
            name: value[runs].requires_grad_(heads.mode == "mlp")
            for name, value in heads.parameters.items()
        }
        run_indices = torch.arange(runs.start, runs.stop, device=heads.device)[:, None]
        self.weight = heads.weight[run_indices, sample.words]  # (R, W, E)
        self.bias = None if heads.bias is None else heads.bias[run_indices, sample.words]
        self.optimizer = self._optimizer()

    def _optimizer(self) -> torch.optim.Optimizer:
        transform = self.parameters if self.heads.mode == "mlp" else {}
        norms = self.heads.transform.plain
        plain = [value for name, value in transform.items() if name in norms]
        decayed = [value for name, value in transform.items() if name not in norms]
        groups: list[dict[str, Any]] = [
            {"params": [*decayed, self.weight], "weight_decay": self.plan.weight_decay},
            {"params": [*plain, *([] if self.bias is None else [self.bias])], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(
            [group for group in groups if group["params"]],
            lr=self.plan.learning_rate,
            betas=(0.9, 0.98),
            fused=True,
        )

    def train(self) -> list[int]:
        """Train all epochs; afterwards the stack has each run's result, of the epoch returned."""
        plan, num_items = self.plan, self.sample.index.shape[2]
        starts = range(0, num_items, plan.batch_size)
        factor = slanted_triangular(plan.epochs * len(starts))
        decay = 1.0  # of a weight that has no gradient
        for epoch in range(plan.epochs):
            for step, start in enumerate(starts, start=epoch * len(starts)):
                rate = plan.learning_rate * factor(step)
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
                decay *= 1.0 - rate * plan.weight_decay
                self._backward(epoch, slice(start, start + plan.batch_size))
                self.optimizer.step()
        self._write_back(decay)
        return [plan.epochs] * len(self.sample.index)

    def _backward(self, epoch: int, batch: slice) -> None:
        """Set the gradients of one step: a mean within each run, independent of the other runs."""
        sample = self.sample
        index = sample.index[:, epoch, batch]  # (R, B)
        h = F.embedding(index, sample.features)
        z = self.heads.transform(self.parameters, h) if self.heads.mode == "mlp" else h
        with torch.no_grad():
            slope = self._slope(z, epoch, batch)  # (R, B, W)
            self.weight.grad = torch.bmm(slope.transpose(1, 2), z)
            if self.bias is not None:
                self.bias.grad = slope.sum(dim=1)
        if self.heads.mode == "mlp":
            for value in self.parameters.values():
                value.grad = None
            if z.requires_grad:  # a head may have no hidden layer
                torch.autograd.backward(z, torch.bmm(slope, self.weight))

    def _slope(self, z: Tensor, epoch: int, batch: slice) -> Tensor:
        """Return the gradient by the logits of all words (R, B, W): softmax - gold."""
        sample = self.sample
        rows, gold = sample.rows[:, epoch, batch], sample.gold[:, epoch, batch]
        logits = torch.bmm(z, self.weight.transpose(1, 2))
        if self.bias is not None:
            logits += self.bias[:, None]
        chosen = logits.gather(2, rows)  # (R, B, K)
        if sample.mask is not None:
            chosen += sample.mask[:, epoch, batch]
        slope = chosen.softmax(dim=2)
        slope.scatter_add_(2, gold, slope.new_full((), -1.0).expand(gold.shape))
        slope /= rows.shape[1]
        return logits.zero_().scatter_add_(2, rows, slope)

    @torch.no_grad()
    def _write_back(self, decay: float) -> None:
        """Write to the stack; words outside a run's sample had no gradient and only decayed."""
        self.heads.weight[self.runs] *= decay
        runs = range(self.runs.start, self.runs.stop)
        for index, (run, count) in enumerate(zip(runs, self.sample.num_words, strict=True)):
            words = self.sample.words[index, :count]
            self.heads.weight[run, words] = self.weight[index, :count]
            if self.heads.bias is not None and self.bias is not None:
                self.heads.bias[run, words] = self.bias[index, :count]


class RunProgress:
    """The learning rate and the end of one run, by its accuracy on held-out items."""

    def __init__(self, plan: PlateauPlan) -> None:
        self._plan = plan
        # torch's own scheduler decides, over an optimiser that moves nothing.
        self._rate = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=plan.learning_rate)
        self._scheduler = halving(self._rate)
        self._best = -1.0
        self.scale = 1.0  # of the full rate; 0 when the run has ended
        self.best_epoch = 0  # the first one with the best accuracy, counted from 1

    def judge(self, epoch: int, accuracy: float) -> bool:
        """Update rate and end; return whether this epoch's accuracy is the best so far."""
        assert self._plan.patience is not None
        self._scheduler.step(accuracy)
        self.scale = float(self._rate.param_groups[0]["lr"]) / self._plan.learning_rate
        better = accuracy > self._best
        if better:
            self._best, self.best_epoch = accuracy, epoch
        if epoch - self.best_epoch >= self._plan.patience:
            self.scale = 0.0
        return better


class PlateauRuns(TrainingRuns):
    """Runs of a stack while they train together, by a `PlateauPlan`."""

    plan: PlateauPlan

    def __init__(
        self,
        heads: StackedHeads,
        runs: slice,
        sample: Sample,
        plan: PlateauPlan,
        held_out: Sequence[CachedItems],
    ) -> None:
        super().__init__(heads, runs, sample, plan)
        self.held_out = held_out
        self.progress = [RunProgress(plan) for _ in sample.index]
        self._step_start = [torch.empty_like(value) for value in self._trained()]
        self._best = [value.detach().clone() for value in self._trained()]

    def _trained(self) -> list[Tensor]:
        """Return the trained parameters of all runs, each (R, ...)."""
        transform = list(self.parameters.values()) if self.heads.mode == "mlp" else []
        return [*transform, self.weight, *([] if self.bias is None else [self.bias])]

    def _optimizer(self) -> torch.optim.Optimizer:
        plan = self.plan
        return torch.optim.Adam(
            self._trained(), lr=plan.learning_rate, weight_decay=plan.weight_decay, fused=True
        )

    def train(self) -> list[int]:
        """Train until every run has ended; afterwards the stack has each run's best epoch."""
        plan, num_items = self.plan, self.sample.index.shape[2]
        starts = range(0, num_items, plan.batch_size)
        for epoch in range(plan.epochs):
            for start in starts:
                self._backward(epoch, slice(start, start + plan.batch_size))
                self._clip()
                self._step()
            if plan.patience is None:
                continue
            self._judge(epoch + 1)
            if not any(run.scale for run in self.progress):
                break
        if plan.patience is None:
            self._write_back(1.0)
            return [plan.epochs] * len(self.progress)
        self._copy(self._trained(), self._best)
        self._write_back(1.0)
        return [run.best_epoch for run in self.progress]

    @torch.no_grad()
    def _step(self) -> None:
        scales = [run.scale for run in self.progress]
        is_full_step = all(scale == 1.0 for scale in scales)
        if not is_full_step:
            self._copy(self._step_start, self._trained())
        self.optimizer.step()
        if not is_full_step:
            for parameter, start in zip(self._trained(), self._step_start, strict=True):
                share = parameter.new_tensor(scales).reshape(-1, *[1] * (parameter.dim() - 1))
                torch.lerp(start, parameter, share, out=parameter)

    @torch.no_grad()
    def _clip(self) -> None:
        """Clip each run's gradient to the norm of the plan, as `clip_grad_norm_` does it."""
        if self.plan.max_grad_norm is None:
            return
        gradients = [value.grad for value in self._trained() if value.grad is not None]
        gradient_norms = [torch.linalg.vector_norm(g.flatten(1), dim=1) for g in gradients]
        norms = torch.linalg.vector_norm(torch.stack(gradient_norms), dim=0)  # (R,)
        shares = (self.plan.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
        if bool((shares < 1.0).any()):
            for gradient in gradients:
                gradient *= shares.reshape(-1, *[1] * (gradient.dim() - 1))

    @torch.no_grad()
    def _judge(self, epoch: int) -> None:
        """Measure the runs that have not ended, and keep those that are better than before."""
        self._write_back(1.0)
        for index, (run, items) in enumerate(zip(self.progress, self.held_out, strict=True)):
            if not run.scale:
                continue
            stack_index = self.runs.start + index
            copy = self.heads.copies[stack_index]
            z = self.heads.transformed(items.features, self.heads.parameters, copy)
            scores = self.heads.decoded(stack_index, items, z)
            labels, mask = items.labels.to(scores.device), items.choice_mask.to(scores.device)
            ones = torch.ones_like(labels, dtype=scores.dtype)
            correct = score_sum(weighted_scores(scores, labels, ones, mask))
            if run.judge(epoch, float(correct / len(labels))):
                for best, current in zip(self._best, self._trained(), strict=True):
                    best[index] = current[index]

    @torch.no_grad()
    def _copy(self, to: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        for target, value in zip(to, values, strict=True):
            target.copy_(value)
