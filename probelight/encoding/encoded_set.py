"""Sets of items as token ids, the batches by tokens made from them, and what all encoders share.

Which items are answered together is the same for any number of processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from probelight.io.errors import RecordError
from probelight.probes.record import MASK, Record, chance_of, check_mask

PADDING_ITEM = -1  # an index that stands for "no item": it fills uneven shards with weight 0
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Skipped:
    """A record that a tokenizer can't pose."""

    position: int  # among the records given
    name: str
    reason: str  # with the candidate and its pieces


def skip_notices(num_records: int, skipped: Sequence[Skipped]) -> tuple[str, ...]:
    """Say how many records were skipped for a candidate that is not one vocabulary item."""
    if not skipped:
        return ()
    names = ", ".join(record.name for record in skipped[:5]) + (", ..." if skipped[5:] else "")
    why = "because a candidate is not one vocabulary item"
    return (f"{len(skipped)} of {num_records} records were skipped, {why}: {names}",)


def white_space_notice(records: Sequence[Record]) -> tuple[str, ...]:
    """Say how many records have white space that likelihoods leave out.

    That is behind a choice, behind a stem without a mask, and around a whole sentence.
    """
    concerned = [
        record
        for record in records
        if (MASK not in record.stem and record.stem != record.stem.rstrip())
        or any(
            choice != (choice.rstrip() if record.stem else choice.strip())
            for choice in record.choices
        )
    ]
    if not concerned:
        return ()
    return (
        f"{len(concerned)} of {len(records)} items have white space at the end of a choice or stem "
        f"or around a sentence, which is not scored (first: {concerned[0].where}); minicons and "
        "lm-evaluation-harness score it if the tokenizer keeps it",
    )


@dataclass(frozen=True)
class Padding:
    """How sequences of one batch are made equally long: on the right, whatever the tokenizer says.

    Padding on the left would move a sequence to places that depend on the longest one of its batch,
    and a model with absolute positions would score it by its neighbours.
    """

    token_id: int
    type_id: int
    with_types: bool

    @classmethod
    def of(cls, tokenizer: Any) -> Padding:
        """Return the padding of a tokenizer; raise ValueError if it has no padding token."""
        if tokenizer.pad_token_id is None:
            raise ValueError(f"{type(tokenizer).__name__} has no padding token; set pad_token")
        return cls(
            token_id=tokenizer.pad_token_id,
            type_id=tokenizer.pad_token_type_id,
            with_types="token_type_ids" in tokenizer.model_input_names,
        )

    def apply(self, rows: Sequence[tuple[Ids, Ids]]) -> dict[str, Tensor]:
        """Return (ids, types) of rows as `input_ids`, `attention_mask`, `token_type_ids` (R, L)."""
        ids, types = zip(*rows, strict=True)
        attention = [np.ones(len(row), dtype=np.int64) for row in ids]
        batch = {"input_ids": stacked(ids, self.token_id), "attention_mask": stacked(attention, 0)}
        if self.with_types:
            batch["token_type_ids"] = stacked(types, self.type_id)
        return batch


@dataclass(frozen=True, kw_only=True)
class EncodedSet(ABC):
    """Items ready to be batched, N of them, in the order of their records.

    Every record given is named in exactly one of `positions`, `skipped` and `needs_pll`.

    Attributes:
        labels: (N,) index of the gold choice.
        lengths: (N,) tokens of the longest sequence of each item, special tokens included.
        num_sequences: (N,) sequences of each item: 1 for a masked sentence, K for K pairs.
        positions: Position of each item's record among those given.
        skipped: Records left out, with the reason.
        needs_pll: Positions of the records to be scored by pseudo-log-likelihood.
        notices: What a reader of the results should know (cuts, skips), one sentence each.
    """

    labels: Ids
    lengths: Ids
    num_sequences: Ids
    positions: list[int]
    skipped: list[Skipped] = field(default_factory=list)
    needs_pll: list[int] = field(default_factory=list)
    notices: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def collate(self, indices: Sequence[int]) -> dict[str, Tensor]:
        """Make a batch of items (B,); `PADDING_ITEM` becomes a copy of a real one with weight 0.

        Returns:
            `labels` (B,), `weights` (B,) float, `item` (B,) the position of the record among those
            given (-1 for padding), `choice_mask` (B, K), and the inputs of the model.
        """
        padded_items = np.asarray(indices, dtype=np.int64)
        is_real = padded_items != PADDING_ITEM
        items = np.where(is_real, padded_items, padded_items[is_real][0] if is_real.any() else 0)
        positions = np.where(
            is_real, np.asarray(self.positions, dtype=np.int64)[items], PADDING_ITEM
        )
        return {
            **self.inputs(items),
            "labels": torch.from_numpy(self.labels[items]),
            "weights": torch.from_numpy(is_real.astype(np.float32)),
            "item": torch.from_numpy(positions),
        }

    @abstractmethod
    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """The model's inputs and `choice_mask` for (B,) items, none of them padding."""


