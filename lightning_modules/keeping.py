"""What holds a model back in an inoculation, so that it keeps what it knew.

Each is made from the model before it is trained. Replay, which needs no more than other batches, is
`ChoiceDataModule`'s; adapters are the module's own (`probelight.models.adapters`).

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
    """One way of holding a model back.

    Args:
        strength: How much it counts.
    """

    weight_decay: float | None = None  # in place of the module's own

    def __init__(self, strength: float) -> None:
        if not strength > 0:
            raise ValueError(f"strength {strength}: give a number above 0")
        self.strength = strength

    @abstractmethod
    def start(self, task: ChoiceModule) -> None:
        """Take the model as it is before it is trained."""

    @abstractmethod
    def move(self, device: torch.device) -> None:
        """Put what was taken on the device of the training."""

    def held(self) -> Iterator[Tensor]:
        """Yield the weights that are held in memory for it."""
        yield from ()

    def losses(self, batch: Batch, logits: Tensor, losses: Tensor) -> Tensor:
        """Return what counts of each item (B,) in place of its cross-entropy."""
        return losses

    def add_gradients(self) -> Tensor | None:
        """Add to the gradients before a step; return what the penalty is, if anything."""
        return None


class L2SP(Penalty):
    """Pull every trained weight back to where it started (Li et al. 2018): L2-SP.

    The penalty is strength / 2 times the squared distance, and takes the place of weight decay. Its
    gradient is added once per step: it is the same for any number of processes, and of batches that
    make a step.
    """

    weight_decay = 0.0

    def start(self, task: ChoiceModule) -> None:
        self._weights = [weight for weight in task.parameters() if weight.requires_grad]
        self._started = [weight.detach().clone() for weight in self._weights]

    def move(self, device: torch.device) -> None:
        pairs = zip(self._started, self._weights, strict=True)
        if any(start.shape != weight.shape for start, weight in pairs):
            raise RuntimeError(
                "l2_sp holds every weight to where it started, and a sharded strategy (fsdp) gives "
                "each process a part of each: train with ddp or on one device"
            )
        pairs = zip(self._started, self._weights, strict=True)
        self._started = [start.to(weight) for start, weight in pairs]  # its precision too

    def held(self) -> Iterator[Tensor]:
        yield from self._started

    @torch.no_grad()
    def add_gradients(self) -> Tensor | None:
        pairs = zip(self._weights, self._started, strict=True)
        found = [  # others are not moved
            (weight.grad, weight - start) for weight, start in pairs if weight.grad is not None
        ]
        if not found:
            return None
        gradients, moved = zip(*found, strict=True)
        torch._foreach_add_(gradients, moved, alpha=self.strength)
        distances = torch.stack(torch._foreach_norm(moved, dtype=torch.float32))
        return self.strength / 2 * distances.square().sum()


class Distillation(Penalty):
    """Keep the answers to original-task questions what they were (Li and Hoiem 2017).

    Of each question that is replayed, strength times KL(before || now) counts in place of its
    cross-entropy, so its gold answer is not used. The model before answers without dropout.
    """

    def start(self, task: ChoiceModule) -> None:
        self._before = copy.deepcopy(task).requires_grad_(False).eval()

    def move(self, device: torch.device) -> None:
        self._before.to(device)

    def held(self) -> Iterator[Tensor]:
        yield from self._before.parameters()

    def losses(self, batch: Batch, logits: Tensor, losses: Tensor) -> Tensor:
        if REPLAYED not in batch:
            raise RuntimeError(
                "distillation needs original-task questions in each batch: give ChoiceDataModule "
                "some as `replay`"
            )
        with torch.no_grad():
            before = self._before(batch).float()
        # Choices that an item lacks: -inf minus -inf would be no number.
        absent = ~batch["choice_mask"]
        now, then = (
            F.log_softmax(found.masked_fill(absent, torch.finfo(found.dtype).min), dim=-1)
            for found in (logits, before)
        )
        divergence = F.kl_div(now, then, reduction="none", log_target=True).sum(dim=-1)
        return torch.where(batch[REPLAYED], self.strength * divergence, losses)
