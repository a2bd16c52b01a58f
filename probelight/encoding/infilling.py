"""Records for encoder-decoder models: texts with a blank, and what is to be written there.

Shapes: B items, K choices, S distinct sources, P distinct targets, L and T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probelight.encoding import likelihood
from probelight.encoding.candidates import Blank, CandidateTable
from probelight.encoding.encoded_set import (
    EncodedSet,
    Ids,
    Padding,
    Skipped,
    distinct,
    existing_choices,
    skip_notices,
    stacked,
    white_space_notice,
)
from probelight.encoding.tokens import Template, longest_first, unknown_notice
from probelight.io.errors import RecordError
from probelight.probes.record import MASK, Record


@dataclass(frozen=True)
class Infilling:
    """How a family of encoder-decoder models was taught to fill a blank.

    The encoder reads the text with a token in place of the blank. The decoder writes `opening`, the
    text before the blank if it `repeats_context`, the answer, and `closing`.

    Attributes:
        blank: Written into the text in place of the blank.
        blank_id: Its token.
        sentinel_id: What the encoder reads for it: a byte that no text has (ByT5), or itself.
        opening: What the decoder is given first: its start token, then T5's sentinel or the special
            tokens that a sentence of BART begins with.
        closing: What makes an answer a whole one: T5's next sentinel; nothing of BART, which goes
            on with the text behind the blank.
        repeats_context: Whether it writes the whole sentence (BART), or the answer alone (T5).
    """

    blank: str
    blank_id: int
    sentinel_id: int
    opening: tuple[int, ...]
    closing: tuple[int, ...]
    repeats_context: bool


@dataclass(frozen=True)
class Target:
    """What the decoder is given, and the tokens that are then scored."""

    source: int  # index of the text that the encoder reads
    prefix: tuple[int, ...]
    scored: tuple[int, ...]  # each behind all before it


@dataclass(frozen=True, kw_only=True)
class InfillingSet(EncodedSet):
    """Texts with a blank and what may be written there; `num_sequences` counts both.

    An item has M targets: one per choice, or a single one where the next token is scored.
    """

    padding: Padding
    sources: tuple[Ids, ...]  # the distinct texts, without special tokens
    targets: tuple[Target, ...]  # the distinct ones
    target_index: Ids  # (N, M) index of each target, -1 where there is none
    candidate_ids: Ids | None  # (N, K) vocabulary items, where the next token is scored
    choice_mask: NDArray[np.bool_]  # (N, K) which choices exist
    template: Template  # around a source

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return `input_ids` and `attention_mask` (S, L) of the encoder, and the decoder's inputs.

        That is `decoder_input_ids` and `decoder_attention_mask` (P, T), the shortest first; where
        `scored_mask` (P, T) is True, `scored_ids` (P, T) should come next; `scored_at` (2, R) are
        rows and columns of these. `source_index` (P,) is the source of each target, `pair_index`
        (B, M) the target of each choice. Also `choice_mask` and, if there are any, `candidate_ids`
        (B, K).
        """
        target_index = self.target_index[items]
        distinct_targets, pair_index = distinct(target_index, target_index >= 0)
        targets = [self.targets[i] for i in distinct_targets]
        by_length = np.argsort([len(t.prefix) + len(t.scored) for t in targets], kind="stable")
        targets = [targets[i] for i in by_length]
        pair_index = torch.from_numpy(by_length.argsort())[pair_index]
        sources, source_index = np.unique([t.source for t in targets], return_inverse=True)
        encoder_inputs = self.padding.apply(
            [self.template.assemble(self.sources[i]) for i in sources]
        )
        decoder_ids = [np.array(t.prefix + t.scored, dtype=np.int64) for t in targets]
        scored_mask = torch.zeros(len(targets), max(map(len, decoder_ids)) - 1, dtype=torch.bool)
        for row, target in enumerate(targets):
            first = len(target.prefix) - 1
            scored_mask[row, first : first + len(target.scored)] = True
        batch = {
            "input_ids": encoder_inputs["input_ids"],
            "attention_mask": encoder_inputs["attention_mask"],
            "decoder_attention_mask": stacked([np.ones_like(ids[:-1]) for ids in decoder_ids], 0),
            "decoder_input_ids": stacked([ids[:-1] for ids in decoder_ids], self.padding.token_id),
            "scored_ids": stacked([ids[1:] for ids in decoder_ids], self.padding.token_id),
            "scored_mask": scored_mask,
            "scored_at": scored_mask.nonzero().T,
            "source_index": torch.from_numpy(source_index),
            "pair_index": pair_index,
            "choice_mask": torch.from_numpy(self.choice_mask[items]),
        }
        if self.candidate_ids is not None:
            batch["candidate_ids"] = torch.from_numpy(self.candidate_ids[items])
        return batch


Asks = Literal["choices", "entries", "place"]
_ANYTHING = (0,)  # where any token may come next


class DecodedChoice(NamedTuple):
    """Tokens that the decoder writes: of the text before the blank (BART), and in the blank."""

    context: tuple[int, ...]
    answer: tuple[int, ...]
    has_foreign_letters: bool = False  # see `FilledText`


