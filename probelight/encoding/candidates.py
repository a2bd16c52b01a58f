"""Candidates of items: entries of a tokenizer's vocabulary, or places in a list of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from probelight.encoding.encoded_set import (
    CandidateSet,
    ChoiceEncoder,
    EncodedSet,
    EncoderAround,
    Ids,
    Skipped,
    existing_choices,
)
from probelight.encoding.tokens import tokenise
from probelight.io.errors import RecordError
from probelight.probes.record import MASK, Record

MultiToken = Literal["error", "skip", "pseudo_log_likelihood"]
INSIDE = "a "  # the shortest text that is before an answer inside a sentence


@dataclass(frozen=True)
class Blank:
    """A sentence with its blank, prepared for one tokenizer.

    Attributes:
        text: The sentence with the tokenizer's mask token, without white space before the mask:
            where a word brings its own leading space (byte-level BPE, SentencePiece) it belongs to
            the answer, and elsewhere it is nothing.
        carrier: The shortest text that is before an answer as this sentence is: nothing at the
            start, a word and a space inside, the last character where the blank is attached.
    """

    text: str
    carrier: str

    @classmethod
    def of(cls, stem: str, mask_token: str) -> Blank:
        """Read the blank of a stem, its only or its last `[MASK]`."""
        context, _, after = stem.rpartition(MASK)
        stripped = context.rstrip()
        context = context if stripped else ""
        carrier = INSIDE if stripped != context else stripped[-1:]
        return cls(text=f"{stripped}{mask_token}{after}", carrier=carrier)


class CandidateTable:
    """The pieces of records' candidates behind their carriers, tokenised in one go with `texts`.

    With `answer_prefix="auto"` the pieces are read off the tokenizer in context: those that
    "a younger" has beyond "a". That gives `Ġyounger`, `▁younger` or `younger` as the tokenizer has
    it, and `younger` without the space at the start of a sentence where the tokenizer cuts it so.
    Any other prefix is put before the candidate as it is.

    Attributes:
        index: Of each text in `store`.
        store: Tokens of `texts`, and of those that candidates need.
        notices: What the tokens' cache has to say.
    """

    def __init__(
        self,
        tokenizer: Any,
        answer_prefix: str,
        records: Sequence[Record],
        carriers: Sequence[str],
        texts: Iterable[str] = (),
        cache_dir: str | Path | None = None,
    ) -> None:
        self.tokenizer, self.answer_prefix = tokenizer, answer_prefix
        self.records, self.carriers = records, carriers
        self.index: dict[str, int] = {}
        for record, carrier in zip(records, carriers, strict=True):
            for text in chain(*(self._texts(carrier, choice) for choice in record.choices)):
                self.index.setdefault(text, len(self.index))
        for text in texts:
            self.index.setdefault(text, len(self.index))
        self.store, self.notices = tokenise(tokenizer, list(self.index), cache_dir)

    @classmethod
    def of_words(cls, tokenizer: Any, answer_prefix: str, words: Iterable[str]) -> CandidateTable:
        """Return the table of words inside a sentence."""
        record = Record("words", MASK, tuple(words), 0)
        return cls(tokenizer, answer_prefix, [record], [INSIDE])

    def _texts(self, carrier: str, candidate: str) -> tuple[str, str]:
        """Return the text before a candidate, and the text up to the candidate's end."""
        if self.answer_prefix == "auto":
            return carrier.rstrip(), carrier + candidate
        return "", self.answer_prefix + candidate

    def pieces(self, carrier: str, candidate: str) -> NDArray[np.int32]:
        """Return the ids of a candidate."""
        context_ids, ids = (self.store[self.index[t]] for t in self._texts(carrier, candidate))
        if np.array_equal(ids[: len(context_ids)], context_ids):
            return ids[len(context_ids) :]
        return ids

    def single_entries(self) -> tuple[list[int], list[Skipped]]:
        """Return the positions of records whose candidates are one entry each, and the others."""
        positions, skipped = [], []
        for position, (record, carrier) in enumerate(zip(self.records, self.carriers, strict=True)):
            problems = (self.problem(carrier, candidate) for candidate in record.choices)
            if reason := "; ".join(filter(None, problems)):
                skipped.append(Skipped(position, record.name, reason))
            else:
                positions.append(position)
        return positions, skipped

    def problem(self, carrier: str, candidate: str) -> str:
        """Return what keeps a candidate from being one vocabulary entry; "" if it is one."""
        pieces = self.pieces(carrier, candidate)
        token_texts = self.tokenizer.convert_ids_to_tokens(pieces.tolist())
        if len(pieces) != 1:
            return f"the candidate {candidate!r} is {len(pieces)} tokens, {token_texts}"
        if pieces[0] == self.tokenizer.unk_token_id:
            return f"the candidate {candidate!r} is not in the vocabulary, {token_texts}"
        return ""

    def entries(self, positions: Sequence[int]) -> tuple[Ids, NDArray[np.bool_]]:
        """Return the entries (N, K) of records without a `problem`, 0 for none, and which exist.

        Two different candidates of a record that are the same entry are a `RecordError`.
        """
        exists = existing_choices([self.records[i] for i in positions])
        ids = np.zeros(exists.shape, dtype=np.int64)
        for row, i in enumerate(positions):
            owners: dict[int, str] = {}
            for column, candidate in enumerate(self.records[i].choices):
                entry = ids[row, column] = int(self.pieces(self.carriers[i], candidate)[0])
                # A choice that repeats another, not the gold one, was let through by the reader.
                if owners.setdefault(entry, candidate) != candidate:
                    raise RecordError(
                        f"{self.records[i].where}: the candidates {owners[entry]!r} and "
                        f"{candidate!r} are the same vocabulary item, "
                        f"{self.tokenizer.convert_ids_to_tokens(entry)!r}"
                    )
        return ids, exists


@dataclass(frozen=True, kw_only=True)
class NumberedSet(CandidateSet):
    """Texts as another encoder posed them, and positions of their candidates in a list of words."""

    stems: EncodedSet

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return the inputs of the texts and the candidates."""
        return {**self.stems.inputs(items), **super().inputs(items)}


class NumberedEncoder(EncoderAround):
    """Poses the stems of records alone: what a text gives does not depend on its candidates.

    `words` are the candidates of all records that will come, without white space around them.
    """

    def __init__(self, encoder: ChoiceEncoder, words: Sequence[str]) -> None:
        super().__init__(encoder)
        self.word_index = {word: index for index, word in enumerate(words)}

    def encode(self, records: Sequence[Record]) -> NumberedSet:
        """Tokenise stems; refuse those that can't be posed, and candidates that are not words."""
        stems = self.encoder.encode([replace(r, choices=(), answer=0) for r in records])
        encodable = [records[position] for position in stems.positions]
        exists = existing_choices(encodable)
        candidates = np.zeros(exists.shape, dtype=np.int64)
        for row, record in enumerate(encodable):
            indices = [self.word_index[choice.strip()] for choice in record.choices]
            candidates[row, : len(indices)] = indices
        return NumberedSet(
            labels=np.array([record.answer for record in encodable], dtype=np.int64),
            lengths=stems.lengths,
            num_sequences=stems.num_sequences,
            positions=stems.positions,
            skipped=stems.skipped,
            notices=stems.notices,
            stems=stems,
            candidate_ids=candidates,
            choice_mask=exists,
        )
