"""MC-MLM records to token ids: masked sentences and the vocabulary items of their candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probelight.encoding.candidates import Blank, CandidateTable, MultiToken
from probelight.encoding.encoded_set import (
    CandidateSet,
    EncodedSet,
    Ids,
    Padding,
    Skipped,
    masked_stem,
    skip_notices,
)
from probelight.encoding.tokens import Template, TokenStore, longest_first, unknown_notice
from probelight.io.errors import RecordError
from probelight.probes.record import Record


@dataclass(frozen=True, kw_only=True)
class MaskedSet(CandidateSet):
    """Sentences with one mask each, and the vocabulary items of their candidates."""

    padding: Padding
    store: TokenStore  # of the distinct sentences
    windows: Ids  # (N, 2) begin and end in `store.ids` of the kept part of each sentence
    mask_position: Ids  # (N,), special tokens counted
    template: Template

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return `input_ids` etc. (B, L), `mask_position` (B,), and both (B, K) of the choices."""
        windows = self.windows[items]
        rows = [self.template.assemble(self.store.ids[a:b]) for a, b in windows]
        return {
            **self.padding.apply(rows),
            "mask_position": torch.from_numpy(self.mask_position[items]),
            **super().inputs(items),
        }


class MaskedChoiceEncoder:
    """Encodes MC-MLM records: a masked sentence and K candidate pieces (Talmor et al. 2020).

    Candidates are looked up behind `answer_prefix`, see `CandidateTable`. A record with one that is
    not one vocabulary item is, by `multi_token`, an "error", a "skip" (counted and listed), or left
    to "pseudo_log_likelihood" (listed in `needs_pll`; no batch is made of it here). A sentence
    longer than `max_length`, special tokens included, is cut on the side where more text is, so
    that the mask stays.
    """

    def __init__(
        self,
        tokenizer: Any,
        answer_prefix: str = "auto",
        multi_token: MultiToken = "error",
        max_length: int = 256,
    ) -> None:
        if tokenizer.mask_token is None:
            raise ValueError(
                f"{type(tokenizer).__name__} has no mask token; MC-MLM needs a masked LM"
            )
        if multi_token not in get_args(MultiToken):
            raise ValueError(f"multi_token={multi_token!r} is not one of {get_args(MultiToken)}")
        self.tokenizer = tokenizer
        self.answer_prefix = answer_prefix
        self.multi_token = multi_token
        self.max_length = min(max_length, tokenizer.model_max_length)
        self.cache_dir: str | Path | None = None
        self.template = Template.of(tokenizer, 1)
        self.padding = Padding.of(tokenizer)
        if self.max_length <= self.template.num_special:
            raise ValueError(f"max_length={max_length} leaves no room for the mask")

    def encode(self, records: Sequence[Record]) -> EncodedSet:
        """Tokenise records; see the class for those that do not fit.

        Raises:
            RecordError: If a stem has not exactly one mask, two candidates are the same vocabulary
                item, or a candidate is not one and `multi_token` is "error".
        """
        blanks = self._blanks(records)
        sentences = [blank.text for blank in blanks]
        carriers = [blank.carrier for blank in blanks]
        table = CandidateTable(
            self.tokenizer, self.answer_prefix, records, carriers, sentences, self.cache_dir
        )
        store, notices = table.store, table.notices
        positions, skipped, needs_pll = self._sort_out(table)
        candidates, exists = table.entries(positions)
        texts = [table.index[sentence] for sentence in sentences]
        windows = np.zeros((len(positions), 2), dtype=np.int64)
        mask_position = np.zeros(len(positions), dtype=np.int64)
        num_cut = 0
        for row, i in enumerate(positions):
            text = texts[i]
            first, last, mask = self._window(records[i], store[text])
            num_cut += last - first < len(store[text])
            windows[row] = store.starts[text] + np.array([first, last])
            mask_position[row] = mask - first + len(self.template.special_ids[0])
        if num_cut:
            notices += (
                f"{num_cut} of {len(records)} sentences were cut to {self.max_length} tokens "
                "around their mask",
            )
        notices += skip_notices(len(records), skipped)
        if needs_pll:
            notices += (
                f"{len(needs_pll)} of {len(records)} records have a candidate that is not one "
                "vocabulary item and are scored by pseudo-log-likelihood",
            )
        item_texts = [[texts[i]] for i in positions]
        notices += unknown_notice(self.tokenizer, store, item_texts, "sentences")
        return MaskedSet(
            labels=np.array([records[i].answer for i in positions], dtype=np.int64),
            lengths=windows[:, 1] - windows[:, 0] + self.template.num_special,
            num_sequences=np.ones(len(positions), dtype=np.int64),
            positions=positions,
            skipped=skipped,
            needs_pll=needs_pll,
            notices=notices,
            padding=self.padding,
            store=store,
            windows=windows,
            mask_position=mask_position,
            candidate_ids=candidates,
            choice_mask=exists,
            template=self.template,
        )

    def check(self, records: Sequence[Record]) -> list[int]:
        """Return the positions of the records that `encode` would keep; refuse what it would."""
        carriers = [blank.carrier for blank in self._blanks(records)]
        table = CandidateTable(self.tokenizer, self.answer_prefix, records, carriers)
        positions, _, _ = self._sort_out(table)
        table.entries(positions)
        return positions

    def _blanks(self, records: Sequence[Record]) -> list[Blank]:
        return [Blank.of(masked_stem(r), self.tokenizer.mask_token) for r in records]

    def _sort_out(self, table: CandidateTable) -> tuple[list[int], list[Skipped], list[int]]:
        """Return the positions of records to keep, to skip, and to score by word pieces."""
        positions, skipped = table.single_entries()
        if skipped and self.multi_token == "error":
            where = table.records[skipped[0].position].where
            raise RecordError(
                f"{where}: {skipped[0].reason}; each answer must be one vocabulary item of "
                f"{type(self.tokenizer).__name__} ({len(skipped)} of {len(table.records)} records "
                "have one that is not). Choose other words, or add --model.multi_token "
                "skip or pseudo_log_likelihood"
            )
        if self.multi_token == "skip":
            return positions, skipped, []
        return positions, [], [record.position for record in skipped]

    def _window(self, record: Record, ids: NDArray[np.int32]) -> tuple[int, int, int]:
        """Return begin and end of the kept part of a sentence, and the position of its mask."""
        masks = np.flatnonzero(ids == self.tokenizer.mask_token_id)
        if len(masks) != 1:
            raise RecordError(
                f"{record.where}: after tokenising, the sentence has {len(masks)} mask tokens; "
                f"does its text contain {self.tokenizer.mask_token!r} itself?"
            )
        mask = int(masks[0])
        room = self.max_length - self.template.num_special - 1
        num_before, num_after = longest_first(mask, len(ids) - mask - 1, room)
        return mask - num_before, mask + num_after + 1, mask
