"""Texts as words, for the baselines over word vectors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from probelight.encoding.encoded_set import (
    CandidateSet,
    EncodedSet,
    Ids,
    distinct,
    distinct_texts,
    existing_choices,
    masked_stem,
    padding_notice,
)
from probelight.io.errors import RecordError
from probelight.probes.record import MASK, Record

PADDING_ID = 0
NUM_TOKENS = 20  # Talmor 2020, section 2.3

_WORD = re.compile(r"\[MASK\]|[^\W\d_]+(?:'[^\W\d_]+)*|\d+(?:[.,]\d+)*|[^\w\s]|_")
_NUM_EXAMPLES = 5


class WordIndex(Protocol):
    """The words that a model has a row for."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the results should know about the origin of the rows."""

    def ids(self, words: Sequence[str]) -> Ids:
        """Return the rows (W,) of words, from 1 on; a word that has none gets one."""

    def unknown(self, words: Iterable[str]) -> set[str]:
        """Return those of these words, all with a row, for which there was no vector."""


def split_words(text: str, *, lower: bool = True) -> list[str]:
    """Return the words of a text, in lower case unless they are wanted as they are.

    A run of letters is a word, an apostrophe inside it included; a number is one with its inner
    commas and points; every other sign is alone. `[MASK]` is one word, in capitals.
    """
    words: list[str] = _WORD.findall(text)
    return [word.lower() if lower and word != MASK else word for word in words]


def unknown_words(counts: Counter[str], words: WordIndex) -> tuple[str, ...]:
    """Say how many of the words counted have no vector, how often they occur, and the first."""
    counts = Counter({word: count for word, count in counts.items() if word != MASK})
    missing = words.unknown(counts)
    if not missing:
        return words.notices
    ranked = sorted(missing, key=lambda word: (-counts[word], word))
    share = sum(counts[word] for word in missing) / counts.total()
    examples = ", ".join(ranked[:_NUM_EXAMPLES]) + (", ..." if len(ranked) > _NUM_EXAMPLES else "")
    return (
        *words.notices,
        f"{len(missing)} of {len(counts)} distinct words have no word vector "
        f"({share:.1%} of the words read): {examples}",
    )


