"""Whole texts with an answer in them, for scoring by likelihood.

Shapes: B items, K choices, P distinct texts, L tokens, N items of a set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    white_space_notice,
)
from probelight.encoding.tokens import Template, longest_first
from probelight.io.errors import RecordError
from probelight.probes.record import MASK, Record

Spans = Sequence[Sequence[int]]  # the characters of each token, from and to
TOO_LONG = "raise --model.max_length if the model supports it, or leave the item out"


@dataclass(frozen=True)
class FilledText:
    """A text with an answer in it."""

    ids: Ids  # (T,), without special tokens
    begin: int  # first token of the answer
    end: int  # behind its last token
    was_cut: bool
    has_foreign_letters: bool = False  # whether a token of the answer also holds some of the stem
    word_ends: tuple[int, ...] = ()  # of the answer's tokens: the token behind each one's word


@dataclass(frozen=True, kw_only=True)
class LikelihoodSet(EncodedSet):
    """Texts with an answer in them; `num_sequences` is the number of answer tokens to mask."""

    padding: Padding
    texts: tuple[FilledText, ...]
    choice_text: Ids  # (N, K) index of each choice's text, -1 for no choice
    template: Template

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return `input_ids` etc. and `answer_mask` (P, L) of the distinct texts, True on answers.

        Also `pair_index` and `choice_mask` (B, K), and where words matter `masked_until` (P, L):
        for each token of an answer, the place behind its word.
        """
        choices = self.choice_text[items]
        exists = choices >= 0
        text_indices, pair_index = distinct(choices, exists)
        texts = [self.texts[i] for i in text_indices]
        batch = self.padding.apply([self.template.assemble(text.ids) for text in texts])
        answer_mask = torch.zeros(batch["input_ids"].shape, dtype=torch.bool)
        until = torch.zeros_like(batch["input_ids"])
        offset = len(self.template.special_ids[0])
        for row, text in enumerate(texts):
            answer = slice(offset + text.begin, offset + text.end)
            answer_mask[row, answer] = True
            if text.word_ends:
                until[row, answer] = offset + torch.tensor(text.word_ends)
        if until.any():
            batch["masked_until"] = until
        return {
            **batch,
            "answer_mask": answer_mask,
            "pair_index": pair_index,
            "choice_mask": torch.from_numpy(exists),
        }


