"""Which one vocabulary item stands for an answer word in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from probelight.encoding.token_store import TokenStore
from probelight.io.errors import RecordError
from probelight.probes.record import MASK, Record

MultiToken = Literal["error", "skip", "pseudo_log_likelihood"]
INSIDE = "a "  # the shortest text that stands before an answer inside a sentence


@dataclass(frozen=True)
class Blank:
    """A sentence with its blank, prepared for one tokenizer.

    Attributes:
        text: The sentence with the tokenizer's mask token in it. White space before the mask is
            gone: where a word brings its own leading space (byte-level BPE, SentencePiece) it
            belongs to the answer, and elsewhere it is nothing.
        carrier: The shortest text that stands before an answer as this sentence does: nothing at
            the start, a word and a space inside, the last character where the blank is attached.
    """

    text: str
    carrier: str

    @classmethod
    def of(cls, stem: str, mask_token: str) -> Blank:
        """Reads the blank of a stem, its only or its last `[MASK]`."""
        before, _, after = stem.rpartition(MASK)
        kept = before.rstrip()
        before = before if kept else ""
        carrier = INSIDE if kept != before else kept[-1:]
        return cls(text=f"{kept}{mask_token}{after}", carrier=carrier)


@dataclass
class CandidateTable:
    """The pieces of each (carrier, candidate), tokenised in one go with the sentences.

    With `answer_prefix="auto"` the pieces are read off the tokenizer in context: those that
    "a younger" has beyond "a". That gives `Ġyounger`, `▁younger` or `younger` as the tokenizer has
    it, and `younger` without the space at the start of a sentence where the tokenizer cuts it so.
    Any other prefix is put before the candidate as it is.
    """

    tokenizer: Any
    answer_prefix: str
    texts: dict[str, int] = field(default_factory=dict)

    def add(self, carrier: str, candidate: str) -> None:
        """Notes the texts that `pieces` will need."""
        for text in self._texts(carrier, candidate):
            self.texts.setdefault(text, len(self.texts))

    def pieces(self, carrier: str, candidate: str, tokens: TokenStore) -> NDArray[np.int32]:
        """Ids of a candidate, given the tokens of `texts`."""
        base, whole = (tokens[self.texts[t]] for t in self._texts(carrier, candidate))
        if np.array_equal(whole[: len(base)], base):
            return whole[len(base) :]
        return whole

    def _texts(self, carrier: str, candidate: str) -> tuple[str, str]:
        if self.answer_prefix == "auto":
            return carrier.rstrip(), carrier + candidate
        return "", self.answer_prefix + candidate

    def problems(self, record: Record, carrier: str, tokens: TokenStore) -> Iterator[str]:
        """What keeps a record's candidates from being one vocabulary item each."""
        unknown = self.tokenizer.unk_token_id
        for candidate in record.choices:
            pieces = self.pieces(carrier, candidate, tokens)
            shown = self.tokenizer.convert_ids_to_tokens(pieces.tolist())
            if len(pieces) != 1:
                yield f"the candidate {candidate!r} is {len(pieces)} pieces, {shown}"
            elif unknown is not None and pieces[0] == unknown:
                yield f"the candidate {candidate!r} is not in the vocabulary, {shown}"

    def token_ids(self, record: Record, carrier: str, tokens: TokenStore) -> list[int]:
        """(K,) the vocabulary item of each choice of a record without `problems`.

        Raises:
            RecordError: If two different candidates are the same vocabulary item.
        """
        ids = [int(self.pieces(carrier, c, tokens)[0]) for c in record.choices]
        seen: dict[int, str] = {}
        for candidate, token in zip(record.choices, ids, strict=True):
            # A choice that repeats another one, not the gold one, was let through by the reader.
            if seen.setdefault(token, candidate) != candidate:
                raise RecordError(
                    f"{record.where}: the candidates {seen[token]!r} and {candidate!r} are the "
                    f"same vocabulary item, {self.tokenizer.convert_ids_to_tokens(token)!r}"
                )
        return ids