class BlankTexts:
    """Records with their blanks, as an encoder's tokenizer cuts them.

    Attributes:
        texts: (N,) index in `store` of each record's text with a blank.
        store: Tokens of the distinct texts.
        notices: What the tokens' cache has to say.
    """

    def __init__(self, encoder: InfillingEncoder, records: Sequence[Record]) -> None:
        self.tokenizer, self.form = encoder.tokenizer, encoder.form
        self.records = [replace(r, choices=tuple(c.strip() for c in r.choices)) for r in records]
        self.stems = []
        for record in records:
            context, mask, after = record.stem.rpartition(MASK)
            if mask:
                self.stems.append(f"{context if context.strip() else ''}{MASK}{after}")
            else:  # the blank is behind a question, and alone where there is none
                question = record.stem.rstrip()
                self.stems.append(f"{question} {MASK}" if question else MASK)
        blanks = [Blank.of(stem, self.form.blank) for stem in self.stems]
        # A sentinel ends the word before it, so an answer attached to a word begins anew.
        self.carriers = [
            blank.carrier if self.form.repeats_context or blank.carrier[-1:] == " " else ""
            for blank in blanks
        ]
        texts = [blank.text for blank in blanks]
        self.table = CandidateTable(
            self.tokenizer,
            encoder.answer_prefix,
            self.records,
            self.carriers,
            texts,
            encoder.cache_dir,
        )
        self.texts = [self.table.index[text] for text in texts]
        self.store, self.notices = self.table.store, self.table.notices

    def blank_in_text(self, i: int) -> tuple[int, int]:
        """Return the number of tokens of a record's text, and the place of its blank."""
        ids = self.store[self.texts[i]]
        blanks = np.flatnonzero(ids == self.form.blank_id)
        if len(blanks) != 1:
            raise RecordError(
                f"{self.records[i].where}: after tokenising, the text has {len(blanks)} blanks; "
                f"does it contain {self.form.blank.strip()!r} itself?"
            )
        return len(ids), int(blanks[0])

    def next_tokens(self) -> list[list[DecodedChoice]]:
        """Return what is before the next token in the blank of each record, whatever comes next."""
        choices = []
        for i, text in enumerate(self.texts):
            _, blank = self.blank_in_text(i)
            context = self.store[text][:blank].tolist() if self.form.repeats_context else ()
            choices.append([DecodedChoice(tuple(context), _ANYTHING)])
        return choices

    def decoded_choices(self) -> list[list[DecodedChoice]]:
        """Return what is before the blank, and the pieces, of each choice of each record."""
        if self.form.repeats_context:
            rows = self._filled_texts()
        else:
            rows = [
                [
                    DecodedChoice((), tuple(self.table.pieces(carrier, choice).tolist()))
                    for choice in record.choices
                ]
                for record, carrier in zip(self.records, self.carriers, strict=True)
            ]
        for record, row in zip(self.records, rows, strict=True):
            for choice, decoded in zip(record.choices, row, strict=True):
                if not (choice and decoded.answer):
                    raise RecordError(f"{record.where}: the choice {choice!r} has no tokens")
        return rows

    def _filled_texts(self) -> list[list[DecodedChoice]]:
        """Return source and targets where the decoder writes the whole filled sentence."""
        texts: dict[str, int] = {}
        placements = []
        for record, stem in zip(self.records, self.stems, strict=True):
            context, _, after = stem.rpartition(MASK)
            for choice in record.choices:
                text = context + choice + after
                span = len(context.rstrip()), len(context) + len(choice)  # its space is its own
                placements.append((texts.setdefault(text, len(texts)), span))
        if not texts:
            return [[] for _ in self.records]
        encoded = self.tokenizer(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        choices, filled_texts = [], list(texts)
        for index, span in placements:
            ids, spans = tuple(encoded["input_ids"][index]), encoded["offset_mapping"][index]
            first, last = likelihood.tokens_of(spans, span)
            is_mixed = likelihood.has_foreign_letters(filled_texts[index], spans, span)
            choices.append(DecodedChoice(ids[:first], ids[first:last], is_mixed))
        remaining = iter(choices)
        return [[next(remaining) for _ in record.choices] for record in self.records]


class InfillingEncoder:
    """Encodes records for a model that fills blanks: the mask of a stem, or the place behind it.

    In a question the blank is behind the stem and a space; an empty stem is nothing but the
    blank, so that a whole sentence is the answer. A stem and its blank are tokenised as one text.
    An answer gets the pieces that it has in running text: where the context is repeated (which
    needs a fast tokenizer) those of the filled sentence that hold a letter of it, or the space
    before it, else those that it has behind a space (at the start of a text, or attached to a word:
    those that it has alone), by `answer_prefix` as in `CandidateTable`.

    Of a text longer than `max_length`, special tokens included, text around the blank is cut, the
    longer side first, for both halves of the model alike.

    What is scored, `asks`, is all pieces of the "choices"; the first token in the blank, whose
    candidates are choices that are one of the vocabulary's "entries" (records with another are
    skipped); or that of the "place" alone, whatever the choices are.
    """

    def __init__(
        self,
        tokenizer: Any,
        form: Infilling,
        max_length: int = 256,
        answer_prefix: str = "auto",
        asks: Asks = "choices",
    ) -> None:
        self.tokenizer = tokenizer
        self.form = form
        self.max_length = min(max_length, tokenizer.model_max_length)
        self.answer_prefix = answer_prefix
        self.asks = asks
        self.closing = form.closing if asks == "choices" else ()
        self.cache_dir: str | Path | None = None
        self.template = Template.of(tokenizer, 1)
        self.padding = Padding.of(tokenizer)
        if self.max_length <= max(self.template.num_special, len(form.opening)):
            raise ValueError(f"max_length={max_length} leaves no room for the blank")

    def num_tokens(self, records: Sequence[Record]) -> list[list[int]]:
        """Return the number of tokens of each choice of each record, `closing` included."""
        encoded = self.encode(records)
        return [
            [len(encoded.targets[i].scored) for i in row if i >= 0] for row in encoded.target_index
        ]

    def encode(self, records: Sequence[Record]) -> InfillingSet:
        """Tokenise records; see the class for those that do not fit.

        Raises:
            RecordError: If a stem has several masks, an answer has no tokens or is longer than
                `max_length`, or two candidates are the same entry.
        """
        blanks = BlankTexts(self, records)
        positions, candidates = list(range(len(records))), None
        skipped: list[Skipped] = []
        if self.asks == "entries":
            positions, skipped = blanks.table.single_entries()
            candidates, _ = blanks.table.entries(positions)
        choices = blanks.decoded_choices() if self.asks == "choices" else blanks.next_tokens()
        sources: dict[tuple[int, int, int], int] = {}
        targets: dict[Target, int] = {}
        target_index = np.full(
            (len(positions), max(map(len, choices), default=0)), -1, dtype=np.int64
        )
        lengths = np.zeros(len(positions), dtype=np.int64)
        for row, i in enumerate(positions):
            begin, end = self._window(records[i], *blanks.blank_in_text(i), choices[i])
            source = sources.setdefault((blanks.texts[i], begin, end), len(sources))
            item_targets = []
            for context, answer, _ in choices[i]:  # what is too long is cut on its left
                room = self.max_length - len(self.form.opening) - len(answer)
                prefix = self.form.opening + context[max(begin, len(context) - room) :]
                item_targets.append(Target(source, prefix, answer + self.closing))
            target_index[row, : len(item_targets)] = [
                targets.setdefault(t, len(targets)) for t in item_targets
            ]
            decoded = [len(target.prefix) + len(target.scored) - 1 for target in item_targets]
            lengths[row] = max([end - begin + self.template.num_special, *decoded])
        kept_texts = [[blanks.texts[i]] for i in positions]
        notices = (
            *blanks.notices,
            *unknown_notice(self.tokenizer, blanks.store, kept_texts, "texts"),
            *likelihood.straddling_notice(
                records, [[c.has_foreign_letters for c in row] for row in choices]
            ),
            *white_space_notice(records),
            *skip_notices(len(records), skipped),
        )
        if num_cut := sum(end - begin < len(blanks.store[text]) for text, begin, end in sources):
            notices += (
                f"{num_cut} of {len(sources)} texts were cut to {self.max_length} tokens around "
                "their blank",
            )
        unknown = self.tokenizer.unk_token_id
        if self.asks == "choices" and (num := sum(unknown in t.scored for t in targets)):
            notices += (
                f"{num} of {len(targets)} answers contain text that the tokenizer does not know; "
                f"they are scored with {self.tokenizer.unk_token} instead",
            )
        blank_id, sentinel_id = self.form.blank_id, self.form.sentinel_id
        windows = (blanks.store[text][begin:end] for text, begin, end in sources)
        return InfillingSet(
            labels=np.array([records[i].answer for i in positions], dtype=np.int64),
            lengths=lengths,
            num_sequences=1 + (target_index >= 0).sum(axis=1),
            positions=positions,
            skipped=skipped,
            notices=notices,
            padding=self.padding,
            sources=tuple(
                np.where(w == blank_id, sentinel_id, w).astype(np.int64) for w in windows
            ),
            targets=tuple(targets),
            target_index=target_index,
            candidate_ids=candidates,
            choice_mask=existing_choices([records[i] for i in positions]),
            template=self.template,
        )

    def _window(
        self, record: Record, size: int, blank: int, choices: Sequence[DecodedChoice]
    ) -> tuple[int, int]:
        """Return begin and end of the kept part of a text of `size` tokens with its blank `at`."""
        form = self.form
        longest = max((len(choice.answer) for choice in choices), default=1) + len(self.closing)
        room = self.max_length - len(form.opening) - longest
        if room < 0:
            raise RecordError(
                f"{record.where}: a choice has {longest - len(self.closing)} tokens, more than "
                f"max_length={self.max_length} allows; {likelihood.TOO_LONG}"
            )
        num_around = self.max_length - self.template.num_special - 1
        num_before, num_after = longest_first(blank, size - blank - 1, num_around)
        if form.repeats_context:
            num_before = min(num_before, room)
        return blank - num_before, blank + num_after + 1
