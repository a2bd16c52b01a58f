from __future__ import annotations

from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from probelight.encoding.encoded_set import ChoiceEncoder
from probelight.encoding.masked import MaskedChoiceEncoder
from probelight.models.answering import batch_scores
from probelight.probes.record import Record

WORDS = ("cat", "dog", "older", "younger", "size", "word", "rest")


def records(number: int, seed: int = 0) -> list[Record]:
    """Stems of 1 to 7 words with two choices, the same for the same seed."""
    draw = torch.Generator().manual_seed(seed)
    rows = []
    for index in range(number):
        picked = torch.randint(len(WORDS), (1 + index % 7,), generator=draw).tolist()
        stem = " ".join([WORDS[i] for i in picked] + ["[MASK]"])
        answer = int(torch.randint(2, (1,), generator=draw))
        rows.append(Record(f"r{index}", stem, ("larger", "smaller"), answer, position=index))
    return rows


class Bag(pl.LightningModule):
    """Mean of word vectors against candidate vectors: order of training matters to its weights."""

    def __init__(self, tokenizer: Any, **options: Any) -> None:
        super().__init__()
        self.text = MaskedChoiceEncoder(tokenizer, **options)
        self.words = nn.Embedding(len(tokenizer), 4)
        self.dropout = nn.Dropout(0.0)
        self.evaluation_names: list[str] = []
        self.trained: list[list[int]] = []
        self.validated: list[tuple[int, int]] = []
        self.workers: list[str] = []

    def encoder(self) -> ChoiceEncoder:
        return self.text

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        mask = batch["attention_mask"][..., None]
        text = (self.words(batch["input_ids"]) * mask).sum(1) / mask.sum(1)
        return (self.words(batch["candidate_ids"]) * text[:, None]).sum(-1)

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        self.trained.append(batch["item"].tolist())
        losses = nn.functional.cross_entropy(self(batch), batch["labels"], reduction="none")
        return (losses * batch["weights"]).sum() / batch["weights"].sum()

    def validation_step(
        self, batch: dict[str, Tensor], batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        self.validated += [(dataloader_idx, i) for i in batch["item"].tolist()]

    def predict_step(
        self, batch: dict[str, Tensor], batch_idx: int, dataloader_idx: int = 0
    ) -> dict[str, Tensor]:
        return batch_scores(batch, self(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.1)