class LikelihoodEncoder:
    """Encodes each choice in its place: the mask of the stem, or behind the stem and a space.

    Where the stem is empty, the choice is the whole text. Stem and choice are tokenised as one
    text, so a choice gets the pieces that it has in running text. Of a text longer than
    `max_length`, special tokens included, text around the answer is cut, the longer side first; the
    answer stays whole.

    With `by_words` it notes where words end, for the pseudo-log-likelihoods of Kauf and Ivanova
    (2023): with a piece the later pieces of its word are masked, also those behind the answer.
    Words are the tokenizer's own (`word_ids()`; to some, punctuation is part of the word before
    it), but white space always ends one: some tokenizers count a whole text as a word. What a
    tokenizer counts to no word is one by itself.

    `template` and `padding` are the tokenizer's own unless others are given.
    """

    def __init__(
        self,
        tokenizer: Any,
        max_length: int = 256,
        by_words: bool = False,
        template: Template | None = None,
        padding: Padding | None = None,
    ) -> None:
        if not tokenizer.is_fast:
            raise ValueError(
                f"{type(tokenizer).__name__} does not report which characters a token covers; "
                "likelihoods of answers need a fast tokenizer"
            )
        self.tokenizer = tokenizer
        self.by_words = by_words
        self.max_length = min(max_length, tokenizer.model_max_length)
        self.cache_dir: str | Path | None = None  # a text is a stem and a choice: too many to keep
        self.template = template or Template.of(tokenizer, 1)
        self.padding = padding or Padding.of(tokenizer)

    def num_tokens(self, records: Sequence[Record]) -> list[list[int]]:
        """Return how many tokens the score of each choice of each record sums."""
        encoded = self.encode(records)
        return [
            [encoded.texts[i].end - encoded.texts[i].begin for i in row if i >= 0]
            for row in encoded.choice_text
        ]

    def encode(self, records: Sequence[Record]) -> LikelihoodSet:
        """Tokenise records; refuse an answer without tokens, or alone longer than `max_length`."""
        width = max((len(record.choices) for record in records), default=0)
        choice_text = np.full((len(records), width), -1, dtype=np.int64)
        filled_texts: dict[tuple[str, int, int], int] = {}
        owners: list[tuple[Record, str]] = []
        for row, record in enumerate(records):
            for column, choice in enumerate(record.choices):
                filled = self._fill(record, choice)
                if filled not in filled_texts:
                    owners.append((record, choice))
                choice_text[row, column] = filled_texts.setdefault(filled, len(filled_texts))
        texts = self._tokenised(list(filled_texts), owners)
        sizes = np.array([len(t.ids) for t in texts] + [0])  # -1, no choice, has no tokens
        num_scored = np.array([t.end - t.begin for t in texts] + [0])[choice_text].sum(axis=1)
        lengths = sizes[choice_text].max(axis=1, initial=0) + self.template.num_special
        notices: tuple[str, ...] = ()
        if num_cut := sum(text.was_cut for text in texts):
            notices += (
                f"{num_cut} of {len(texts)} texts were cut to {self.max_length} tokens around "
                "their answer",
            )
        unknown = self.tokenizer.unk_token_id
        if num_unknown := sum(unknown in text.ids[text.begin : text.end] for text in texts):
            notices += (
                f"{num_unknown} of {len(texts)} answers contain text that the tokenizer does not "
                f"know; they are scored with {self.tokenizer.unk_token} instead",
            )
        straddled = [[texts[i].has_foreign_letters for i in row if i >= 0] for row in choice_text]
        return LikelihoodSet(
            labels=np.array([record.answer for record in records], dtype=np.int64),
            lengths=lengths,
            num_sequences=self._num_sequences(num_scored, lengths),
            positions=list(range(len(records))),
            notices=notices + straddling_notice(records, straddled) + white_space_notice(records),
            padding=self.padding,
            texts=tuple(texts),
            choice_text=choice_text,
            template=self.template,
        )

    def _num_sequences(self, num_scored: Ids, lengths: Ids) -> Ids:
        """Return how many sequences (N,) each item takes: one per token of an answer."""
        return num_scored

    def _fill(self, record: Record, choice: str) -> tuple[str, int, int]:
        """Return the text with the choice filled in, and which characters are scored."""
        context, mask, after = record.stem.rpartition(MASK)
        if not mask and record.stem:
            context, after = record.stem.rstrip() + " ", ""
        text = choice.strip()
        return context + text + after, len(context), len(context) + len(text)

    def _tokenised(
        self, filled_texts: Sequence[tuple[str, int, int]], owners: Sequence[tuple[Record, str]]
    ) -> list[FilledText]:
        if not filled_texts:
            return []
        encoded = self.tokenizer(
            [text for text, _, _ in filled_texts],
            add_special_tokens=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        texts = []
        for row, ((full_text, *answer), owner) in enumerate(zip(filled_texts, owners, strict=True)):
            ids, spans = encoded["input_ids"][row], encoded["offset_mapping"][row]
            span = (answer[0], answer[1])
            text = self._window(np.asarray(ids, dtype=np.int64), spans, span, owner)
            text = replace(text, has_foreign_letters=has_foreign_letters(full_text, spans, span))
            if self.by_words:
                first, last = tokens_of(spans, span)
                ends = word_ends(full_text, spans, encoded.word_ids(row))[first:last]
                num_dropped = first - text.begin
                cut_ends = tuple(min(end - num_dropped, len(text.ids)) for end in ends)
                text = replace(text, word_ends=cut_ends)
            texts.append(text)
        return texts

    def _window(
        self, ids: Ids, spans: Spans, answer: tuple[int, int], owner: tuple[Record, str]
    ) -> FilledText:
        """Find the answer's tokens by its characters, and cut what is too long around them."""
        record, choice = owner
        first, last = answer_tokens(spans, answer, owner)
        room = self.max_length - self.template.num_special - (last - first)
        if room < 0:
            raise RecordError(
                f"{record.where}: the choice {choice[:60]!r} has {last - first} tokens, more than "
                f"max_length={self.max_length} allows; {TOO_LONG}"
            )
        num_before, num_after = longest_first(first, len(ids) - last, room)
        window = ids[first - num_before : last + num_after]
        return FilledText(window, num_before, num_before + last - first, len(window) < len(ids))


def tokens_of(spans: Spans, answer: tuple[int, int]) -> tuple[int, int]:
    """Return begin and end of the tokens that hold a character of the answer; equal without any."""
    begin, end = answer
    inside = [i for i, (first, last) in enumerate(spans) if first < end and last > begin]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def has_foreign_letters(text: str, spans: Spans, answer: tuple[int, int]) -> bool:
    """Return whether a token of the answer also holds a letter of the text around it."""
    first, last = tokens_of(spans, answer)
    if first == last:
        return False
    (begin, end), (first_character, last_character) = answer, (spans[first][0], spans[last - 1][1])
    return bool((text[first_character:begin] + text[end:last_character]).strip())


def straddling_notice(
    records: Sequence[Record], straddled: Sequence[Sequence[bool]]
) -> tuple[str, ...]:
    """Say in how many items a token spans stem and answer for some of the choices alone.

    `straddled` says of which choices of each record.
    """
    uneven = [record for record, row in zip(records, straddled, strict=True) if len({*row}) > 1]
    if not uneven:
        return ()
    return (
        f"{len(uneven)} of {len(records)} items have a token that spans stem and answer for one "
        f"choice and not for another (first: {uneven[0].where}), so letters of the stem are scored "
        "with some choices alone; a space between stem and answer avoids it",
    )


def answer_tokens(
    spans: Spans, answer: tuple[int, int], owner: tuple[Record, str]
) -> tuple[int, int]:
    """Return `tokens_of` an answer; refuse the owner, an item and its choice, if there are none."""
    first, last = tokens_of(spans, answer)
    if first == last:
        record, choice = owner
        raise RecordError(f"{record.where}: the choice {choice!r} has no tokens")
    return first, last


def word_ends(text: str, spans: Spans, words: Sequence[int | None]) -> list[int]:
    """Return, for each token, the token behind the last of its word; see `LikelihoodEncoder`.

    `words` has the tokenizer's number of each token's word, None for a token of no word.
    """
    ends = list(range(1, len(spans) + 1))
    for i in reversed(range(len(spans) - 1)):
        # A token that brings its leading space along begins with it, or right behind it.
        between = text[spans[i][1] : spans[i + 1][0] + 1]
        is_same_word = words[i] is not None and words[i] == words[i + 1]
        if is_same_word and not any(map(str.isspace, between)):
            ends[i] = ends[i + 1]
    return ends
