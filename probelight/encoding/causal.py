"""Records for causal language models: texts whose end is scored, and stems that are continued.

Shapes: B items, K choices, P distinct texts, L tokens, N items of a set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from probelight.encoding.candidates import Blank, CandidateTable
from probelight.encoding.chat import Chat
from probelight.encoding.encoded_set import (
    CandidateSet,
    EncodedSet,
    Ids,
    Padding,
    Skipped,
    existing_choices,
    skip_notices,
)
from probelight.encoding.likelihood import (
    TOO_LONG,
    FilledText,
    LikelihoodEncoder,
    LikelihoodSet,
    Spans,
    answer_tokens,
)
from probelight.encoding.packed import PackedSet, Packing
from probelight.encoding.tokens import Template, unknown_notice
from probelight.io.errors import RecordError
from probelight.probes.record import MASK, Record

DEFAULT_PACKING = Packing()


class ContinuationEncoder(LikelihoodEncoder):
    """Encodes each choice in its place, to be scored from the choice to the end of the text.

    The text is tokenised whole and cut at the boundary, which lies before the white space in front
    of the choice; a token that straddles it belongs to the choice. The tokenizer's own special
    tokens at the beginning of a text are kept, those at its end are not. Where it sets none, a text
    that is scored from its first token gets the tokenizer's BOS (or EOS) token before it.

    A text longer than `max_length`, special tokens included, loses its beginning, down to one
    token; what is scored stays whole. The tokenizer is a fast one, with or without a padding token.

    In a `chat` the text is what that writes, all of it, and one that is too long is refused.
    `packing` says how texts share a row.
    """

    def __init__(
        self,
        tokenizer: Any,
        max_length: int = 256,
        chat: Chat | None = None,
        packing: Packing = DEFAULT_PACKING,
    ) -> None:
        self.chat, self.packing = chat, packing
        template = NO_SPECIAL_TOKENS if chat else beginning_of(tokenizer)
        padding = right_padding(tokenizer)
        super().__init__(tokenizer, max_length, template=template, padding=padding)

    def encode(self, records: Sequence[Record]) -> PackedSet:
        """Tokenise records; say where the end of a stem is white space, which is scored with it."""
        encoded = super().encode(records)
        if not self.packing.packs:
            num_texts = (encoded.choice_text >= 0).sum(axis=1)
            encoded = replace(encoded, num_sequences=num_texts)
        ends = [
            r for r in records if MASK in r.stem and r.stem != r.stem.rstrip() and not self.chat
        ]
        notices = encoded.notices
        if ends:
            notices += (
                f"{len(ends)} of {len(records)} sentences end in white space behind the blank, "
                "whose log-probability, of up to some 10 nats, is in each score (first: "
                f"{ends[0].where}); a choice that makes the space unlikely loses by it",
            )
        base = {f.name: getattr(encoded, f.name) for f in fields(LikelihoodSet)}
        return PackedSet(**base | {"notices": notices}, packing=self.packing)

    def _num_sequences(self, num_scored: Ids, lengths: Ids) -> Ids:
        """Return how many texts of an item's longest length take as many tokens as the item."""
        return 1 + num_scored // np.maximum(lengths, 1)

    def _fill(self, record: Record, choice: str) -> tuple[str, int, int]:
        if self.chat:
            return self.chat.fill(record, choice)
        context, mask, after = record.stem.rpartition(MASK)
        if not mask:
            context, after = record.stem, ""
        begin = len(context.rstrip())
        # A whole sentence has the white space that a prompt puts before it.
        has_space = begin or (mask and not after)
        space = (context[begin:] if mask else " ") if has_space else ""
        text = context[:begin] + space + choice.strip()
        return text + after, begin, len(text)

    def _window(
        self, ids: Ids, spans: Spans, answer: tuple[int, int], owner: tuple[Record, str]
    ) -> FilledText:
        record, choice = owner
        first, _ = answer_tokens(spans, answer, owner)
        first = first if answer[0] else 0
        num_scored = len(ids) - first
        room = self.max_length - self.template.num_special - num_scored
        if room < (self.template.num_special == 0):
            raise RecordError(
                f"{record.where}: the choice {choice[:60]!r} and the text after it have "
                f"{num_scored} tokens, more than max_length={self.max_length} allows; {TOO_LONG}"
            )
        num_prefix = min(first, room)
        if self.chat and num_prefix < first:
            raise RecordError(
                f"{record.where}: its chat has {len(ids)} tokens, more than max_length="
                f"{self.max_length}; give --model.max_length {len(ids)} or more if the model "
                "supports it"
            )
        needs_start = num_prefix == 0 and self.template.num_special == 0
        prefix = start_token(self.tokenizer) if needs_start else ids[first - num_prefix : first]
        return FilledText(
            np.concatenate([prefix, ids[first:]]),
            len(prefix),
            len(prefix) + num_scored,
            num_prefix < first,
        )


