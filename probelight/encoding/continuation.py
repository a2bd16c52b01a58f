"""Records to texts of which a causal language model scores the end: the answer and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from probelight.encoding.encoded_set import Ids, Padding
from probelight.encoding.likelihood import (
    TOO_LONG,
    FilledText,
    LikelihoodEncoder,
    LikelihoodSet,
    Spans,
    tokens_of,
)
from probelight.encoding.special_tokens import Template
from probelight.io.errors import RecordError
from probelight.probes.record import MASK, Record


@dataclass(frozen=True, kw_only=True)
class ContinuationSet(LikelihoodSet):
    """Texts that are scored from a token on to their end; the first token of all is given.

    `num_sequences` counts texts of the item's longest length that take as long as the item, whose
    texts share their beginning.
    """

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """As `LikelihoodSet.inputs`, and what the distinct texts have in common.

        `shared` (P,) is how many tokens at its beginning a text shares with the other choices of
        its item, `owner` (P,) the text that stands for all that begin with the same ones.
        """
        batch = super().inputs(items)
        ids, lengths = batch["input_ids"].numpy(), batch["attention_mask"].sum(dim=1).numpy()
        shared = np.zeros(len(ids), dtype=np.int64)
        for places, exists in zip(batch["pair_index"], batch["choice_mask"], strict=True):
            own = np.unique(places[exists].numpy())
            own = own[shared[own] == 0]  # a text of two items is run with the first
            if len(own):
                shared[own] = shared_beginning(ids[own], lengths[own])
        owners: dict[tuple[int, bytes], int] = {}
        keys = [
            (size, row[:size].tobytes()) for row, size in zip(ids, shared.tolist(), strict=True)
        ]
        owner = [owners.setdefault(key, place) for place, key in enumerate(keys)]
        return {**batch, "shared": torch.from_numpy(shared), "owner": torch.tensor(owner)}


class ContinuationEncoder(LikelihoodEncoder):
    """Encodes each choice in its place, to be scored from the choice to the end of the text.

    The text is tokenised whole and cut at the boundary, which lies before the white space in front
    of the choice; a token that straddles it belongs to the choice. The tokenizer's own special
    tokens at the beginning of a text are kept, those at its end are not. Where it sets none, a text
    that is scored from its first token gets the tokenizer's BOS (or EOS) token before it.

    Args:
        tokenizer: A fast Hugging Face tokenizer, with or without a padding token.
        max_length: Most tokens of a text, special tokens included. Of a longer one the beginning is
            cut, down to one token; what is scored stays whole.
    """

    makes = ContinuationSet

    def __init__(self, tokenizer: Any, max_length: int = 256) -> None:
        super().__init__(tokenizer, max_length, beginning_of(tokenizer), right_padding(tokenizer))

    def _num_sequences(self, num_scored: Ids, lengths: Ids) -> Ids:
        return 1 + num_scored // np.maximum(lengths, 1)

    def _fill(self, stem: str, choice: str) -> tuple[str, int, int]:
        before, mask, after = stem.rpartition(MASK)
        if not mask:
            before, after = stem, ""
        begin = len(before.rstrip())
        gap = (before[begin:] if mask else " ") if begin else ""
        text = before[:begin] + gap + choice.strip()
        return text + after, begin, len(text)

    def _window(
        self, ids: Ids, spans: Spans, answer: tuple[int, int], owner: tuple[Record, str]
    ) -> FilledText:
        record, choice = owner
        first, last = tokens_of(spans, answer)
        if first == last:
            raise RecordError(f"{record.where}: the choice {choice!r} has no tokens")
        first = first if answer[0] else 0
        num_scored = len(ids) - first
        room = self.max_length - self.template.num_special - num_scored
        if room < (self.template.num_special == 0):
            raise RecordError(
                f"{record.where}: {num_scored} tokens are scored of the choice {choice[:60]!r} and "
                f"what follows it, more than fit into max_length={self.max_length}: {TOO_LONG}"
            )
        kept = min(first, room)
        start = kept == 0 and self.template.num_special == 0
        given = start_token(self.tokenizer) if start else ids[first - kept : first]
        return FilledText(
            np.concatenate([given, ids[first:]]), len(given), len(given) + num_scored, kept < first
        )


def beginning_of(tokenizer: Any) -> Template:
    """The special tokens that a tokenizer sets before a text; those behind it are left out."""
    own, none = Template.of(tokenizer, 1), np.zeros(0, dtype=np.int64)
    return Template((own.parts[0], none), (own.part_types[0], none), own.text_types)


def right_padding(tokenizer: Any) -> Padding:
    """Padding for models that never look at it, whether or not the tokenizer has a token for it."""
    token_id = tokenizer.pad_token_id
    return Padding(0 if token_id is None else token_id, type_id=0, with_types=False)


def start_token(tokenizer: Any) -> Ids:
    """(1,) what stands before the first token of a text where the tokenizer itself sets nothing.

    Raises:
        RecordError: If the tokenizer has neither a BOS nor an EOS token.
    """
    for token_id in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if token_id is not None:
            return np.array([token_id], dtype=np.int64)
    raise RecordError(
        f"{type(tokenizer).__name__} has neither a BOS nor an EOS token to stand before a text "
        "that is scored from its first word"
    )


def shared_beginning(ids: Ids, lengths: Ids) -> Ids:
    """(R,) how many tokens each of an item's texts (R, L) is run together with the others.

    That is the common beginning, without the last token, which is only ever predicted; a whole
    text where there is none in common.
    """
    same = (ids == ids[0]).all(axis=0)[: lengths.min()]
    common = int(same.argmin()) if not same.all() else len(same)
    return np.full(len(ids), min(common, int(lengths.max()) - 1)) if common else lengths - 1
