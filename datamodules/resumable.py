"""A training loader that goes on in the middle of an epoch, and the data module that keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from torch.utils.data import Dataset, Sampler

from probelight.datamodules.loader_workers import WorkerLoader
from probelight.datamodules.sampler import EpochBatchSampler


class ResumableLoader(WorkerLoader):
    """A DataLoader over an `EpochBatchSampler` that can start in the middle of an epoch.

    Its state counts the items of the batches handed out, so it is exact whatever `num_workers` is,
    and holds for batches of another size that end at the same item. Lightning stores it in the
    checkpoint and gives it back on resume; `len` stays that of the whole epoch. Iterating draws
    nothing from torch's global random state, so what a module draws (dropout) does not depend on
    how often a loader was started.

    Attributes:
        accumulate: Batches that make one optimiser step.
    """

    def __init__(
        self, dataset: Dataset[Any], batch_sampler: EpochBatchSampler, **kwargs: Any
    ) -> None:
        if kwargs.get("persistent_workers"):
            raise ValueError("persistent_workers would keep the dataset of the first epoch")
        kwargs.setdefault("generator", torch.Generator())
        super().__init__(dataset, batch_sampler=_Remaining(batch_sampler), **kwargs)
        self.epoch_sampler = batch_sampler
        self.accumulate = 1
        self._start = 0  # batches to leave out when the next iteration begins
        self._position = (0, 0)  # epoch, batches handed out in it

    # Lightning asks for an iterator more often than it uses one, and never runs it to its end:
    # so nothing may happen here before the first batch is taken, or after the last one.
    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        remaining, sampler = self.batch_sampler, self.epoch_sampler
        assert isinstance(remaining, _Remaining)
        epoch, done = sampler.epoch, self._start
        remaining.start, self._start = done, 0
        words = np.random.SeedSequence([sampler.seed, epoch]).generate_state(2)
        self.generator.manual_seed(int(words[0]) << 31 | int(words[1]) >> 1)
        for batch in super().__iter__():
            done += 1
            self._position = (epoch, done)
            yield batch

    @property
    def plan(self) -> dict[str, int]:
        """The settings that decide which items make an optimiser step."""
        plan = self.epoch_sampler.plan
        if self.accumulate == 1:
            return plan
        if "batch_size" in plan:
            return {**plan, "batch_size": plan["batch_size"] * self.accumulate}
        return {**plan, "accumulate": self.accumulate}

    def step_items(self, batch_idx: int) -> int:
        """Items, over all processes, of the optimiser step that a batch of this epoch is part of.

        Args:
            batch_idx: Place of the batch in its epoch.
        """
        ends = [0, *self.epoch_sampler.ends()]
        first = batch_idx // self.accumulate * self.accumulate
        return ends[min(first + self.accumulate, len(ends) - 1)] - ends[first]

    def state_dict(self) -> dict[str, Any]:
        """Epoch, items handed out in it, and the settings that this count belongs to."""
        epoch, done = self._position
        current = self.epoch_sampler.epoch
        done = done if epoch == current else 0
        items = [0, *self.epoch_sampler.ends()][done]
        return {"epoch": current, "items_done": items, "plan": self.plan}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Makes the next iteration go on behind the items already done.

        Raises:
            ValueError: If the steps are not made of the items that the state counts, or no batch
                ends where it was written.
        """
        sampler, plan = self.epoch_sampler, state.get("plan", self.plan)
        if plan != self.plan:
            raise ValueError(
                f"the checkpoint was written in the middle of an epoch over {plan}, but the data "
                f"now is {self.plan}: resume with the same data and batch size, or start anew"
            )
        sampler.set_epoch(state["epoch"])
        ends = [0, *sampler.ends()]
        # A state of an earlier version counts batches.
        items = state["items_done"] if "items_done" in state else ends[state["batches_done"]]
        if items not in ends:
            raise ValueError(
                f"the checkpoint was written behind {items} items of an epoch, where no batch of "
                f"{sampler.batch_size} ends: resume with the same batches, or start anew"
            )
        done = ends.index(items)
        self._position = (state["epoch"], done)
        self._start = 0 if done >= len(sampler) else done


class ResumableData(pl.LightningDataModule):
    """A data module whose training loader goes on in the middle of an epoch.

    Lightning hands a loader its state only if the loader is made after the loops are restored. A
    module that asks for `estimated_stepping_batches` to build its schedule has it made before, and
    the state is then never used. The state of a data module is restored before either.
    """

    def __init__(self) -> None:
        super().__init__()
        self._loader: ResumableLoader | None = None
        self._loader_state: dict[str, Any] | None = None

    def resumable(self, loader: ResumableLoader) -> ResumableLoader:
        """Gives a new training loader the state of the checkpoint, if one was restored."""
        if self.trainer is not None:
            loader.accumulate = self.trainer.accumulate_grad_batches
        if self._loader_state is not None:
            loader.load_state_dict(self._loader_state)
            self._loader_state = None
        self._loader = loader
        return loader

    def step_items(self, batch_idx: int) -> int | None:
        """Items of the optimiser step that a training batch is part of; None without a loader."""
        return self._loader.step_items(batch_idx) if self._loader is not None else None

    def state_dict(self) -> dict[str, Any]:
        """The training loader's state."""
        return {"loader": self._loader.state_dict()} if self._loader is not None else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keeps the state for the training loader that is made next."""
        self._loader_state = state_dict.get("loader")


class _Remaining(Sampler[list[int]]):
    """The batches of an `EpochBatchSampler` from `start` on; its length is the whole epoch's."""

    def __init__(self, batch_sampler: EpochBatchSampler) -> None:
        self.sampler = batch_sampler  # where Lightning looks for `set_epoch`
        self.start = 0

    def __iter__(self) -> Iterator[list[int]]:
        # Not a generator: `start` is read now.
        return iter(self.sampler.batches()[self.start :])

    def __len__(self) -> int:
        return len(self.sampler)
