"""Methods against forgetting in an inoculation that change the objective: L2-SP and distillation.

Each starts from a copy of the model before training. Replay, which only changes the batches, is
part of `ChoiceDataModule`; adapters are part of the modules (`probelight.models.adapters`).

Shapes: B batch, K choices.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from probelight.datamodules.choices import REPLAYED
from probelight.lightning_modules.base import ChoiceModule
from probelight.models.networks import Batch


class Penalty(ABC):
    """Base class of methods against forgetting.

    Args:
        strength: How strongly it acts.
    """

    weight_decay: float | None = None  # in place of the module's own

    def __init__(self, strength: float) -> None:
        if not strength > 0:
            raise ValueError(f"strength {strength}: give a number above 0")
        self.strength = strength

    @abstractmethod
    def start(self, task: ChoiceModule) -> None:
        """Copy what is needed of the model before training."""

    @abstractmethod
    def move(self, device: torch.device) -> None:
        """Move this copy to the device of the training."""

    def held(self) -> Iterator[Tensor]:
        """Yield the weights that it keeps in memory."""
        yield from ()

    def losses(self, batch: Batch, logits: Tensor, losses: Tensor) -> Tensor:
        """Return the losses (B,) that count instead of the items' cross-entropies."""
        return losses

    def add_gradients(self) -> Tensor | None:
        """Add to the gradients before a step; return the penalty, if there is one."""
        return None


class L2SP(Penalty):
    """Pulls every trained weight back to where it started (L2-SP, Li et al. 2018).

    The penalty is strength / 2 times the squared distance, and replaces weight decay. Its gradient
    is added once per step, so it is the same for any number of processes and of batches per step.
    """

    weight_decay = 0.0

    def start(self, task: ChoiceModule) -> None:
        self._weights = [weight for weight in task.parameters() if weight.requires_grad]
        self._started = [weight.detach().clone() for weight in self._weights]

    def move(self, device: torch.device) -> None:
        pairs = list(zip(self._started, self._weights, strict=True))
        if any(start.shape != weight.shape for start, weight in pairs):
            raise RuntimeError(
                "l2_sp needs whole weights, but a sharded strategy (fsdp) gives each process only "
                "a part of each: train with ddp or on one device"
            )
        self._started = [start.to(weight) for start, weight in pairs]  # its precision too

    def held(self) -> Iterator[Tensor]:
        yield from self._started

    @torch.no_grad()
    def add_gradients(self) -> Tensor | None:
        pairs = zip(self._weights, self._started, strict=True)
        moves = [  # others are not moved
            (weight.grad, weight - start) for weight, start in pairs if weight.grad is not None
        ]
        if not moves:
            return None
        gradients, moved = zip(*moves, strict=True)
        torch._foreach_add_(gradients, moved, alpha=self.strength)
        distances = torch.stack(torch._foreach_norm(moved, dtype=torch.float32))
        return self.strength / 2 * distances.square().sum()


class Distillation(Penalty):
    """Keeps the answers to original-task questions as they were (Li and Hoiem 2017).

    For each replayed question, strength times KL(before || now) replaces the cross-entropy, so its
    gold answer is not used. The model before training answers without dropout.
    """

    def start(self, task: ChoiceModule) -> None:
        self._teacher = copy.deepcopy(task).requires_grad_(False).eval()

    def move(self, device: torch.device) -> None:
        self._teacher.to(device)

    def held(self) -> Iterator[Tensor]:
        yield from self._teacher.parameters()

    def losses(self, batch: Batch, logits: Tensor, losses: Tensor) -> Tensor:
        if REPLAYED not in batch:
            raise RuntimeError(
                "distillation needs original-task questions in each batch: pass some to "
                "ChoiceDataModule as `replay`"
            )
        with torch.no_grad():
            teacher_logits = self._teacher(batch).float()
        # Choices that an item lacks: -inf minus -inf would be no number.
        absent = ~batch["choice_mask"]
        student, teacher = (
            F.log_softmax(scores.masked_fill(absent, torch.finfo(scores.dtype).min), dim=-1)
            for scores in (logits, teacher_logits)
        )
        divergence = F.kl_div(student, teacher, reduction="none", log_target=True).sum(dim=-1)
        return torch.where(batch[REPLAYED], self.strength * divergence, losses)
