"""MC-QA records to token ids: a pair of question and answer per choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from probelight.encoding.encoded_set import (
    EncodedSet,
    Ids,
    Padding,
    distinct,
    distinct_texts,
    padding_notice,
)
from probelight.encoding.tokens import (
    Template,
    TokenStore,
    cut,
    longest_first,
    tokenise,
    unknown_notice,
)
from probelight.probes.record import MASK, Record


@dataclass(frozen=True, kw_only=True)
class SentenceSet(EncodedSet):
    """Question-answer pairs, assembled from the tokens of distinct questions and answers."""

    padding: Padding
    store: TokenStore
    stem_text: Ids  # (N,) index in `store` of the question
    choice_text: Ids  # (N, K) those of the answers, -1 for no choice
    template: Template
    room: int  # most tokens of question and answer together
    odd_to_first: bool  # see `longest_first`
    truncation_side: str  # "right" or "left"

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return `input_ids` etc. (P, L) of distinct pairs; `pair_index`, `choice_mask` (B, K)."""
        choices = self.choice_text[items]
        mask = choices >= 0
        codes = self.stem_text[items, None] * len(self.store) + choices
        pairs, pair_index = distinct(codes, mask)
        rows = []
        for code in pairs:
            first, second = (self.store[text] for text in divmod(int(code), len(self.store)))
            keep = longest_first(len(first), len(second), self.room, self.odd_to_first)
            pieces = (
                cut(text, num, self.truncation_side)
                for text, num in zip((first, second), keep, strict=True)
            )
            rows.append(self.template.assemble(*pieces))
        return {
            **self.padding.apply(rows),
            "pair_index": pair_index,
            "choice_mask": torch.from_numpy(mask),
        }


class SentenceChoiceEncoder:
    """Encodes MC-QA records: `[CLS] question [SEP] answer [SEP]` for each choice.

    The ids equal `tokenizer([question], [answer], truncation="longest_first")`. An MC-MLM record is
    posed with its mask in the question (Talmor 2020, figure 2D). `num_choices` pads every record to
    so many choices with empty ones, scored like any other (Richardson 2020); None leaves them as
    they are.
    """

    def __init__(
        self,
        tokenizer: Any,
        max_length: int = 256,
        num_choices: int | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.max_length = min(max_length, tokenizer.model_max_length)
        self.num_choices = num_choices
        self.cache_dir: str | Path | None = None
        self.template = Template.of(tokenizer, 2)
        self.padding = Padding.of(tokenizer)
        if self.max_length < self.template.num_special + 2:
            raise ValueError(f"max_length={max_length} leaves no room for a question and an answer")

    def encode(self, records: Sequence[Record]) -> EncodedSet:
        """Tokenise records; refuse one with more choices than `num_choices`."""
        mask = self.tokenizer.mask_token or MASK
        texts, stems, choices = distinct_texts(
            records, lambda record: record.stem.replace(MASK, mask), self.num_choices
        )
        store, notices = tokenise(self.tokenizer, texts, self.cache_dir)
        notices += padding_notice(records, self.num_choices)
        room = self.max_length - self.template.num_special
        sizes = np.append(store.lengths(), 0)  # -1, no choice, has no tokens
        longest = (sizes[stems][:, None] + sizes[choices]).max(axis=1, initial=0)
        if num_cut := int((longest > room).sum()):
            notices += (
                f"{num_cut} of {len(records)} questions were cut to {self.max_length} tokens per "
                "pair, the longer of question and answer first",
            )
            notices += self._lost_masks(store, stems, choices, room)
        questions = np.column_stack([stems, choices]).tolist()
        notices += unknown_notice(self.tokenizer, store, questions, "questions")
        return SentenceSet(
            labels=np.array([record.answer for record in records], dtype=np.int64),
            lengths=np.minimum(longest, room) + self.template.num_special,
            num_sequences=(choices >= 0).sum(axis=1),
            positions=list(range(len(records))),
            notices=notices,
            padding=self.padding,
            store=store,
            stem_text=stems,
            choice_text=choices,
            template=self.template,
            room=room,
            odd_to_first=not self.tokenizer.is_fast,
            truncation_side=self.tokenizer.truncation_side,
        )

    def _lost_masks(
        self, store: TokenStore, stems: Ids, choices: Ids, room: int
    ) -> tuple[str, ...]:
        """Say how many questions lost their mask when they were cut."""
        num_lost = 0
        for stem, answers in zip(stems, choices, strict=True):
            ids = store[stem]
            masks = np.flatnonzero(ids == self.tokenizer.mask_token_id)
            if not len(masks):
                continue
            keep = min(
                longest_first(len(ids), len(store[choice]), room, not self.tokenizer.is_fast)[0]
                for choice in answers[answers >= 0]
            )
            window = cut(np.arange(len(ids)), keep, self.tokenizer.truncation_side)
            num_lost += not np.isin(masks, window).all()
        if not num_lost:
            return ()
        return (f"{num_lost} of {len(stems)} questions lost their mask when they were cut",)
