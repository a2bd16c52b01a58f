"""Records to stems that a causal language model reads at their last token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probelight.encoding.candidates import Blank, CandidateTable
from probelight.encoding.continuation import beginning_of, right_padding, start_token
from probelight.encoding.encoded_set import EncodedSet, Ids, Skipped, skip_notices
from probelight.encoding.token_store import TokenStore, tokenise, unknown_notice
from probelight.probes.record import MASK, Record


@dataclass(frozen=True, kw_only=True)
class StemSet(EncodedSet):
    """Stems, one sequence an item, and the vocabulary items of their candidates.

    Attributes:
        rows: Tokens of each stem, special tokens included.
        candidate_ids: (N, K) vocabulary items, 0 where `choice_mask` is False.
        choice_mask: (N, K) which choices exist.
    """

    rows: tuple[Ids, ...]
    candidate_ids: Ids
    choice_mask: NDArray[np.bool_]

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """`input_ids` etc. (B, L), `place` (B,) of the last token, `candidate_ids` (B, K)."""
        rows = [self.rows[i] for i in items]
        return {
            **self.padding.apply([(row, np.zeros_like(row)) for row in rows]),
            "place": torch.tensor([len(row) - 1 for row in rows]),
            "candidate_ids": torch.from_numpy(self.candidate_ids[items]),
            "choice_mask": torch.from_numpy(self.choice_mask[items]),
        }


class StemEncoder:
    """Encodes the stem of each record up to its blank, or whole with the blank written out.

    Up to its blank, without the white space there, is what the next token is asked for; candidates
    are then looked up as entries of the vocabulary, and records with one that is none are skipped.
    A record without choices has none to look up. Of a stem that is too long the beginning is cut.

    Args:
        tokenizer: A Hugging Face tokenizer.
        max_length: Most tokens of a stem, special tokens included.
        blank: What is written for the mask; none ends the stem before it.
        answer_prefix: As `CandidateTable` has it.
    """

    def __init__(
        self,
        tokenizer: Any,
        max_length: int = 256,
        blank: str | None = None,
        answer_prefix: str = "auto",
    ) -> None:
        self.tokenizer = tokenizer
        self.max_length = min(max_length, tokenizer.model_max_length)
        self.blank = blank
        self.answer_prefix = answer_prefix
        self.cache_dir: str | Path | None = None
        self.template = beginning_of(tokenizer)
        self.padding = right_padding(tokenizer)

    def encode(self, records: Sequence[Record]) -> EncodedSet:
        """Tokenises records; see the class for those that are skipped.

        Raises:
            RecordError: If two candidates are the same vocabulary item.
        """
        carriers = [_carrier(record.stem) for record in records]
        table = CandidateTable(self.tokenizer, self.answer_prefix)
        for record, carrier in zip(records, carriers, strict=True):
            for choice in () if self.blank else record.choices:
                table.add(carrier, choice)
        texts = dict(table.texts)
        stems = [self._text(record.stem) for record in records]
        for stem in stems:
            texts.setdefault(stem, len(texts))
        store, notices = tokenise(self.tokenizer, list(texts), self.cache_dir)
        kept, skipped = self._sort_out(records, carriers, table, store)
        rows = [self._row(store[texts[stems[i]]]) for i in kept]
        width = max((len(records[i].choices) for i in kept), default=0)
        candidates = np.zeros((len(kept), width), dtype=np.int64)
        exists = np.zeros((len(kept), width), dtype=np.bool_)
        for at, i in enumerate(kept):
            exists[at, : len(records[i].choices)] = True
            if not self.blank:
                found = table.token_ids(records[i], carriers[i], store)
                candidates[at, : len(found)] = found
        num_cut = sum(self._is_cut(store[texts[stems[i]]]) for i in kept)
        own = [[texts[stems[i]]] for i in kept]
        notices += self._notices(len(records), num_cut, skipped)
        notices += unknown_notice(self.tokenizer, store, own, "stems")
        return StemSet(
            labels=np.array([records[i].answer for i in kept], dtype=np.int64),
            lengths=np.array([len(row) for row in rows], dtype=np.int64),
            num_sequences=np.ones(len(kept), dtype=np.int64),
            num_choices=width,
            kept=kept,
            skipped=skipped,
            notices=notices,
            padding=self.padding,
            rows=tuple(rows),
            candidate_ids=candidates,
            choice_mask=exists,
        )

    def _text(self, stem: str) -> str:
        if self.blank is None:
            before, mask, _ = stem.rpartition(MASK)
            return (before if mask else stem).rstrip()
        return stem.replace(MASK, self.blank).rstrip()

    def _sort_out(
        self,
        records: Sequence[Record],
        carriers: Sequence[str],
        table: CandidateTable,
        store: TokenStore,
    ) -> tuple[list[int], list[Skipped]]:
        kept, skipped = [], []
        for i, (record, carrier) in enumerate(zip(records, carriers, strict=True)):
            reasons = [] if self.blank else list(table.problems(record, carrier, store))
            if reasons:
                skipped.append(Skipped(i, record.name, "; ".join(reasons)))
            else:
                kept.append(i)
        return kept, skipped

    def _is_cut(self, ids: NDArray[np.int32]) -> bool:
        return bool(len(ids) + self.template.num_special > self.max_length)

    def _row(self, ids: NDArray[np.int32]) -> Ids:
        room = max(self.max_length - self.template.num_special, 1)
        row, _ = self.template.assemble(ids[-room:])
        return row if len(row) else start_token(self.tokenizer)

    def _notices(
        self, num_records: int, num_cut: int, skipped: Sequence[Skipped]
    ) -> tuple[str, ...]:
        lines = []
        if num_cut:
            lines.append(
                f"of {num_cut} of {num_records} stems only the last {self.max_length} tokens are "
                "read"
            )
        lines += skip_notices(num_records, skipped)
        return tuple(lines)


def _carrier(stem: str) -> str:
    """What stands before a candidate behind the stem, see `Blank`."""
    return Blank.of(stem if MASK in stem else f"{stem} {MASK}", MASK).carrier
