"""The training of some runs of a stack of heads: what each step reads, its gradient, the optimiser.

Shapes: R runs, N items, T items of a sample, B batch, K choices, H hidden, E the head's inner size,
U candidate words, W candidate words of a run's sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from probelight.lightning_modules.heads.plans import CachedItems, HeadPlan
from probelight.lightning_modules.optimization import slanted_triangular

if TYPE_CHECKING:
    from probelight.lightning_modules.heads.cached_heads import StackedHeads


class Sample:
    """The items of some runs' samples: features shared by runs, and what each step picks.

    Attributes:
        features: Distinct items' h (., H), or z (., E) where the transform is not trained.
        index: (R, epochs, T) rows of `features`.
        words: (R, W) rows of the stack's weight that occur in a run's sample, filled up at the end.
        num_words: How many of them are not filling.
        rows: (R, epochs, T, K) candidates as places in `words`.
        gold: (R, epochs, T, 1) gold choices.
        mask: (R, epochs, T, K) -inf where there is no choice; None if all are there.

    Args:
        heads: The stack.
        runs: Which of its runs.
        train: The set of each of them.
        order: (R, epochs, T) item indices.
        all_words: Take all words of the stack, for an optimiser that moves every one.
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
        parts: list[CachedItems] = []
        begin = 0
        for key, items in distinct.items():
            runs_of_key = torch.tensor([run for run, own in enumerate(keys) if own == key])
            used, places = torch.unique(order[runs_of_key], return_inverse=True)
            self.index[runs_of_key] = places + begin
            parts.append(_ready(heads, items.at(used), key[1]))
            begin += len(used)
        self.index = self.index.to(heads.device)
        features, rows, exists, labels = (
            torch.cat(columns).to(heads.device)
            for columns in zip(
                *((p.features, heads.rows_of(p), p.choice_mask, p.labels) for p in parts),
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
            self.words, self.rows, self.num_words = _own_words(rows)


@torch.no_grad()
def _ready(heads: StackedHeads, items: CachedItems, copy: int) -> CachedItems:
    """Items with z in the place of h where the transform is not trained."""
    if heads.mode != "linear":
        return items
    z = heads.transformed(items.features, heads.parameters, copy)
    return replace(items, features=z)


def _own_words(rows: Tensor) -> tuple[Tensor, Tensor, list[int]]:
    """Each run's distinct rows (R, W), padded with its last; places among them; their numbers."""
    pairs = [torch.unique(run, return_inverse=True) for run in rows]
    counts = [len(words) for words, _ in pairs]
    padded = [torch.cat([own, own[-1:].expand(max(counts) - len(own))]) for own, _ in pairs]
    return torch.stack(padded), torch.stack([places for _, places in pairs]), counts


class TrainingRuns:
    """Runs of a stack while they train together."""

    def __init__(self, heads: StackedHeads, runs: slice, sample: Sample, plan: HeadPlan) -> None:
        self.heads = heads
        self.runs = runs
        self.sample = sample
        self.plan = plan
        # Views of the stack: the optimiser writes into it.
        self.parameters = {
            name: value[runs].requires_grad_(plan.mode == "mlp")
            for name, value in heads.parameters.items()
        }
        own = torch.arange(runs.start, runs.stop, device=heads.device)[:, None]
        self.weight = heads.weight[own, sample.words]  # (R, W, E)
        self.bias = None if heads.bias is None else heads.bias[own, sample.words]
        self.optimizer = self._optimizer()

    def _optimizer(self) -> torch.optim.Optimizer:
        transform = self.parameters if self.plan.mode == "mlp" else {}
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
        """All epochs; the stack then holds the result of each run, which is of the epoch given."""
        plan, num_items = self.plan, self.sample.index.shape[2]
        starts = range(0, num_items, plan.batch_size)
        factor = slanted_triangular(plan.epochs * len(starts))
        kept = 1.0  # of a weight that has no gradient
        for epoch in range(plan.epochs):
            for step, start in enumerate(starts, start=epoch * len(starts)):
                rate = plan.learning_rate * factor(step)
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
                kept *= 1.0 - rate * plan.weight_decay
                self._backward(epoch, slice(start, start + plan.batch_size))
                self.optimizer.step()
        self._write_back(kept)
        return [plan.epochs] * len(self.sample.index)

    def _backward(self, epoch: int, part: slice) -> None:
        """Sets the gradients of one step: a mean within each run; no run feels another."""
        sample = self.sample
        index = sample.index[:, epoch, part]  # (R, B)
        h = F.embedding(index, sample.features)
        z = self.heads.transform(self.parameters, h) if self.plan.mode == "mlp" else h
        with torch.no_grad():
            slope = self._slope(z, epoch, part)  # (R, B, W)
            self.weight.grad = torch.bmm(slope.transpose(1, 2), z)
            if self.bias is not None:
                self.bias.grad = slope.sum(dim=1)
        if self.plan.mode == "mlp":
            for value in self.parameters.values():
                value.grad = None
            if z.requires_grad:  # a head may have no hidden layer
                torch.autograd.backward(z, torch.bmm(slope, self.weight))

    def _slope(self, z: Tensor, epoch: int, part: slice) -> Tensor:
        """Gradient of the cross-entropy by the logits of all words (R, B, W): softmax - gold."""
        sample = self.sample
        rows, gold = sample.rows[:, epoch, part], sample.gold[:, epoch, part]
        logits = torch.bmm(z, self.weight.transpose(1, 2))
        if self.bias is not None:
            logits += self.bias[:, None]
        chosen = logits.gather(2, rows)  # (R, B, K)
        if sample.mask is not None:
            chosen += sample.mask[:, epoch, part]
        slope = chosen.softmax(dim=2)
        slope.scatter_add_(2, gold, slope.new_full((), -1.0).expand(gold.shape))
        slope /= rows.shape[1]
        return logits.zero_().scatter_add_(2, rows, slope)

    @torch.no_grad()
    def _write_back(self, kept: float) -> None:
        """Words outside a run's sample had no gradient, so they only decayed."""
        self.heads.weight[self.runs] *= kept
        runs = range(self.runs.start, self.runs.stop)
        for place, (run, count) in enumerate(zip(runs, self.sample.num_words, strict=True)):
            words = self.sample.words[place, :count]
            self.heads.weight[run, words] = self.weight[place, :count]
            if self.heads.bias is not None and self.bias is not None:
                self.heads.bias[run, words] = self.bias[place, :count]
