"""Records to texts with an answer, of which a word is masked from the piece that is scored on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from probelight.encoding.encoded_set import Ids, distinct
from probelight.encoding.likelihood import (
    FilledText,
    LikelihoodEncoder,
    LikelihoodSet,
    Spans,
    tokens_of,
)
from probelight.probes.record import Record


@dataclass(frozen=True)
class WordwiseText(FilledText):
    """A text with an answer in it.

    Attributes:
        word_ends: Of each of the answer's tokens, the token behind the last of its word.
    """

    word_ends: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class WordwiseSet(LikelihoodSet):
    """Texts with an answer in them, and where the words of the answer end."""

    texts: tuple[WordwiseText, ...]

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """As `LikelihoodSet.inputs`; on answers, `masked_until` (P, L) is behind a token's word."""
        batch = super().inputs(items)
        choices = self.choice_text[items]
        found, _ = distinct(choices, choices >= 0)
        until = torch.zeros_like(batch["input_ids"])
        offset = len(self.template.parts[0])
        for row, text in enumerate(self.texts[i] for i in found):
            answer = slice(offset + text.begin, offset + text.end)
            until[row, answer] = offset + torch.tensor(text.word_ends)
        return {**batch, "masked_until": until}


class WordwiseEncoder(LikelihoodEncoder):
    """As `LikelihoodEncoder`, for the form of pseudo-log-likelihoods of Kauf and Ivanova (2023).

    With a piece the later pieces of its word are masked, also those behind the answer. Words are
    the tokenizer's own (`word_ids()`; to some, punctuation is part of the word before it), but
    white space always ends one: some tokenizers count a whole text as a word. What a tokenizer
    counts to no word is one by itself.
    """

    makes = WordwiseSet

    def _tokenised(
        self, places: Sequence[tuple[str, int, int]], owners: Sequence[tuple[Record, str]]
    ) -> list[FilledText]:
        texts = super()._tokenised(places, owners)
        if not texts:
            return texts
        encoded = self.tokenizer(
            [text for text, _, _ in places],
            add_special_tokens=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        found: list[FilledText] = []
        for row, (text, (whole, *answer)) in enumerate(zip(texts, places, strict=True)):
            spans = encoded["offset_mapping"][row]
            first, last = tokens_of(spans, (answer[0], answer[1]))
            cut = first - text.begin
            ends = word_ends(whole, spans, encoded.word_ids(row))[first:last]
            kept = tuple(min(end - cut, len(text.ids)) for end in ends)
            found.append(WordwiseText(text.ids, text.begin, text.end, text.was_cut, kept))
        return found


def word_ends(text: str, spans: Spans, words: Sequence[int | None]) -> list[int]:
    """Of each token, the token behind the last of its word; see `WordwiseEncoder`.

    Args:
        text: The text.
        spans: The characters of each token, from and to.
        words: The tokenizer's number of each token's word, none for a token of no word.
    """
    ends = list(range(1, len(spans) + 1))
    for i in reversed(range(len(spans) - 1)):
        # A token that brings its leading space along begins with it, or right behind it.
        between = text[spans[i][1] : spans[i + 1][0] + 1]
        same = words[i] is not None and words[i] == words[i + 1]
        if same and not any(map(str.isspace, between)):
            ends[i] = ends[i + 1]
    return ends
