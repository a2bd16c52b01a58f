"""Which items are answered together: batches by tokens, the same for any number of processes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

PADDING_ITEM = -1  # an index that stands for "no item": it fills uneven shards with weight 0


def token_budget_batches(
    lengths: ArrayLike, max_tokens: int, order: ArrayLike, num_sequences: ArrayLike | None = None
) -> list[list[int]]:
    """Cuts `order` into batches whose padded size fits the budget.

    The padded size is the longest sequence times the number of sequences. An item larger than the
    budget is a batch of its own.

    Args:
        lengths: (N,) tokens of the longest sequence of each item.
        max_tokens: The budget.
        order: Items in the order in which they are taken.
        num_sequences: (N,) sequences of each item; one each when left out.
    """
    sizes = np.asarray(lengths).tolist()
    rows = [1] * len(sizes) if num_sequences is None else np.asarray(num_sequences).tolist()
    batches: list[list[int]] = []
    batch: list[int] = []
    longest = num_rows = 0
    for index in np.asarray(order, dtype=np.int64).tolist():
        longest, num_rows = max(longest, sizes[index]), num_rows + rows[index]
        if batch and longest * num_rows > max_tokens:
            batches.append(batch)
            batch, longest, num_rows = [], sizes[index], rows[index]
        batch.append(index)
    if batch:
        batches.append(batch)
    return batches


class Share(NamedTuple):
    """Which process of how many; one process has everything."""

    rank: int = 0
    num_replicas: int = 1


ALL = Share()


def evaluation_batches(
    lengths: ArrayLike,
    max_tokens: int,
    *,
    num_sequences: ArrayLike | None = None,
    share: Share = ALL,
) -> list[list[int]]:
    """One process's batches for measuring: long items first, similar lengths together.

    Processes take whole batches in turn, so every item is computed in the same company, and has
    bit for bit the same scores, whatever the number of processes. A process that comes out short
    gets a batch of padding, because all must take equally many steps.
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    batches = token_budget_batches(lengths, max_tokens, order, num_sequences)
    batches += [[PADDING_ITEM]] * (-len(batches) % share.num_replicas)
    return batches[share.rank :: share.num_replicas]
