from __future__ import annotations

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, TensorDataset

from probelight.callbacks.last_state import stepped


class Line(pl.LightningModule):
    """One weight, and a note after each batch of whether a step was made."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.steps: list[bool] = []

    def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
        return self.layer(batch[0]).sum()

    def on_train_batch_end(self, *_: object) -> None:
        self.steps.append(stepped(self.trainer))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def batches(number: int) -> DataLoader[list[torch.Tensor]]:
    return DataLoader(TensorDataset(torch.ones(number, 1)), batch_size=1)
