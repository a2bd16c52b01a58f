"""Choices behind what they share, in one sequence per item, for models that are trained on them.

The choices of an item begin alike: with its stem. That beginning is read once, and every choice
goes on from it, in a segment of its own that sees the beginning and itself.

Shapes: B items, K choices, P distinct texts, G sequences, L tokens, T tokens of the longest answer,
R distinct places that are read, N items of a set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from probelight.encoding.causal import ContinuationEncoder, ContinuationSet
from probelight.encoding.encoded_set import Ids, distinct, stacked
from probelight.probes.record import Record

PADDING = -1  # the segment of places that hold no token
SHARED = 0  # the segment of what the choices of an item have in common


@dataclass(frozen=True, kw_only=True)
class PackedSet(ContinuationSet):
    """Texts that are scored from a token to their end, packed by what an item's texts share."""

    packs: bool = True  # else each text is a sequence of its own
    reads_end: bool = False  # whether the last token of each text is read, or only predicted

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return the packed texts and where their answers' tokens are predicted.

        - `input_ids`, `position_ids`, `segments` (G, L): tokens, their places in their own text,
          and whom they see: `SHARED` is seen by all behind it, another segment by itself alone.
        - `read_row`, `read_place` (R,): the places that are read, sequence by sequence.
        - `gold` and `reads` (P, T): the tokens of each answer, and which of the R places predicts
          them; `token_mask` (P, T) says where there is one.
        - With `reads_end`, in place of these, `ends` (P, 1): which of the R places is the last
          token of each text.
        - `pair_index` and `choice_mask` (B, K).
        """
        choices = self.choice_text[items]
        exists = choices >= 0
        text_indices, pair_index = distinct(choices, exists)
        offset = len(self.template.special_ids[0])
        texts = [self.template.assemble(self.texts[i].ids)[0] for i in text_indices]
        begins = [offset + self.texts[i].begin for i in text_indices]
        rows = _Rows()
        if self.packs:
            placed: set[int] = set()
            for indices, is_choice in zip(pair_index.numpy(), exists, strict=True):
                item_texts = [
                    p for p in dict.fromkeys(indices[is_choice].tolist()) if p not in placed
                ]
                placed.update(item_texts)
                rows.add(item_texts, [texts[p] for p in item_texts], self.reads_end)
        else:
            for index, text in enumerate(texts):
                rows.add([index], [text], self.reads_end)
        sizes = [len(text) for text in texts]
        starts = [size - 1 for size in sizes] if self.reads_end else [begin - 1 for begin in begins]
        ends = sizes if self.reads_end else [size - 1 for size in sizes]
        places_by_text = [
            [rows.where(text, token) for token in range(start, end)]
            for text, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]
        distinct_places = sorted({p for places in places_by_text for p in places})
        numbers = {p: number for number, p in enumerate(distinct_places)}
        read = torch.tensor(list(numbers)).reshape(-1, 2)
        reads = stacked([np.array([numbers[p] for p in places]) for places in places_by_text], 0)
        answer_inputs = {"ends": reads}
        if not self.reads_end:
            gold = [text[begin:] for text, begin in zip(texts, begins, strict=True)]
            exist = stacked([np.ones_like(ids) for ids in gold], 0).bool()
            answer_inputs = {"gold": stacked(gold, 0), "reads": reads, "token_mask": exist}
        return {
            **rows.tensors(self.padding.token_id),
            "read_row": read[:, 0],
            "read_place": read[:, 1],
            **answer_inputs,
            "pair_index": pair_index,
            "choice_mask": torch.from_numpy(exists),
        }


class _Rows:
    """Sequences that are packed one after the other, and where each text's tokens are in them."""

    def __init__(self) -> None:
        self.ids: list[Ids] = []
        self.positions: list[Ids] = []
        self.segments: list[Ids] = []
        self._texts: dict[int, tuple[int, int, int]] = {}  # row, tokens shared, begin of the rest

    def add(self, indices: Sequence[int], texts: Sequence[Ids], reads_end: bool) -> None:
        """Add a sequence of texts, each by its index; nothing if there are none."""
        if not texts:
            return
        sizes = [len(text) - (not reads_end) for text in texts]
        # With more in common than its tokens that are read, a text would have no place of its own.
        shared = min(sizes)
        beginnings = np.stack([text[:shared] for text in texts])
        differs = (beginnings != beginnings[0]).any(axis=0)
        shared = int(differs.argmax()) if differs.any() else shared
        ids, positions = [texts[0][:shared]], [np.arange(shared)]
        segments = [np.full(shared, SHARED)]
        begin = shared
        for index, text, size in zip(indices, texts, sizes, strict=True):
            self._texts[index] = (len(self.ids), shared, begin)
            ids.append(text[shared:size])
            positions.append(np.arange(shared, size))
            segments.append(np.full(size - shared, len(segments)))
            begin += size - shared
        self.ids.append(np.concatenate(ids))
        self.positions.append(np.concatenate(positions))
        self.segments.append(np.concatenate(segments))

    def where(self, index: int, token: int) -> tuple[int, int]:
        """Return row and column of a token of a text."""
        row, shared, begin = self._texts[index]
        return row, token if token < shared else begin + token - shared

    def tensors(self, token_id: int) -> dict[str, Tensor]:
        return {
            "input_ids": stacked(self.ids, token_id),
            "position_ids": stacked(self.positions, 0),
            "segments": stacked(self.segments, PADDING),
        }


class PackedEncoder(ContinuationEncoder):
    """Encodes records as `ContinuationEncoder`, and packs them, see `PackedSet`.

    Args:
        tokenizer: A fast one.
        max_length: Longest text in tokens; what is packed of an item may be longer.
        packs: Whether the texts of an item are packed; else each is a sequence of its own.
        reads_end: Whether a text's last token is read too, for a head on it.
    """

    makes = PackedSet

    def __init__(
        self, tokenizer: Any, max_length: int = 256, packs: bool = True, reads_end: bool = False
    ) -> None:
        super().__init__(tokenizer, max_length)
        self.packs, self.reads_end = packs, reads_end

    def encode(self, records: Sequence[Record]) -> PackedSet:
        """Tokenise records, as `ContinuationEncoder` does."""
        encoded = super().encode(records)
        assert isinstance(encoded, PackedSet)
        sizes = encoded.num_sequences if self.packs else (encoded.choice_text >= 0).sum(axis=1)
        return replace(encoded, packs=self.packs, reads_end=self.reads_end, num_sequences=sizes)


def visible(segments: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the mask (G, 1, L, L) to add to attention scores: 0 where a place sees another.

    A place sees what is before it in its own segment and in the shared one. Padding sees padding,
    so that no row of a softmax is empty.
    """
    is_same = segments[:, :, None] == segments[:, None, :]
    is_visible = (is_same | (segments == SHARED)[:, None, :]).tril()
    hidden = torch.full((), torch.finfo(dtype).min, dtype=dtype, device=segments.device)
    return torch.where(is_visible, torch.zeros_like(hidden), hidden)[:, None]
