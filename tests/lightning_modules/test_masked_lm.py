from __future__ import annotations

import pytest
import torch
from torch import Tensor

from probelight.lightning_modules.masked_lm import MaskedLanguageModel


def module_and_batch() -> tuple[MaskedLanguageModel, dict[str, Tensor]]:
    torch.manual_seed(0)
    module = MaskedLanguageModel(
        vocab_size=50, hidden_size=16, num_layers=2, num_heads=2, max_length=12
    )
    batch = {
        "input_ids": torch.randint(5, 50, (3, 10)),
        "attention_mask": torch.tensor([[1] * 10, [1] * 8 + [0] * 2, [1] * 6 + [0] * 4]),
        "token_type_ids": torch.tensor([[0] * 4 + [1] * 6] * 3),
        "labels": torch.full((3, 10), -100),
        "is_next": torch.tensor([1, 0, 1]),
    }
    batch["labels"][0, 2], batch["labels"][1, 5], batch["labels"][2, 1] = 7, 8, 9
    return module.eval(), batch


def test_the_loss_is_that_of_the_full_model() -> None:
    module, batch = module_and_batch()
    # The library counts "B continues A" as class 0.
    inputs = {name: value for name, value in batch.items() if name != "is_next"}
    whole = module.model(**inputs, next_sentence_label=1 - batch["is_next"])
    next_loss = torch.nn.functional.cross_entropy(
        whole.seq_relationship_logits, 1 - batch["is_next"]
    )
    expected = whole.loss - next_loss + 0.3 * next_loss
    assert module._losses(batch)["loss"].item() == pytest.approx(expected.item(), abs=1e-5)


def test_pairs_without_a_second_half_do_not_count() -> None:
    module, batch = module_and_batch()
    batch["is_next"][:] = -100
    out = module._losses(batch)
    assert out["next_correct"].numel() == 0
    assert out["loss"].item() == pytest.approx(out["masked_loss"].item())
