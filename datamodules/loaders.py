"""Training batches that depend only on seed and epoch, and loaders that resume within an epoch."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, Sampler

from probelight.encoding.encoded_set import ALL, PADDING_ITEM, Share
from probelight.probes.splits import Replay


class EpochBatchSampler(Sampler[list[int]]):
    """Batches of a training epoch, which depend only on seed and epoch.

    The global order is drawn and cut into global batches, and each process takes its share of each.
    So any number of processes sees the same batches in the same order. If a batch has fewer items
    than there are processes, some shares are all padding.

    Args:
        num_items: Number of items in the dataset.
        batch_size: Items in a global batch, over all processes.
        seed: Seed of the run.
        share: The share of this process.
        replay: Items to replay in each step; in the dataset they come after the `num_items`.
    """

    def __init__(
        self,
        num_items: int,
        batch_size: int = 16,
        *,
        seed: int = 0,
        share: Share = ALL,
        replay: Replay | None = None,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size} must be positive")
        if batch_size % share.num_replicas:
            raise ValueError(
                f"batch_size={batch_size} is not a multiple of the {share.num_replicas} processes: "
                "choose one that is, so that every process has the same share of a batch"
            )
        self.num_items = num_items
        self.batch_size = batch_size
        self.seed = seed
        self.share = share
        self.replay = replay
        self.epoch = 0
        self.sampler = self  # where Lightning looks for `set_epoch`
        self._planned: tuple[int, list[list[int]], list[int]] | None = None

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def batches(self) -> list[list[int]]:
        """Return this process's batches of the epoch, filled up with `PADDING_ITEM`."""
        epoch = self.epoch
        if self._planned is None or self._planned[0] != epoch:
            batches = self.global_batches(epoch)
            ends = np.cumsum([len(batch) for batch in batches]).tolist()
            rank, num_replicas = self.share
            shards = []
            for batch in batches:
                size = -(-len(batch) // num_replicas)
                padded = batch + [PADDING_ITEM] * (size * num_replicas - len(batch))
                shards.append(padded[rank * size : (rank + 1) * size])
            self._planned = (epoch, shards, ends)
        return self._planned[1]

    def ends(self) -> list[int]:
        """Return how many items of the epoch are done after each batch, over all processes."""
        self.batches()
        assert self._planned is not None
        return self._planned[2]

    @property
    def plan(self) -> dict[str, int]:
        """Return the settings that determine the batches; the number of processes does not."""
        size = {"batch_size": self.batch_size}
        if self.replay is not None:
            size |= {"replay_items": self.replay.num_items, "replayed": self.replay.per_step}
        return {"num_items": self.num_items, "seed": self.seed, **size}

    def global_batches(self, epoch: int) -> list[list[int]]:
        """Return the batches of an epoch, over all processes."""
        rng = np.random.default_rng([self.seed, epoch])
        order, size = rng.permutation(self.num_items), self.batch_size
        if self.replay is not None:
            order = self._with_replay(order, self.replay, rng)
        return [order[i : i + size].tolist() for i in range(0, len(order), size)]

    def _with_replay(
        self, order: NDArray[np.int64], replay: Replay, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return the items of an epoch step by step, each with what is replayed in it."""
        num_steps, num_fresh = replay.steps(self.num_items), replay.step_size - replay.per_step
        rounds = -(-num_steps * replay.per_step // replay.num_items)
        drawn = np.concatenate([rng.permutation(replay.num_items) for _ in range(rounds)])
        replayed = self.num_items + drawn[: num_steps * replay.per_step]
        fresh = np.split(order, range(num_fresh, len(order), num_fresh))
        steps = zip(fresh, np.split(replayed, num_steps), strict=True)
        return np.concatenate([items for step in steps for items in step])

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches())

    def __len__(self) -> int:
        return len(self.batches())


# macOS does not say who sent a signal.
_TELLS_SENDERS = hasattr(signal, "sigwaitinfo")


class WorkerLoader(DataLoader[Any]):
    """A DataLoader whose worker processes survive a SIGTERM that is not from their parent.

    A scheduler signals all processes of a run at once. Without its workers, the training process
    could not finish the step after which it saves its state.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("worker_init_fn", _outlive_sigterm)
        super().__init__(*args, **kwargs)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        """Begin an epoch, with SIGTERM blocked in workers from the start.

        Libraries start threads in a forked process (as the W&B client does through OpenTelemetry),
        and a thread that does not block the signal would still end the worker.
        """
        if not (self.num_workers and _TELLS_SENDERS):
            return super().__iter__()
        blocked_signals = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            return super().__iter__()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked_signals)


def _outlive_sigterm(worker: int) -> None:
    """End this worker only with a SIGTERM of its parent, which has the signal blocked here."""

    def end_with_parent() -> None:
        while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
            pass
        os._exit(0)

    if _TELLS_SENDERS:
        threading.Thread(target=end_with_parent, name="sigterm", daemon=True).start()


class ResumableLoader(WorkerLoader):
    """A DataLoader over an `EpochBatchSampler` that can start in the middle of an epoch.

    Its state counts the items of the batches returned so far. So it is exact for any `num_workers`,
    and also valid for another batch size if a batch ends at the same item. `len` is always that of
    the whole epoch. Iterating draws nothing from torch's global random state, so dropout does not
    depend on how often a loader was started.
    """

    def __init__(
        self, dataset: Dataset[Any], batch_sampler: EpochBatchSampler, **kwargs: Any
    ) -> None:
        if kwargs.get("persistent_workers"):
            raise ValueError("persistent_workers is not supported: it keeps the first epoch's data")
        kwargs.setdefault("generator", torch.Generator())
        super().__init__(dataset, batch_sampler=_Remaining(batch_sampler), **kwargs)
        self.epoch_sampler = batch_sampler
        self.accumulate = 1  # batches that make one optimiser step
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
        """Return the settings that determine which items make up an optimiser step."""
        plan = self.epoch_sampler.plan
        if self.accumulate == 1:
            return plan
        if "batch_size" in plan:
            return {**plan, "batch_size": plan["batch_size"] * self.accumulate}
        return {**plan, "accumulate": self.accumulate}

    def step_items(self, batch_idx: int) -> int:
        """Return how many items, over all processes, are in the step of a batch of this epoch."""
        ends = [0, *self.epoch_sampler.ends()]
        first = batch_idx // self.accumulate * self.accumulate
        return ends[min(first + self.accumulate, len(ends) - 1)] - ends[first]

    def state_dict(self) -> dict[str, Any]:
        """Return the epoch, the items returned in it so far, and the settings of the batches."""
        epoch, done = self._position
        current = self.epoch_sampler.epoch
        done = done if epoch == current else 0
        items = [0, *self.epoch_sampler.ends()][done]
        return {"epoch": current, "items_done": items, "plan": self.plan}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Make the next iteration continue after the items already done.

        Raises:
            ValueError: If the state was written with other data or batches, or if no batch ends
                where it was written.
        """
        sampler, plan = self.epoch_sampler, state["plan"]
        if plan != self.plan:
            raise ValueError(
                f"the checkpoint was written in the middle of an epoch over {plan}, but the data "
                f"is now {self.plan}: resume with the same data and batch size, or start again"
            )
        sampler.set_epoch(state["epoch"])
        ends = [0, *sampler.ends()]
        items = state["items_done"]
        if items not in ends:
            raise ValueError(
                f"the checkpoint was written after {items} items of an epoch, where no batch of "
                f"{sampler.batch_size} ends: resume with the same batches, or start again"
            )
        done = ends.index(items)
        self._position = (state["epoch"], done)
        self._start = 0 if done >= len(sampler) else done


class _Remaining(Sampler[list[int]]):
    """The batches of an `EpochBatchSampler` from `start` on; the length is that of the epoch."""

    def __init__(self, batch_sampler: EpochBatchSampler) -> None:
        self.sampler = batch_sampler  # where Lightning looks for `set_epoch`
        self.start = 0

    def __iter__(self) -> Iterator[list[int]]:
        # Not a generator: `start` is read now.
        return iter(self.sampler.batches()[self.start :])

    def __len__(self) -> int:
        return len(self.sampler)


class ResumableData(pl.LightningDataModule):
    """Base class of data modules whose training loader resumes in the middle of an epoch.

    Lightning restores the state of a loader only if it is made after the loops are restored, but
    reading `estimated_stepping_batches` in a module makes it earlier. The state of a data module is
    restored before both.
    """

    def __init__(self) -> None:
        super().__init__()
        self._loader: ResumableLoader | None = None
        self._loader_state: dict[str, Any] | None = None

    def resumable(self, loader: ResumableLoader) -> ResumableLoader:
        """Give a new training loader the state of the checkpoint, if one was restored."""
        if self.trainer is not None:
            loader.accumulate = self.trainer.accumulate_grad_batches
        if self._loader_state is not None:
            loader.load_state_dict(self._loader_state)
            self._loader_state = None
        self._loader = loader
        return loader

    def step_items(self, batch_idx: int) -> int | None:
        """Return how many items are in the step of a training batch; None without a loader."""
        return self._loader.step_items(batch_idx) if self._loader is not None else None

    def state_dict(self) -> dict[str, Any]:
        return {"loader": self._loader.state_dict()} if self._loader is not None else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Give the state to the training loader, or keep it for the one that is made next.

        FSDP makes optimisers, which read `estimated_stepping_batches`, before it restores a state.
        """
        state, loader = state_dict.get("loader"), self._loader
        is_made = self.trainer is not None and self.trainer.train_dataloader is loader
        if state is not None and loader is not None and is_made:
            loader.load_state_dict(state)
        else:
            self._loader_state = state
