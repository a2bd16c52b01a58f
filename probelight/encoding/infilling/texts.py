"""The texts with a blank that records are for an encoder-decoder model, and what fills them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from probelight.encoding.candidates import Blank, CandidateTable
from probelight.encoding.encoded_set import Ids, Skipped, skip_notices, white_space_notice
from probelight.encoding.infilling.infilling_set import Infilling
from probelight.encoding.likelihood import tokens_of
from probelight.encoding.token_store import tokenise, unknown_notice
from probelight.io.errors import RecordError
from probelight.probes.record import MASK, Record

Asks = Literal["choices", "entries", "place"]
_ANYTHING = (0,)  # stands where all that could come next is asked for


class Written(NamedTuple):
    """Tokens that the decoder writes: of the text before the blank, and in the blank."""

    before: tuple[int, ...]
    answer: tuple[int, ...]


class PosedTexts:
    """Records with their blanks, tokenised.

    Args:
        tokenizer: The tokenizer.
        form: How the model fills blanks.
        asks: What is asked for, see `InfillingEncoder`.
        records: N records.
        answer_prefix: As in `CandidateTable`.
        cache_dir: Folder of the tokens' cache, if they are to be kept.

    Attributes:
        texts: (N,) the text with a blank of each record, as a place in `store`.
        store: Tokens.
    """

    def __init__(
        self,
        tokenizer: Any,
        form: Infilling,
        asks: Asks,
        records: Sequence[Record],
        answer_prefix: str,
        cache_dir: str | Path | None,
    ) -> None:
        self.tokenizer, self.form, self.asks = tokenizer, form, asks
        self._white_space = white_space_notice(records)
        self.records = [replace(r, choices=tuple(c.strip() for c in r.choices)) for r in records]
        self.stems = [_with_blank(record) for record in records]
        blanks = [Blank.of(stem, self.form.blank) for stem in self.stems]
        self.carriers = [self._carrier(blank) for blank in blanks]
        self.table = CandidateTable(self.tokenizer, answer_prefix)
        for record, carrier in zip(self.records, self.carriers, strict=True):
            for choice in record.choices:
                self.table.add(carrier, choice)
        texts = dict(self.table.texts)
        self.texts = [texts.setdefault(blank.text, len(texts)) for blank in blanks]
        self.store, self._notices = tokenise(self.tokenizer, list(texts), cache_dir)

    def _carrier(self, blank: Blank) -> str:
        # A sentinel ends the word before it.
        return blank.carrier if self.form.repeats_context or blank.carrier[-1:] == " " else ""

    def blank_in_text(self, i: int) -> tuple[int, int]:
        """The number of tokens of a record's text, and the place of its blank among them."""
        ids = self.store[self.texts[i]]
        found = np.flatnonzero(ids == self.form.blank_id)
        if len(found) != 1:
            raise RecordError(
                f"{self.records[i].where}: the text holds {len(found)} blanks once tokenised; does "
                f"it contain {self.form.blank.strip()!r} itself?"
            )
        return len(ids), int(found[0])

    def sorted_out(self) -> tuple[list[int], list[Skipped]]:
        """Places of the records that can be asked, the others with the reason."""
        kept, skipped = [], []
        for i, (record, carrier) in enumerate(zip(self.records, self.carriers, strict=True)):
            problems = self.table.problems(record, carrier, self.store)
            reasons = "; ".join(problems if self.asks == "entries" else ())
            if reasons:
                skipped.append(Skipped(i, record.name, reasons))
            else:
                kept.append(i)
        return kept, skipped

    def candidates(self, kept: Sequence[int], width: int) -> tuple[Ids | None, NDArray[np.bool_]]:
        """(N, K) entries of the choices, if they are asked for, and which choices there are."""
        sizes = np.array([len(self.records[i].choices) for i in kept], dtype=np.int64)
        exists = np.arange(width) < sizes[:, None]
        if self.asks != "entries":
            return None, exists
        ids = np.zeros(exists.shape, dtype=np.int64)
        for row, i in enumerate(kept):
            found = self.table.token_ids(self.records[i], self.carriers[i], self.store)
            ids[row, : len(found)] = found
        return ids, exists

    def blanks_written(self) -> list[list[Written]]:
        """Of each record, what stands before its blank; any token may come in it."""
        return [
            [Written(_plain(self.store[text][: self.blank_in_text(i)[1]]), _ANYTHING)]
            for i, text in enumerate(self.texts)
        ]

    def choices_written(self) -> list[list[Written]]:
        """Of each record and choice, what stands before the blank, and the choice's pieces."""
        if self.form.repeats_context:
            rows = self._filled_texts()
        else:
            rows = [
                [
                    Written((), _plain(self.table.pieces(carrier, choice, self.store)))
                    for choice in one.choices
                ]
                for one, carrier in zip(self.records, self.carriers, strict=True)
            ]
        for record, row in zip(self.records, rows, strict=True):
            for choice, written in zip(record.choices, row, strict=True):
                if not (choice and written.answer):
                    raise RecordError(f"{record.where}: the choice {choice!r} has no tokens")
        return rows

    def _filled_texts(self) -> list[list[Written]]:
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

    def notices(self, kept: Sequence[int], skipped: Sequence[Skipped]) -> tuple[str, ...]:
        """What there is to say of the texts, and of the records skipped."""
        own = [[self.texts[i]] for i in kept]
        said = self._notices + unknown_notice(self.tokenizer, self.store, own, "texts")
        return (*said, *self._white_space, *skip_notices(len(self.records), skipped))


def _plain(ids: NDArray[Any]) -> tuple[int, ...]:
    return tuple(ids.tolist())


def _with_blank(record: Record) -> str:
    """A stem whose last mask is the blank; that of a question is behind it."""
    if MASK in record.stem:
        before, _, after = record.stem.rpartition(MASK)
        return f"{before if before.strip() else ''}{MASK}{after}"
    question = record.stem.rstrip()
    return f"{question} {MASK}" if question else MASK
