"""Runs of a stack that begin at random: each has its own rate, its own end and its own best epoch.

One step of Adam moves all of them at the full rate; a run whose rate was halved goes only that part
of the way, and one that has ended stays. Adam's moments do not depend on the rate, so this is what
the runs would do one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from probelight.lightning_modules.heads.plans import CachedItems, PlateauPlan
from probelight.lightning_modules.heads.stacked_runs import Sample, TrainingRuns
from probelight.lightning_modules.optimization import halving
from probelight.metrics.accuracy import credit_sum, weighted_credits

if TYPE_CHECKING:
    from probelight.lightning_modules.heads.cached_heads import StackedHeads

# Besides those of every stack: where the last step began, and the best epoch.
PLATEAU_COPIES = 6


class RunProgress:
    """The rate and the end of one run, by its accuracy on held-out items.

    Args:
        plan: How it is trained.

    Attributes:
        scale: Its rate as a share of the full one; 0 when it has ended.
        best_epoch: The first epoch with the best accuracy, counted from 1; 0 before there is one.
    """

    def __init__(self, plan: PlateauPlan) -> None:
        self._plan = plan
        # torch's own scheduler decides, over an optimiser that moves nothing.
        self._rate = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=plan.learning_rate)
        self._scheduler = halving(self._rate)
        self._best = -1.0
        self.scale = 1.0
        self.best_epoch = 0

    def judge(self, epoch: int, accuracy: float) -> bool:
        """Takes in an epoch's accuracy; whether it is better than all before it."""
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
    """Runs of a stack while they train together, after a `PlateauPlan`."""

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
        self._before = [torch.empty_like(value) for value in self._trained()]
        self._best = [value.detach().clone() for value in self._trained()]

    def _trained(self) -> list[Tensor]:
        """What is trained of the runs, each (R, ...)."""
        transform = list(self.parameters.values()) if self.plan.mode == "mlp" else []
        return [*transform, self.weight, *([] if self.bias is None else [self.bias])]

    def _optimizer(self) -> torch.optim.Optimizer:
        plan = self.plan
        return torch.optim.Adam(
            self._trained(), lr=plan.learning_rate, weight_decay=plan.weight_decay, fused=True
        )

    def train(self) -> list[int]:
        """Epochs until every run has ended; the stack then holds each run's best epoch."""
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
        whole = all(scale == 1.0 for scale in scales)
        if not whole:
            self._copy(self._before, self._trained())
        self.optimizer.step()
        if not whole:
            for now, before in zip(self._trained(), self._before, strict=True):
                share = now.new_tensor(scales).reshape(-1, *[1] * (now.dim() - 1))
                torch.lerp(before, now, share, out=now)

    @torch.no_grad()
    def _clip(self) -> None:
        """Each run's gradient to the norm of the plan, as `clip_grad_norm_` does it."""
        if self.plan.max_grad_norm is None:
            return
        gradients = [value.grad for value in self._trained() if value.grad is not None]
        parts = [torch.linalg.vector_norm(gradient.flatten(1), dim=1) for gradient in gradients]
        norms = torch.linalg.vector_norm(torch.stack(parts), dim=0)  # (R,)
        shares = (self.plan.max_grad_norm / (norms + 1e-6)).clamp(max=1.0)
        if bool((shares < 1.0).any()):
            for gradient in gradients:
                gradient *= shares.reshape(-1, *[1] * (gradient.dim() - 1))

    @torch.no_grad()
    def _judge(self, epoch: int) -> None:
        """Measures the runs that have not ended, and keeps those that are better than before."""
        self._write_back(1.0)
        for place, (run, items) in enumerate(zip(self.progress, self.held_out, strict=True)):
            if run.scale and run.judge(epoch, self._accuracy(place, items)):
                for best, now in zip(self._best, self._trained(), strict=True):
                    best[place] = now[place]

    def _accuracy(self, place: int, items: CachedItems) -> float:
        heads, run = self.heads, self.runs.start + place
        z = heads.transformed(items.features, heads.parameters, heads.copies[run])
        scores = heads.decoded(run, items, z)
        labels, mask = items.labels.to(scores.device), items.choice_mask.to(scores.device)
        ones = torch.ones_like(labels, dtype=scores.dtype)
        return float(credit_sum(weighted_credits(scores, labels, ones, mask)) / len(labels))

    @torch.no_grad()
    def _copy(self, to: Sequence[Tensor], values: Sequence[Tensor]) -> None:
        for target, value in zip(to, values, strict=True):
            target.copy_(value)
