"""Texts that begin alike, packed into sequences in which each beginning is read once.

The choices of an item begin alike: with its stem. That beginning is read once, and every choice
goes on from it, in a segment of its own that sees the beginning and itself. Several items stand
behind each other in one row, so that little of a batch is padding. What many items begin with, such
as the examples of a few-shot prompt, is a prefix: it is read once for all of their rows.

Shapes: B items, K choices, P distinct texts, G rows, L tokens, T tokens of the longest answer, R
distinct places that are read, F prefixes, N items of a set.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapreplace

import numpy as np
import torch
from torch import Tensor

from probelight.encoding.encoded_set import Ids, distinct, stacked
from probelight.encoding.likelihood import LikelihoodSet
from probelight.io.ranges import MAX_CHOICES

PADDING = -1  # the segment of places that hold no token
SHARED = 0  # the segment of what the texts of a row's first item have in common
# Segments are numbered item by item; the first of an item is what its texts have in common.
_STRIDE = MAX_CHOICES + 1
# Attention grows with the square of a row's length: longer rows cost more than their padding.
ROW_TOKENS = 384
MIN_PREFIX = 16


@dataclass(frozen=True, kw_only=True)
class Packing:
    """How texts are laid out.

    Attributes:
        packs: Whether a row holds several segments; else each text is a row of its own.
        reads_prefixes: Whether what several rows begin with is read before them: what many items
            share if texts are packed, else what the texts of an item share.
        min_prefix: Fewest tokens of a prefix: reading it costs a call of the model.
        row_tokens: Most tokens of a row of several items, if texts are packed; 0 for a row per
            item.
        reads_end: Whether the last token of each text is read, or only predicted.
    """

    packs: bool = True
    reads_prefixes: bool = False
    min_prefix: int = 1
    row_tokens: int = 0
    reads_end: bool = False


@dataclass(frozen=True, kw_only=True)
class PackedSet(LikelihoodSet):
    """Texts that are scored from a token to their end, packed by what they share."""

    packing: Packing

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return what `packed` makes of the items' texts, `pair_index` and `choice_mask` (B, K)."""
        choices = self.choice_text[items]
        exists = choices >= 0
        text_indices, pair_index = distinct(choices, exists)
        offset = len(self.template.special_ids[0])
        placed: set[int] = set()
        texts_by_item = []
        for indices, is_choice in zip(pair_index.numpy(), exists, strict=True):
            item_texts = [p for p in dict.fromkeys(indices[is_choice].tolist()) if p not in placed]
            placed.update(item_texts)  # a text of two items is read with the first
            texts_by_item.append(item_texts)
        return {
            **packed(
                [self.template.assemble(self.texts[i].ids)[0] for i in text_indices],
                [offset + self.texts[i].begin for i in text_indices],
                [item_texts for item_texts in texts_by_item if item_texts],
                self.packing,
                self.padding.token_id,
            ),
            "pair_index": pair_index,
            "choice_mask": torch.from_numpy(exists),
        }


