from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from probelight.lightning_modules.base import ChoiceModule
from probelight.models.networks import mask_choices

Batch = dict[str, Tensor]


class Table(ChoiceModule):
    """Its logits are its only parameters: one row of K per item."""

    def __init__(self, rows: list[list[float]], learning_rate: float = 0.1, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.rows = nn.Parameter(torch.tensor(rows))

    def forward(self, batch: Batch) -> Tensor:
        return mask_choices(self.rows[batch["item"].clamp(min=0)], batch["choice_mask"])

    def encoder(self) -> Any:
        return None


ROWS = [[2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0], [1.0, 0.0, 0.0]]
LABELS = [0, 0, 2, 1]  # the first and the third are right


def batch(items: Sequence[int]) -> Batch:
    """Items of the table; -1 is padding."""
    return {
        "item": torch.tensor(items),
        "labels": torch.tensor([LABELS[max(i, 0)] for i in items]),
        "weights": torch.tensor([float(i >= 0) for i in items]),
        "choice_mask": torch.ones(len(items), 3, dtype=torch.bool),
    }


def loader(*batches: Sequence[int]) -> DataLoader[Any]:
    return DataLoader([batch(items) for items in batches], batch_size=None)  # type: ignore[arg-type]