_NONE = np.zeros(0, dtype=np.int64)
NO_SPECIAL_TOKENS = Template((_NONE, _NONE), (_NONE, _NONE), (0,))


def beginning_of(tokenizer: Any) -> Template:
    """Return the special tokens that a tokenizer sets before a text, without those behind it."""
    template = Template.of(tokenizer, 1)
    ids, types = template.special_ids[0], template.special_types[0]
    return Template((ids, _NONE), (types, _NONE), template.text_types)


def right_padding(tokenizer: Any) -> Padding:
    """Return padding that no model looks at, whether or not the tokenizer has a token for it."""
    token_id = tokenizer.pad_token_id
    return Padding(0 if token_id is None else token_id, type_id=0, with_types=False)


def start_token(tokenizer: Any) -> Ids:
    """Return the BOS or EOS token (1,), for texts before which a tokenizer sets none itself."""
    for token_id in (tokenizer.bos_token_id, tokenizer.eos_token_id):
        if token_id is not None:
            return np.array([token_id], dtype=np.int64)
    raise RecordError(
        f"{type(tokenizer).__name__} has neither a BOS nor an EOS token, but scoring a text from "
        "its first word needs one before it"
    )


@dataclass(frozen=True, kw_only=True)
class StemSet(CandidateSet):
    """Stems, one sequence per item, and the vocabulary items of their candidates."""

    padding: Padding
    rows: tuple[Ids, ...]  # tokens of each stem, special tokens included

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return `input_ids` etc. (B, L), `place` (B,) of the last token, and the candidates."""
        rows = [self.rows[i] for i in items]
        return {
            **self.padding.apply([(row, np.zeros_like(row)) for row in rows]),
            "place": torch.tensor([len(row) - 1 for row in rows]),
            **super().inputs(items),
        }


class StemEncoder:
    """Encodes the stem of each record up to its blank, or whole with the blank written out.

    With `blank` None, for the next token, the stem is read up to its blank, without the white space
    there; candidates are then looked up as entries of the vocabulary (by `answer_prefix`, as in
    `CandidateTable`), and records with one that is none are skipped. A stem longer than
    `max_length`, special tokens included, loses its beginning.
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
        """Tokenise records; refuse one with two candidates that are the same vocabulary item."""
        looked_up = [] if self.blank else records
        stems = (r.stem if MASK in r.stem else f"{r.stem} {MASK}" for r in looked_up)
        carriers = [Blank.of(stem, MASK).carrier for stem in stems]
        stem_texts = [self._text(record.stem) for record in records]
        table = CandidateTable(
            self.tokenizer, self.answer_prefix, looked_up, carriers, stem_texts, self.cache_dir
        )
        store, notices = table.store, table.notices
        text_indices = [table.index[text] for text in stem_texts]
        if self.blank:
            positions, skipped = list(range(len(records))), list[Skipped]()
            exists = existing_choices(records)
            entries = np.zeros(exists.shape, dtype=np.int64)
        else:
            positions, skipped = table.single_entries()
            entries, exists = table.entries(positions)
        stem_tokens = [store[text_indices[i]] for i in positions]
        room = self.max_length - self.template.num_special
        rows = [self.template.assemble(ids[-max(room, 1) :])[0] for ids in stem_tokens]
        rows = [row if len(row) else start_token(self.tokenizer) for row in rows]
        if num_cut := sum(len(ids) > room for ids in stem_tokens):
            notices += (
                f"{num_cut} of {len(records)} stems were cut to their last {self.max_length} "
                "tokens",
            )
        notices += skip_notices(len(records), skipped)
        item_texts = [[text_indices[i]] for i in positions]
        notices += unknown_notice(self.tokenizer, store, item_texts, "stems")
        return StemSet(
            labels=np.array([records[i].answer for i in positions], dtype=np.int64),
            lengths=np.array([len(row) for row in rows], dtype=np.int64),
            num_sequences=np.ones(len(positions), dtype=np.int64),
            positions=positions,
            skipped=skipped,
            notices=notices,
            padding=self.padding,
            rows=tuple(rows),
            candidate_ids=entries,
            choice_mask=exists,
        )

    def _text(self, stem: str) -> str:
        """Return a stem up to its blank, or all of it with the blank written out."""
        if self.blank is None:
            context, mask, _ = stem.rpartition(MASK)
            return (context if mask else stem).rstrip()
        return stem.replace(MASK, self.blank).rstrip()