def packed(
    texts: Sequence[Ids],
    begins: Sequence[int],
    texts_by_item: Sequence[Sequence[int]],
    packing: Packing,
    pad_token_id: int = 0,
) -> dict[str, Tensor]:
    """Return packed texts and where their answers' tokens are predicted.

    - `input_ids`, `position_ids`, `segments` (G, L): tokens, their places in their own text, and
      whom they see, see `visible`.
    - `prefix_ids` (F, L) and `prefix_sizes` (F,); `row_prefix` (G,): which of them stands before a
      row, -1 for none. Rows with the same prefix are next to each other, the shortest first.
    - `read_row`, `read_place` (R,): the places that are read, row by row.
    - `gold` and `reads` (P, T): the tokens of each answer, and which of the R places predicts them;
      `token_mask` (P, T) says where there is one.
    - If ends are read, in place of these, `ends` (P, 1): which of the R places is the last token of
      each text.

    Args:
        texts: The tokens of P distinct texts.
        begins: Where the answer begins in each.
        texts_by_item: The texts of each item, each text once.
        packing: How they are laid out.
        pad_token_id: The token of places that hold none.
    """
    ends = [len(text) - (not packing.reads_end) for text in texts]
    starts = [end - 1 for end in ends] if packing.reads_end else [begin - 1 for begin in begins]
    rows = _Rows([text[:end] for text, end in zip(texts, ends, strict=True)], starts)
    rows.lay_out(texts_by_item, packing)
    places_by_text = [
        [rows.where(text, token) for token in range(start, end)]
        for text, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
    numbers = {p: n for n, p in enumerate(sorted({p for places in places_by_text for p in places}))}
    read = torch.tensor(list(numbers)).reshape(-1, 2)
    reads = stacked([np.array([numbers[p] for p in places]) for places in places_by_text], 0)
    inputs = {
        **rows.tensors(pad_token_id),
        "read_row": read[:, 0],
        "read_place": read[:, 1],
    }
    if packing.reads_end:
        return {**inputs, "ends": reads}
    gold = [text[begin:] for text, begin in zip(texts, begins, strict=True)]
    mask = stacked([np.ones_like(ids) for ids in gold], 0).bool()
    return {**inputs, "gold": stacked(gold, 0), "reads": reads, "token_mask": mask}


def balanced_rows(sizes: Sequence[int], most: int) -> list[list[int]]:
    """Return the items of each row by number: about as many tokens in each, so little padding.

    A row has at most so many tokens, or one item.
    """
    longest_first = sorted(range(len(sizes)), key=lambda number: -sizes[number])
    for num_rows in range(-(-sum(sizes) // max(most, 1)), len(sizes)):
        rows: list[list[int]] = [[] for _ in range(num_rows)]
        filled = [(0, row) for row in range(num_rows)]
        for number in longest_first:
            size, row = filled[0]
            rows[row].append(number)
            heapreplace(filled, (size + sizes[number], row))
        if max(filled)[0] <= max(most, sizes[longest_first[0]]):
            return [sorted(row) for row in rows]
    return [[number] for number in range(len(sizes))]


@dataclass
class _PackedRow:
    """Tokens behind each other, their places in their own texts, and their segments."""

    prefix: int  # the number of what stands before it, -1 for nothing
    ids: list[Ids] = field(default_factory=list)
    positions: list[Ids] = field(default_factory=list)
    segments: list[Ids] = field(default_factory=list)
    size: int = 0
    num_items: int = 0

    def add(self, ids: Ids, begin: int, segment: int) -> int:
        """Add tokens of a text from its place `begin` on; return the column of the first."""
        self.ids.append(ids)
        self.positions.append(np.arange(begin, begin + len(ids)))
        self.segments.append(np.full(len(ids), self.num_items * _STRIDE + segment))
        self.size += len(ids)
        return self.size - len(ids)


class _Rows:
    """Rows of packed texts, and where each text's tokens are in them.

    `texts` are what is read of each text; its first token that is read is at `starts`.
    """

    def __init__(self, texts: Sequence[Ids], starts: Sequence[int]) -> None:
        self._texts, self._starts = texts, starts
        self._rows: list[_PackedRow] = []
        self._prefixes: list[Ids] = []
        # Of each text its row, and of its shared and its own tokens the first and its column.
        self._places: dict[int, tuple[int, tuple[int, int], tuple[int, int]]] = {}

    def lay_out(self, texts_by_item: Sequence[Sequence[int]], packing: Packing) -> None:
        """Lay out the texts of all items."""
        if packing.packs and packing.row_tokens:
            texts_by_item = self._with_same_stems(texts_by_item, packing.row_tokens)
        groups: dict[bytes | int, list[int]] = defaultdict(list)
        for number, item_texts in enumerate(texts_by_item):
            head = self._texts[item_texts[0]][: packing.min_prefix].tobytes()
            groups[head if packing.packs else number].append(number)
        without_prefix: list[int] = []
        for items in groups.values():
            texts = [index for number in items for index in texts_by_item[number]]
            most = min(self._starts[index] for index in texts)
            prefix = self._num_shared(texts, most) if packing.reads_prefixes else 0
            if prefix < packing.min_prefix or (packing.packs and len(items) == 1):
                without_prefix += items
                continue
            self._prefixes.append(self._texts[texts[0]][:prefix])
            self._fill([texts_by_item[number] for number in items], packing, prefix)
        self._fill([texts_by_item[number] for number in sorted(without_prefix)], packing)

    def _with_same_stems(
        self, texts_by_item: Sequence[Sequence[int]], most: int
    ) -> list[list[int]]:
        """Return the texts of items, those with the same stem as one of at most so many tokens."""
        merged: list[list[int]] = []
        texts_by_stem: dict[bytes, list[int]] = {}
        for item_texts in texts_by_item:
            size = min(self._starts[index] for index in item_texts) + 1  # of the stem
            stem = self._texts[item_texts[0]][:size].tobytes()
            texts = [*texts_by_stem.get(stem, []), *item_texts]
            num_tokens = size + sum(len(self._texts[index]) - size for index in texts)
            if size > 1 and stem in texts_by_stem and num_tokens <= most:
                texts_by_stem[stem] += item_texts
            else:
                texts_by_stem[stem] = [*item_texts]
                merged.append(texts_by_stem[stem])
        return merged

    def _num_shared(self, texts: Sequence[int], most: int) -> int:
        """Return how many tokens some texts have in common at their beginning."""
        beginnings = np.stack([self._texts[index][:most] for index in texts])
        differs = (beginnings != beginnings[0]).any(axis=0)
        return int(differs.argmax()) if differs.any() else most

    def _fill(
        self, texts_by_item: Sequence[Sequence[int]], packing: Packing, prefix: int = 0
    ) -> None:
        """Add rows of items behind the last prefix, of so many tokens."""
        if not packing.packs:
            texts_by_item = [[index] for item_texts in texts_by_item for index in item_texts]
        sizes = [[len(self._texts[index]) for index in texts] for texts in texts_by_item]
        # With more in common than its tokens that are read, a text would have no place of its own.
        shared = [
            self._num_shared(texts, min(lengths))
            for texts, lengths in zip(texts_by_item, sizes, strict=True)
        ]
        widths = [
            size - prefix + sum(lengths) - size * len(lengths)
            for size, lengths in zip(shared, sizes, strict=True)
        ]
        most = packing.row_tokens if packing.packs else 0
        rows = balanced_rows(widths, most)
        for row_items in sorted(rows, key=lambda items: sum(widths[number] for number in items)):
            self._rows.append(_PackedRow(len(self._prefixes) - 1 if prefix else -1))
            for number in row_items:
                self._add(len(self._rows) - 1, texts_by_item[number], prefix, shared[number])

    def _add(self, row: int, item_texts: Sequence[int], prefix: int, shared: int) -> None:
        """Add the texts of an item to a row; `shared` counts the prefix too."""
        segments = self._rows[row]
        column = segments.add(self._texts[item_texts[0]][prefix:shared], prefix, SHARED)
        for segment, index in enumerate(item_texts, start=1):
            own_column = segments.add(self._texts[index][shared:], shared, segment)
            self._places[index] = (row, (prefix, column), (shared, own_column))
        segments.num_items += 1

    def where(self, index: int, token: int) -> tuple[int, int]:
        """Return row and column of a token of a text, behind its prefix."""
        row, (prefix, column), (shared, own_column) = self._places[index]
        return row, column + token - prefix if token < shared else own_column + token - shared

    def tensors(self, token_id: int) -> dict[str, Tensor]:
        """Return rows and prefixes as the inputs of a batch."""
        ids, positions, segments = (
            [np.concatenate(arrays) for arrays in columns]
            for columns in zip(*((r.ids, r.positions, r.segments) for r in self._rows), strict=True)
        )
        prefixes = [*self._prefixes, np.zeros(0, dtype=np.int64)]
        return {
            "input_ids": stacked(ids, token_id),
            "position_ids": stacked(positions, 0),
            "segments": stacked(segments, PADDING),
            "row_prefix": torch.tensor([row.prefix for row in self._rows]),
            "prefix_ids": stacked(prefixes, token_id),
            "prefix_sizes": torch.tensor([len(prefix) for prefix in prefixes]),
        }


def visible(segments: Tensor, dtype: torch.dtype, prefix_size: int = 0) -> Tensor:
    """Return the mask (G, 1, L, prefix + L) to add to attention scores: 0 where a place is seen.

    A place sees the prefix, and what is before it in its own segment and in its item's shared one.
    Padding sees padding, so that no row of a softmax is empty.
    """
    items = segments.div(_STRIDE, rounding_mode="floor")
    is_same = segments[:, :, None] == segments[:, None, :]
    is_shared = (items[:, :, None] == items[:, None, :]) & (segments % _STRIDE == 0)[:, None, :]
    is_visible = (is_same | is_shared).tril()
    # The least number of half precision: autocast would make infinity of a lesser one.
    hidden = torch.full((), torch.finfo(torch.float16).min, dtype=dtype, device=segments.device)
    mask = torch.where(is_visible, torch.zeros_like(hidden), hidden)
    return torch.nn.functional.pad(mask, (prefix_size, 0))[:, None]
