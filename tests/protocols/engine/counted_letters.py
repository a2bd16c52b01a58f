"""A kind of model in one file: the longer a choice, the better. It has no weights to load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from probelight.encoding.encoded_set import EncodedSet, Ids
from probelight.models.networks import Batch, mask_choices
from probelight.models.scorer import Posable, Question, Scorer, ScorerSettings
from probelight.probes.record import Record, Setup


@dataclass(frozen=True, kw_only=True)
class Counted(EncodedSet):
    counts: Ids  # (N, K), 0 where there is no choice

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        counts = torch.from_numpy(self.counts[items])
        return {"counts": counts, "choice_mask": counts > 0}


class CountingEncoder:
    cache_dir: str | Path | None = None

    def encode(self, records: Sequence[Record]) -> EncodedSet:
        width = max(len(record.choices) for record in records)
        rows = [[len(choice) for choice in record.choices] for record in records]
        size = len(records)
        return Counted(
            counts=np.array([row + [0] * (width - len(row)) for row in rows]),
            labels=np.array([record.answer for record in records]),
            lengths=np.ones(size, dtype=np.int64),
            num_sequences=np.ones(size, dtype=np.int64),
            kept=list(range(size)),
            skipped=[],
            needs_pll=[],
            notices=("letters were counted",),
        )


class LetterCounter(Scorer):
    mode = "counted"

    def choice_scores(self) -> Question:
        def answer(batch: Batch) -> Tensor:
            return mask_choices(batch["counts"].float(), batch["choice_mask"])

        return Question(CountingEncoder(), answer)


def load(settings: ScorerSettings, setup: Setup, seed: int = 0) -> Scorer:
    return LetterCounter()


def check(settings: ScorerSettings, setup: Setup) -> Posable:
    return lambda records: range(len(records))
