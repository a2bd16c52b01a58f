"""Multiple-choice items in batches, to train and measure a `ChoiceModule`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.utilities import rank_zero_info
from torch.utils.data import DataLoader, Dataset

from probelight.datamodules.loaders import (
    EpochBatchSampler,
    ResumableData,
    ResumableLoader,
    WorkerLoader,
)
from probelight.encoding.encoded_set import (
    ALL,
    PADDING_ITEM,
    ChoiceEncoder,
    EncodedSet,
    Share,
    evaluation_batches,
)
from probelight.io import ranges
from probelight.io.ranges import BatchSize, NumProcesses, NumTokens, Seed
from probelight.models.answering import loader_options, refuse_empty
from probelight.models.networks import Batch
from probelight.probes.record import Record
from probelight.probes.splits import Replay

REPLAYED = "replayed"  # (B,) in a batch: which items are of the other task


class ChoiceDataModule(ResumableData):
    """Turns items into batches, with the tokenizer of the module that it is used with.

    `setup` tokenises with `trainer.lightning_module.encoder()` and sets the module's
    `evaluation_names`. Training has the same global batches in the same order for any number of
    processes, and resumes exactly (each process draws its own dropout for each batch). Evaluation
    scores do not depend on the number of processes, and on the batch size only by rounding. Batches
    are dicts of tensors, see `EncodedSet.collate`; `item` is the index of an item in its sequence.
    With `replay`, training batches also have `REPLAYED`, and the indices of replayed items follow
    those of `train`.

    Args:
        train: Items to train on; None if nothing is trained.
        evaluation: Sets to measure, by name; each has one dataloader, in this order.
        batch_size: Training items in a global batch, over all processes.
        max_eval_tokens: Padded tokens in an evaluation batch of one process.
        seed: Seed of the order of the training items.
        num_workers: Processes that make batches. 0 makes them in the training process; None takes
            one on CUDA and 0 elsewhere.
        cache_dir: Folder that keeps tokens between runs; None keeps the encoder's own setting.
        replay: Items of another task to replay: some of them are in every step.
        replay_share: Share of each step that is replayed, to the nearest item; at least one item
            and not all.
        accumulate: Batches per optimiser step.
    """

    def __init__(
        self,
        train: Sequence[Record] | None,
        evaluation: Mapping[str, Sequence[Record]],
        batch_size: BatchSize = 16,
        max_eval_tokens: NumTokens = 8192,
        seed: Seed = 0,
        num_workers: NumProcesses | None = 0,
        cache_dir: str | Path | None = None,
        replay: Sequence[Record] = (),
        replay_share: ranges.Share = 0.5,
        accumulate: ranges.NumSteps = 1,
    ) -> None:
        super().__init__()
        if "train" in evaluation:
            raise ValueError("an evaluation set cannot be named 'train', like the training set")
        self.train = train
        self.evaluation = dict(evaluation)
        self.batch_size = batch_size
        self.max_eval_tokens = max_eval_tokens
        self.seed = seed
        self.num_workers = num_workers
        self.cache_dir = cache_dir
        self.replay, self.replay_share = replay, replay_share
        self.accumulate = accumulate
        if replay and batch_size * accumulate < 2:
            raise ValueError("replay needs at least 2 items per step; give a larger batch_size")
        self.train_set: EncodedSet | None = None  # the encoded training records
        self.evaluation_sets: dict[str, EncodedSet] = {}
        self._encoder: ChoiceEncoder | None = None
        self._share = ALL

    def notices(self, name: str) -> tuple[str, ...]:
        """Return notices about encoding a set (cuts, skips); "train" is the training set."""
        encoded = self.train_set if name == "train" else self.evaluation_sets.get(name)
        return encoded.notices if encoded is not None else ()

    def setup(self, stage: str | None = None) -> None:
        """Tokenise the sets that the stage needs.

        Raises:
            RecordError: If the tokenizer cannot encode an item.
            ValueError: If Lightning would shard the data again, a set is empty, or training items
                can only be scored.
        """
        if self.trainer is None:
            raise ValueError("use the datamodule with a Trainer, whose module does the tokenising")
        trainer = self.trainer
        self._loader_options = loader_options(self.num_workers, trainer.strategy.root_device)
        if trainer.world_size > 1 and trainer._accelerator_connector.use_distributed_sampler:
            raise ValueError(
                "set use_distributed_sampler=False on the Trainer: otherwise, with "
                f"{trainer.world_size} processes, Lightning shards batches that are already sharded"
            )
        module: Any = trainer.lightning_module
        module.evaluation_names = list(self.evaluation)
        share = Share(trainer.global_rank, trainer.world_size)
        self.encode(module.encoder(), share, with_train=stage in (None, "fit"))

    def encode(self, encoder: ChoiceEncoder, share: Share = ALL, with_train: bool = True) -> None:
        """Tokenise the sets for the batches of one of several processes; errors as in `setup`."""
        self._share = share
        if self.cache_dir is not None:
            encoder.cache_dir = self.cache_dir
        if encoder is not self._encoder:
            self._encoder, self.train_set, self.evaluation_sets = encoder, None, {}
        if not self.evaluation_sets:
            self.evaluation_sets = {
                name: self._encode(name, records) for name, records in self.evaluation.items()
            }
        if with_train and self.train is not None and self.train_set is None:
            self.train_set = self._encode("train", [*self.train, *self.replay])
            if num := len(self.train_set.needs_pll):
                self.train_set = None
                raise ValueError(
                    f"{num} training items have candidates that are not one token; "
                    "pseudo_log_likelihood can score such items but not train on them, so set "
                    "multi_token to skip"
                )

    def train_dataloader(self) -> ResumableLoader:
        """Return shuffled batches of the training items."""
        if self.train_set is None:
            raise ValueError("there are no training items; give `train` to fit a module")
        loader = ResumableLoader(
            _Identity(len(self.train_set)),
            self._sampler(self.train_set),
            collate_fn=self._collate,
            **self._loader_options,
        )
        return self.resumable(loader)

    def _collate(self, items: Sequence[int]) -> Batch:
        assert self.train_set is not None
        assert self.train is not None
        batch = self.train_set.collate(items)
        return {**batch, REPLAYED: batch["item"] >= len(self.train)} if self.replay else batch

    def largest_batches(self, epochs: int) -> tuple[Batch, Batch | None]:
        """Return the training batch and the evaluation batch with the most padded tokens.

        Training batches of the first `epochs` epochs are considered. Of batches with equally many
        tokens, the one with the longest text is larger. Call `encode` first.
        """

        def largest(encoded: EncodedSet, batches: Iterable[list[int]]) -> tuple[int, int, Batch]:
            sizes = {}
            for batch in batches:
                items = [item for item in batch if item != PADDING_ITEM]
                longest = int(encoded.lengths[items].max(initial=0))
                sizes[longest * int(encoded.num_sequences[items].sum()), longest] = batch
            size = max(sizes)
            return *size, encoded.collate(sizes[size])

        assert self.train_set is not None
        sampler, planned = self._sampler(self.train_set), []
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            planned += sampler.batches()
        measured = [
            largest(encoded, self._evaluation_batches(encoded))
            for encoded in self.evaluation_sets.values()
        ]
        *_, train = largest(self.train_set, planned)
        return train, max(measured, key=lambda candidate: candidate[:2])[2] if measured else None

    def _sampler(self, encoded: EncodedSet) -> EpochBatchSampler:
        assert self.train is not None
        size, replay, num_items = self.batch_size * self.accumulate, None, len(encoded)
        if self.replay:
            num_items = bisect_left(encoded.positions, len(self.train))
            replay = Replay.of(len(encoded) - num_items, self.replay_share, size)
        return EpochBatchSampler(
            num_items, self.batch_size, seed=self.seed, share=self._share, replay=replay
        )

    def _evaluation_batches(self, encoded: EncodedSet) -> list[list[int]]:
        return evaluation_batches(
            encoded.lengths,
            self.max_eval_tokens,
            num_sequences=encoded.num_sequences,
            share=self._share,
        )

    def val_dataloader(self) -> list[DataLoader[Any]]:
        """Return one loader for each evaluation set."""
        loaders: list[DataLoader[Any]] = []
        for encoded in self.evaluation_sets.values():
            # Its own generator: measuring must not move the random state of the training.
            loader = WorkerLoader(
                self._evaluation_batches(encoded),
                batch_size=None,
                collate_fn=encoded.collate,
                generator=torch.Generator().manual_seed(self.seed),
                **self._loader_options,
            )
            loaders.append(loader)
        return loaders

    test_dataloader = predict_dataloader = val_dataloader

    def _encode(self, name: str, records: Sequence[Record]) -> EncodedSet:
        assert self._encoder is not None
        encoded = refuse_empty(name, self._encoder.encode(records))
        for notice in encoded.notices:
            rank_zero_info(f"{name}: {notice}")
        return encoded


class _Identity(Dataset[int]):
    """A data set whose items are their indices; `collate` makes the batch of them."""

    def __init__(self, num_items: int) -> None:
        self.num_items = num_items

    def __getitem__(self, index: int) -> int:
        return index

    def __len__(self) -> int:
        return self.num_items
