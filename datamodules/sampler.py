"""Which items form which batch: seeded, and the same for any number of processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from torch.utils.data import Sampler

from probelight.encoding.batches import ALL, PADDING_ITEM, Share, token_budget_batches


class Budget(NamedTuple):
    """Batches by tokens: each item's length, and the padded tokens of a global batch."""

    lengths: ArrayLike
    max_tokens: int


class EpochBatchSampler(Sampler[list[int]]):
    """Batches of a training epoch as a function of (seed, epoch) alone.

    The global order is drawn first and cut into global batches; each process then takes its share
    of every global batch. One process or many therefore see the same batches in the same order.
    A share may be padding only, where a batch has fewer items than there are processes.

    Args:
        num_items: Size of the dataset.
        batch_size: Items in a global batch (all processes together). Ignored with a budget.
        seed: Run seed.
        budget: Batches are then made of similar lengths, and hold so many padded tokens.
        shuffle: Draw a new order in each epoch. False keeps the dataset's order.
        share: This process.
    """

    def __init__(
        self,
        num_items: int,
        batch_size: int = 16,
        *,
        seed: int = 0,
        budget: Budget | None = None,
        shuffle: bool = True,
        share: Share = ALL,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} must be positive")
        if budget is None and batch_size % share.num_replicas:
            raise ValueError(
                f"batch_size={batch_size} is not a multiple of the {share.num_replicas} processes: "
                "choose one that is, so that every process holds the same share of a batch"
            )
        if budget is not None and np.shape(budget.lengths) != (num_items,):
            raise ValueError("a budget needs the lengths of the items")
        self.num_items = num_items
        self.batch_size = batch_size
        self.seed = seed
        self.budget = budget
        self.shuffle = shuffle
        self.share = share
        self.epoch = 0
        self.sampler = self  # where Lightning looks for `set_epoch`
        self._planned: tuple[int, list[list[int]], list[int]] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch whose batches the next iteration yields."""
        self.epoch = epoch

    def batches(self) -> list[list[int]]:
        """This process's batches of the current epoch, `PADDING_ITEM` where a shard is short."""
        epoch = self.epoch if self.shuffle else 0
        if self._planned is None or self._planned[0] != epoch:
            batches = self._global_batches(epoch)
            ends = np.cumsum([len(batch) for batch in batches]).tolist()
            self._planned = (epoch, [self._shard(batch) for batch in batches], ends)
        return self._planned[1]

    def ends(self) -> list[int]:
        """Items of the current epoch up to the end of each batch, over all processes."""
        self.batches()
        assert self._planned is not None
        return self._planned[2]

    @property
    def plan(self) -> dict[str, int]:
        """The settings that decide the batches; the number of processes is not among them."""
        size = {"batch_size": self.batch_size}
        if self.budget is not None:
            size = {"max_tokens": self.budget.max_tokens}
        return {"num_items": self.num_items, "seed": self.seed, **size}

    def _global_batches(self, epoch: int) -> list[list[int]]:
        rng = np.random.default_rng([self.seed, epoch])
        order = rng.permutation(self.num_items) if self.shuffle else np.arange(self.num_items)
        if self.budget is None:
            size = self.batch_size
            return [order[i : i + size].tolist() for i in range(0, self.num_items, size)]
        by_length = order[np.argsort(np.asarray(self.budget.lengths)[order], kind="stable")]
        batches = token_budget_batches(*self.budget, by_length)
        return [batches[i] for i in rng.permutation(len(batches))] if self.shuffle else batches

    def _shard(self, batch: list[int]) -> list[int]:
        rank, num_replicas = self.share
        size = -(-len(batch) // num_replicas)
        padded = batch + [PADDING_ITEM] * (size * num_replicas - len(batch))
        return padded[rank * size : (rank + 1) * size]

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches())

    def __len__(self) -> int:
        return len(self.batches())
