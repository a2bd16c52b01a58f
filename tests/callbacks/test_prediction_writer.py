from __future__ import annotations

import math

import pytest
import torch

from probelight.models.answering import scores_by_item


def test_the_choice_mask_says_which_choices_there_are_not_their_scores() -> None:
    batch = {
        "item": torch.tensor([4, 2, -1]),
        "scores": torch.tensor(
            [[-math.inf, 1.0, -math.inf], [math.nan, 2.0, 3.0], [0.0, 0.0, 0.0]]
        ),
        "choice_mask": torch.tensor([[True, True, False], [True, True, True], [True] * 3]),
    }
    found = scores_by_item(batch)
    assert found[4] == [-math.inf, 1.0]
    assert found[2] == pytest.approx([math.nan, 2.0, 3.0], nan_ok=True)
    assert set(found) == {4, 2}