@dataclass(frozen=True, kw_only=True)
class CandidateSet(EncodedSet):
    """Items whose choices are entries of a vocabulary, or positions in a list of words.

    Attributes:
        candidate_ids: (N, K) the entries, 0 where `choice_mask` is False.
        choice_mask: (N, K) which choices exist.
    """

    candidate_ids: Ids
    choice_mask: NDArray[np.bool_]

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return `candidate_ids` and `choice_mask` (B, K); a set adds its texts."""
        return {
            "candidate_ids": torch.from_numpy(self.candidate_ids[items]),
            "choice_mask": torch.from_numpy(self.choice_mask[items]),
        }


def stacked(rows: Iterable[Ids], fill: int) -> Tensor:
    """Stack rows of unequal length into one tensor (R, L), filled on the right."""
    return pad_sequence(list(map(torch.from_numpy, rows)), batch_first=True, padding_value=fill)


def existing_choices(records: Sequence[Record]) -> NDArray[np.bool_]:
    """Return which choices exist, (N, K): an item may have fewer than the most choices."""
    sizes = np.array([len(record.choices) for record in records], dtype=np.int64)
    return np.arange(sizes.max(initial=0)) < sizes[:, None]


def distinct(codes: Ids, exists: NDArray[np.bool_]) -> tuple[Ids, Tensor]:
    """Return the distinct codes (P,) of choices (B, K), and the index (B, K) of each choice's code.

    Choices that do not exist have index 0.
    """
    distinct_codes, code_index = np.unique(codes[exists], return_inverse=True)
    index = np.zeros(codes.shape, dtype=np.int64)
    index[exists] = code_index
    return distinct_codes, torch.from_numpy(index)


def distinct_texts(
    records: Sequence[Record], stem: Callable[[Record], str], num_choices: int | None
) -> tuple[list[str], Ids, Ids]:
    """Return the distinct texts of records; which are the questions (N,) and the answers (N, K).

    -1 is where there is no choice. With `num_choices` each record gets so many, the rest empty; one
    with more is a `RecordError`.
    """
    width = num_choices or max((len(record.choices) for record in records), default=0)
    text_index: dict[str, int] = {}
    stems = np.zeros(len(records), dtype=np.int64)
    choices = np.full((len(records), width), -1, dtype=np.int64)
    for row, record in enumerate(records):
        if len(record.choices) > width:
            raise RecordError(
                f"{record.where}: {len(record.choices)} choices, more than num_choices={width}"
            )
        empty = [""] * (width - len(record.choices) if num_choices else 0)
        stems[row] = text_index.setdefault(stem(record), len(text_index))
        for column, choice in enumerate([*record.choices, *empty]):
            choices[row, column] = text_index.setdefault(choice, len(text_index))
    return list(text_index), stems, choices


def padding_notice(records: Sequence[Record], num_choices: int | None) -> tuple[str, ...]:
    """Say how many questions got empty choices that compete, and what that makes of chance."""
    if num_choices is None:
        return ()
    num_padded = sum(len(record.choices) < num_choices for record in records)
    if not num_padded:
        return ()
    return (
        f"{num_padded} of {len(records)} questions have fewer than {num_choices} choices and were "
        f"filled up with empty ones, which compete (num_choices {num_choices}): chance is "
        f"{1 / num_choices:.1%} among all choices, {chance_of(records):.1%} among the real ones",
    )


def masked_stem(record: Record) -> str:
    """Return the sentence of an MC-MLM record; raise RecordError unless it has one mask."""
    try:
        check_mask(record.stem)
    except RecordError as error:
        raise RecordError(f"{record.where}: {error}") from None
    return record.stem


class ChoiceEncoder(Protocol):
    """The tokenising half of a module: what `ChoiceModule.encoder()` returns.

    Attributes:
        cache_dir: Folder in which tokens are kept between runs; None for no cache.
    """

    cache_dir: str | Path | None

    def encode(self, records: Sequence[Record]) -> EncodedSet:
        """Tokenise records; raise RecordError, which names it, for one that cannot be posed."""


class EncoderAround:
    """An encoder that poses records by another one, and keeps tokens where that does."""

    def __init__(self, encoder: ChoiceEncoder) -> None:
        self.encoder = encoder

    @property
    def cache_dir(self) -> str | Path | None:
        """Folder in which tokens are kept between runs; None for no cache."""
        return self.encoder.cache_dir

    @cache_dir.setter
    def cache_dir(self, folder: str | Path | None) -> None:
        self.encoder.cache_dir = folder


def token_budget_batches(
    lengths: ArrayLike, max_tokens: int, order: ArrayLike, num_sequences: ArrayLike | None = None
) -> list[list[int]]:
    """Cut `order` into batches whose longest sequence times their sequences fits `max_tokens`.

    `lengths` (N,) are those of each item's longest sequence, `num_sequences` (N,) one each if None.
    An item that is too large is alone in its batch.
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
    """Return one process's batches for measuring: long items first, similar lengths together.

    Processes take whole batches in turn, so every item is computed in the same company, and has
    bit for bit the same scores, whatever the number of processes. A process that comes out short
    gets a batch of padding, because all must take equally many steps.
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    batches = token_budget_batches(lengths, max_tokens, order, num_sequences)
    batches += [[PADDING_ITEM]] * (-len(batches) % share.num_replicas)
    return batches[share.rank :: share.num_replicas]
