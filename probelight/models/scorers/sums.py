"""From the log-probabilities of tokens to the scores of choices, for every kind that sums them.

Shapes: B items, K choices, P distinct texts, R summed tokens of all of them.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from probelight.models.batches import Batch, mask_choices

Normalise = Literal["sum", "mean"]


def scores_of_choices(batch: Batch, scores: Tensor, counts: Tensor, normalise: Normalise) -> Tensor:
    """(B, K): the sum or the mean of each choice's tokens; -inf where there is no such choice.

    In double precision on the CPU (not every accelerator has it): the mean of equal numbers is
    then that number, however many there are, and a model that prefers no token ties.

    Args:
        batch: With `pair_index` (B, K), the text of each choice, and `choice_mask` (B, K).
        scores: (R,) log-probabilities, those of a text beside each other.
        counts: (P,) how many of each text.
        normalise: "sum" or "mean".
    """
    sizes = counts.cpu()
    # Split and summed, not `index_add_`: on a GPU that adds in an order of its own each time.
    parts = torch.split(scores.cpu().double(), sizes.tolist())
    sums = torch.stack([part.sum() for part in parts])
    found = sums / sizes if normalise == "mean" else sums
    found = found.float().to(batch["choice_mask"].device)
    return mask_choices(found[batch["pair_index"]], batch["choice_mask"])
