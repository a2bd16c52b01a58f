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
from probelight.encoding.likelihood import TOO_LONG, tokens_of
from probelight.encoding.tokens import Template, longest_first, tokenise, unknown_notice
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
    given: tuple[int, ...]
    asked: tuple[int, ...]  # scored, each behind all before it


@dataclass(frozen=True, kw_only=True)
class InfillingSet(EncodedSet):
    """Texts with a blank and what may be written there; `num_sequences` counts both.

    An item has M targets: one per choice, or a single one where the next token is scored.
    """

    padding: Padding
    sources: tuple[Ids, ...]  # the distinct texts, without special tokens
    targets: tuple[Target, ...]  # the distinct ones
    places: Ids  # (N, M) index of each target, -1 where there is none
    candidate_ids: Ids | None  # (N, K) vocabulary items, where the next token is scored
    choice_mask: NDArray[np.bool_]  # (N, K) which choices exist
    template: Template  # around a source

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return `input_ids` and `attention_mask` (S, L) of the encoder, and the decoder's inputs.

        That is `decoder_input_ids` (P, T); where `asked_mask` (P, T) is True, `asked_ids` (P, T)
        should come next; `asked_at` (2, R) are rows and places of these. `source_index` (P,) is the
        source of each target, `pair_index` (B, M) the target of each choice. Also `choice_mask`
        and, if there are any, `candidate_ids` (B, K).
        """
        places = self.places[items]
        found, pair_index = distinct(places, places >= 0)
        chosen = [self.targets[i] for i in found]
        sources, source_index = np.unique([t.source for t in chosen], return_inverse=True)
        read = self.padding.apply([self.template.assemble(self.sources[i]) for i in sources])
        written = [np.array(t.given + t.asked, dtype=np.int64) for t in chosen]
        asked_mask = torch.zeros(len(chosen), max(map(len, written)) - 1, dtype=torch.bool)
        for row, target in enumerate(chosen):
            first = len(target.given) - 1
            asked_mask[row, first : first + len(target.asked)] = True
        batch = {
            "input_ids": read["input_ids"],
            "attention_mask": read["attention_mask"],
            "decoder_input_ids": stacked([ids[:-1] for ids in written], self.padding.token_id),
            "asked_ids": stacked([ids[1:] for ids in written], self.padding.token_id),
            "asked_mask": asked_mask,
            "asked_at": asked_mask.nonzero().T,
            "source_index": torch.from_numpy(source_index),
            "pair_index": pair_index,
            "choice_mask": torch.from_numpy(self.choice_mask[items]),
        }
        if self.candidate_ids is not None:
            batch["candidate_ids"] = torch.from_numpy(self.candidate_ids[items])
        return batch


Asks = Literal["choices", "entries", "place"]
_ANYTHING = (0,)  # where any token may come next


class Written(NamedTuple):
    """Tokens that the decoder writes: of the text before the blank (BART), and in the blank."""

    before: tuple[int, ...]
    answer: tuple[int, ...]


class PosedTexts:
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
            before, mask, after = record.stem.rpartition(MASK)
            if mask:
                self.stems.append(f"{before if before.strip() else ''}{MASK}{after}")
            else:  # the blank is behind a question, and alone where there is none
                question = record.stem.rstrip()
                self.stems.append(f"{question} {MASK}" if question else MASK)
        blanks = [Blank.of(stem, self.form.blank) for stem in self.stems]
        # A sentinel ends the word before it, so an answer attached to a word begins anew.
        self.carriers = [
            blank.carrier if self.form.repeats_context or blank.carrier[-1:] == " " else ""
            for blank in blanks
        ]
        self.table = CandidateTable(self.tokenizer, encoder.answer_prefix)
        for record, carrier in zip(self.records, self.carriers, strict=True):
            self.table.add(carrier, *record.choices)
        texts = dict(self.table.texts)
        self.texts = [texts.setdefault(blank.text, len(texts)) for blank in blanks]
        self.store, self.notices = tokenise(self.tokenizer, list(texts), encoder.cache_dir)

    def blank_in_text(self, i: int) -> tuple[int, int]:
        """Return the number of tokens of a record's text, and the place of its blank."""
        ids = self.store[self.texts[i]]
        found = np.flatnonzero(ids == self.form.blank_id)
        if len(found) != 1:
            raise RecordError(
                f"{self.records[i].where}: after tokenising, the text has {len(found)} blanks; "
                f"does it contain {self.form.blank.strip()!r} itself?"
            )
        return len(ids), int(found[0])

    def entries(self) -> tuple[list[int], list[Skipped], Ids]:
        """Return which records' choices are entries, the others, and the entries (N, K)."""
        kept, skipped = self.table.single_entries(self.records, self.carriers, self.store)
        records, carriers = [self.records[i] for i in kept], [self.carriers[i] for i in kept]
        return kept, skipped, self.table.entries(records, carriers, self.store)[0]

    def next_tokens(self) -> list[list[Written]]:
        """Return what is before the next token in the blank of each record, whatever comes next."""
        written = []
        for i, text in enumerate(self.texts):
            _, at = self.blank_in_text(i)
            before = self.store[text][:at].tolist() if self.form.repeats_context else ()
            written.append([Written(tuple(before), _ANYTHING)])
        return written

    def choices_written(self) -> list[list[Written]]:
        """Return what is before the blank, and the pieces, of each choice of each record."""
        if self.form.repeats_context:
            rows = self._filled_texts()
        else:
            rows = [
                [
                    Written((), tuple(self.table.pieces(carrier, choice, self.store).tolist()))
                    for choice in record.choices
                ]
                for record, carrier in zip(self.records, self.carriers, strict=True)
            ]
        for record, row in zip(self.records, rows, strict=True):
            for choice, written in zip(record.choices, row, strict=True):
                if not (choice and written.answer):
                    raise RecordError(f"{record.where}: the choice {choice!r} has no tokens")
        return rows

    def _filled_texts(self) -> list[list[Written]]:
        """Return the same where the decoder writes the whole filled sentence."""
        texts: dict[str, int] = {}
        filled = []
        for record, stem in zip(self.records, self.stems, strict=True):
            before, _, after = stem.rpartition(MASK)
            for choice in record.choices:
                text = before + choice + after
                span = len(before.rstrip()), len(before) + len(choice)  # its space is its own
                filled.append((texts.setdefault(text, len(texts)), span))
        if not texts:
            return [[] for _ in self.records]
        encoded = self.tokenizer(
            list(texts), add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        written = []
        for place, span in filled:
            ids = tuple(encoded["input_ids"][place])
            first, last = tokens_of(encoded["offset_mapping"][place], span)
            written.append(Written(ids[:first], ids[first:last]))
        rest = iter(written)
        return [[next(rest) for _ in record.choices] for record in self.records]


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
        return [[len(encoded.targets[i].asked) for i in row if i >= 0] for row in encoded.places]

    def encode(self, records: Sequence[Record]) -> InfillingSet:
        """Tokenise records; see the class for those that do not fit.

        Raises:
            RecordError: If a stem has several masks, an answer has no tokens or is longer than
                `max_length`, or two candidates are the same entry.
        """
        posed = PosedTexts(self, records)
        kept, candidates = list(range(len(records))), None
        skipped: list[Skipped] = []
        if self.asks == "entries":
            kept, skipped, candidates = posed.entries()
        written = posed.choices_written() if self.asks == "choices" else posed.next_tokens()
        sources: dict[tuple[int, int, int], int] = {}
        targets: dict[Target, int] = {}
        places = np.full((len(kept), max(map(len, written), default=0)), -1, dtype=np.int64)
        lengths = np.zeros(len(kept), dtype=np.int64)
        for row, i in enumerate(kept):
            begin, end = self._window(records[i], *posed.blank_in_text(i), written[i])
            source = sources.setdefault((posed.texts[i], begin, end), len(sources))
            asked = [self._target(source, begin, choice) for choice in written[i]]
            places[row, : len(asked)] = [targets.setdefault(t, len(targets)) for t in asked]
            decoded = [len(target.given) + len(target.asked) - 1 for target in asked]
            lengths[row] = max([end - begin + self.template.num_special, *decoded])
        notices = (
            *posed.notices,
            *unknown_notice(self.tokenizer, posed.store, [[posed.texts[i]] for i in kept], "texts"),
            *white_space_notice(records),
            *skip_notices(len(records), skipped),
        )
        if num_cut := sum(end - begin < len(posed.store[text]) for text, begin, end in sources):
            notices += (
                f"{num_cut} of {len(sources)} texts were cut to {self.max_length} tokens around "
                "their blank",
            )
        unknown = self.tokenizer.unk_token_id
        if self.asks == "choices" and (num := sum(unknown in t.asked for t in targets)):
            notices += (
                f"{num} of {len(targets)} answers contain text that the tokenizer does not know; "
                f"they are scored with {self.tokenizer.unk_token} instead",
            )
        blank_id, sentinel_id = self.form.blank_id, self.form.sentinel_id
        windows = (posed.store[text][begin:end] for text, begin, end in sources)
        return InfillingSet(
            labels=np.array([records[i].answer for i in kept], dtype=np.int64),
            lengths=lengths,
            num_sequences=1 + (places >= 0).sum(axis=1),
            kept=kept,
            skipped=skipped,
            notices=notices,
            padding=self.padding,
            sources=tuple(
                np.where(w == blank_id, sentinel_id, w).astype(np.int64) for w in windows
            ),
            targets=tuple(targets),
            places=places,
            candidate_ids=candidates,
            choice_mask=existing_choices([records[i] for i in kept]),
            template=self.template,
        )

    def _window(
        self, record: Record, size: int, at: int, written: Sequence[Written]
    ) -> tuple[int, int]:
        """Return begin and end of the kept part of a text of `size` tokens with its blank `at`."""
        form = self.form
        longest = max((len(choice.answer) for choice in written), default=1) + len(self.closing)
        room = self.max_length - len(form.opening) - longest
        if room < 0:
            raise RecordError(
                f"{record.where}: a choice has {longest - len(self.closing)} tokens, more than "
                f"max_length={self.max_length} allows; {TOO_LONG}"
            )
        around = self.max_length - self.template.num_special - 1
        before, after = longest_first(at, size - at - 1, around)
        if form.repeats_context:
            before = min(before, room)
        return at - before, at + after + 1

    def _target(self, source: int, begin: int, written: Written) -> Target:
        """Return a choice as it is written, without what is cut before it."""
        room = self.max_length - len(self.form.opening) - len(written.answer)
        before = written.before[max(begin, len(written.before) - room) :]
        return Target(source, self.form.opening + before, written.answer + self.closing)
