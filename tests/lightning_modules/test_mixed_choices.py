from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from probelight.lightning_modules.base import ChoiceModule, choice_loss
from probelight.models.registry import ModelSettings
from probelight.probes.record import Record
from probelight.training.modules import module_for

WORDS = ["cat", "red", "animal", "water", "green", "small", "large", "tree", "house"]
KINDS = ["transformer", "esim", "choice_only", "choice_to_choice", "question_to_choice"]


def questions(num_items: int) -> list[Record]:
    rng = random.Random(0)
    records = []
    for i in range(num_items):
        stem = " ".join(rng.sample(WORDS, rng.randrange(2, 7)))
        choices = tuple(" ".join(rng.sample(WORDS, 2)) for _ in range(2 + i % 4))
        records.append(Record(str(i), stem, choices, rng.randrange(len(choices))))
    return records


@torch.no_grad()
def scores(module: ChoiceModule, records: list[Record]) -> list[torch.Tensor]:
    batch = module.encoder().encode(records).collate(range(len(records)))
    rows = zip(module(batch), batch["choice_mask"], strict=True)
    return [logits[mask] for logits, mask in rows]


@pytest.mark.parametrize(
    ("kind", "num_choices"), [*((kind, None) for kind in KINDS), ("choice_to_choice", 5)]
)
def test_the_loss_of_a_mixed_batch_is_that_of_its_questions(
    kind: str, num_choices: int | None
) -> None:
    records = questions(12)
    module = module_for(ModelSettings(kind=kind), "mc_qa", seed=3)
    module.num_choices = num_choices
    alone = [scores(module, [record])[0] for record in records]
    assert [len(logits) for logits in alone] == [num_choices or len(r.choices) for r in records]
    for row, together in zip(alone, scores(module, records), strict=True):
        np.testing.assert_allclose(row, together, atol=1e-5)
    batch = module.encoder().encode(records).collate(range(12))
    logits = module(batch)
    total, _ = choice_loss(logits, batch["labels"], batch["weights"], batch["choice_mask"])
    expected = sum(-row.log_softmax(0)[r.answer] for row, r in zip(alone, records, strict=True))
    torch.testing.assert_close(total.detach(), expected, atol=1e-3, rtol=1e-4)
    total.backward()
    grads = [p.grad for p in module.parameters() if p.grad is not None]
    assert grads
    assert all(grad.isfinite().all() for grad in grads)