@dataclass(frozen=True, kw_only=True)
class WordMaskedSet(CandidateSet):
    """Sentences of a fixed number of words, and the rows of their candidates."""

    word_ids: Ids  # (N, T) the first T words, then `PADDING_ID`

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return `input_ids` (B, T), `candidate_ids` and `choice_mask` (B, K)."""
        return {"input_ids": torch.from_numpy(self.word_ids[items]), **super().inputs(items)}


class WordMaskedEncoder:
    """Encodes MC-MLM records for the MLM-baseline of Talmor et al. 2020: first `num_tokens` words.

    A candidate is one entry of the model's answers, whatever its words, so no record is skipped.
    """

    def __init__(
        self, words: WordIndex, candidates: WordIndex, num_tokens: int = NUM_TOKENS
    ) -> None:
        self.words = words
        self.candidates = candidates
        self.num_tokens = num_tokens
        self.cache_dir: str | Path | None = None  # splitting at spaces is not worth keeping

    def encode(self, records: Sequence[Record]) -> EncodedSet:
        """Look up the words of records; refuse one without one mask, or with equal choices."""
        sentences = [split_words(masked_stem(record)) for record in records]
        num_cut = sum(len(words) > self.num_tokens for words in sentences)
        sentences = [words[: self.num_tokens] for words in sentences]
        num_lost = sum(MASK not in words for words in sentences)
        counts = Counter(word for words in sentences for word in words)
        # All at once: each call may read the whole file of vectors.
        self.words.ids(list(counts))
        word_ids = np.full((len(records), self.num_tokens), PADDING_ID, dtype=np.int64)
        exists = existing_choices(records)
        candidates = np.zeros(exists.shape, dtype=np.int64)
        for row, (record, words) in enumerate(zip(records, sentences, strict=True)):
            word_ids[row, : len(words)] = self.words.ids(words)
            names = [" ".join(choice.lower().split()) for choice in record.choices]
            if len(set(names)) < len(names):
                raise RecordError(
                    f"{record.where}: two choices are the same word: {', '.join(names)}"
                )
            candidates[row, : len(names)] = self.candidates.ids(names)
        notices = unknown_words(counts, self.words)
        if num_cut:
            notices += (
                f"{num_cut} of {len(records)} sentences were cut to their first "
                f"{self.num_tokens} words" + f", and {num_lost} lost their mask" * (num_lost > 0),
            )
        return WordMaskedSet(
            labels=np.array([record.answer for record in records], dtype=np.int64),
            lengths=np.full(len(records), self.num_tokens, dtype=np.int64),
            num_sequences=np.ones(len(records), dtype=np.int64),
            positions=list(range(len(records))),
            notices=notices,
            word_ids=word_ids,
            candidate_ids=candidates,
            choice_mask=exists,
        )


@dataclass(frozen=True, kw_only=True)
class WordPairSet(EncodedSet):
    """Questions and their choices as words."""

    texts: list[Ids]  # rows of the words of each distinct text
    stem_text: Ids  # (N,) index of the question's text
    choice_text: Ids  # (N, K) those of the answers, -1 for no choice

    def inputs(self, items: Ids) -> dict[str, Tensor]:
        """Return the distinct texts, `question_ids` (Q, L) and `answer_ids` (A, L'), padded.

        Also `pair_question` and `pair_answer` (P,), rows of these for each distinct pair, and
        `pair_index` and `choice_mask` (B, K).
        """
        choices = self.choice_text[items]
        mask = choices >= 0
        questions, question = np.unique(self.stem_text[items], return_inverse=True)
        answers, answer = distinct(choices, mask)
        pairs, pair_index = distinct(question[:, None] * len(answers) + answer.numpy(), mask)
        return {
            "question_ids": self._padded(questions),
            "answer_ids": self._padded(answers),
            "pair_question": torch.from_numpy(pairs // max(1, len(answers))),
            "pair_answer": torch.from_numpy(pairs % max(1, len(answers))),
            "pair_index": pair_index,
            "choice_mask": torch.from_numpy(mask),
        }

    def _padded(self, texts: Ids) -> Tensor:
        rows = [self.texts[text] for text in texts]
        # A place for padding where all texts are empty: a model needs some input.
        width = max([1, *map(len, rows)])
        ids = np.full((len(rows), width), PADDING_ID, dtype=np.int64)
        for row, words in enumerate(rows):
            ids[row, : len(words)] = words
        return torch.from_numpy(ids)


class WordPairEncoder:
    """Encodes MC-QA records as pairs of word sequences, question and answer.

    The words are those that `split` gives, at most `max_length` of a text. `num_choices` is that of
    `SentenceChoiceEncoder`.
    """

    def __init__(
        self,
        words: WordIndex,
        max_length: int = 256,
        num_choices: int | None = None,
        split: Callable[[str], list[str]] = split_words,
    ) -> None:
        self.words = words
        self.split = split
        self.max_length = max_length
        self.num_choices = num_choices
        self.cache_dir: str | Path | None = None  # splitting at spaces is not worth keeping

    def encode(self, records: Sequence[Record]) -> EncodedSet:
        """Look up the words of records; refuse one with more choices than `num_choices`."""
        full_texts, stems, choices = distinct_texts(records, attrgetter("stem"), self.num_choices)
        words = [self.split(text) for text in full_texts]
        num_cut = sum(len(text) > self.max_length for text in words)
        words = [text[: self.max_length] for text in words]
        sizes = np.array([*map(len, words), 0], dtype=np.int64)  # -1, no choice, has no words
        longest = (sizes[stems][:, None] + sizes[choices]).max(axis=1, initial=1)
        counts = Counter(word for text in words for word in text)
        self.words.ids(list(counts))  # all at once: each call may read the whole file of vectors
        texts = [self.words.ids(text) for text in words]
        notices = unknown_words(counts, self.words) + padding_notice(records, self.num_choices)
        if num_cut:
            notices += (f"{num_cut} of {len(words)} texts were cut to {self.max_length} words",)
        return WordPairSet(
            labels=np.array([record.answer for record in records], dtype=np.int64),
            lengths=longest,
            num_sequences=(choices >= 0).sum(axis=1),
            positions=list(range(len(records))),
            notices=notices,
            texts=texts,
            stem_text=stems,
            choice_text=choices,
        )
