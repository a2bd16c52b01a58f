"""Batches of items: what a model is given, and what it answers of each.

Shapes: B items, K choices.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

Batch = dict[str, Tensor]


def mask_choices(logits: Tensor, choice_mask: Tensor) -> Tensor:
    """Set the logits (B, K) of choices that an item does not have to -inf."""
    return logits.masked_fill(~choice_mask, float("-inf"))


def batch_scores(batch: Batch, scores: Tensor) -> Batch:
    """Return the scores of a batch with what is needed to assign them to items, on the CPU.

    Returns:
        `item` (B,), `scores` (B, ...) in single precision, `choice_mask` (B, K): which choices
        there are is not told by a score, which may be -inf or NaN.
    """
    found = {"item": batch["item"], "scores": scores.float(), "choice_mask": batch["choice_mask"]}
    return {name: value.cpu() for name, value in found.items()}


def gather_scores(scores: dict[int, list[float]]) -> dict[int, list[float]]:
    """Return the scores of all processes, in every process."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return scores
    parts: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(parts, scores)
    return {item: row for part in parts for item, row in part.items()}
