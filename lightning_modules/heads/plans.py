"""What stacked heads are trained on, and how.

Shapes: N items, K choices, H hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from probelight.lightning_modules.modes import HeadMode


@dataclass(frozen=True)
class CachedItems:
    """Items whose texts were encoded once.

    Attributes:
        features: (N, H) encoder output at the mask.
        candidates: (N, K) vocabulary items.
        choice_mask: (N, K) which choices exist.
        labels: (N,) gold choices.
    """

    features: Tensor
    candidates: Tensor
    choice_mask: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, rows: Tensor) -> CachedItems:
        """Some of the items."""
        columns = (self.features, self.candidates, self.choice_mask, self.labels)
        return CachedItems(*(column[rows] for column in columns))


@dataclass(frozen=True)
class HeadPlan:
    """How heads are trained; the same for every run of a stack.

    Attributes:
        mode: "mlp" trains transform and decoder, "linear" the decoder alone.
        learning_rate: Peak rate of AdamW.
        epochs: Passes over a run's sample.
        batch_size: Items in a step of each run.
        weight_decay: On everything but biases and norms.
    """

    mode: HeadMode
    learning_rate: float
    epochs: int = 4
    batch_size: int = 16
    weight_decay: float = 0.1


@dataclass(frozen=True)
class PlateauPlan(HeadPlan):
    """How heads that begin at random are trained: as Talmor et al. 2020 train their baseline.

    Adam with its penalty on the square of every weight, at a constant rate that is halved after
    each epoch that is not better on held-out items than all before it.

    Attributes:
        max_grad_norm: Clip each run's gradient to this norm; None does not clip.
        patience: End a run after so many epochs without a better one, and go back to the best;
            None trains all epochs at the full rate and keeps the last.
    """

    max_grad_norm: float | None = 10.0
    patience: int | None = 10
