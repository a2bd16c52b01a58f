"""Unigram distributions of corpora, from files that count words (Talmor 2020, section 5)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from probelight.io.errors import RecordError
from probelight.io.files import read_lines
from probelight.io.limits import WORDS
from probelight.probes.content_words import content_words
from probelight.probes.record import Record


@dataclass(frozen=True)
class Unigrams:
    """Counts of the words asked for, and of all words together.

    Attributes:
        counts: The words asked for that the corpus has.
        num_tokens: Running words of the whole corpus.
        num_types: Different words of the whole corpus.
    """

    counts: Mapping[str, int]
    num_tokens: int
    num_types: int

    def log_probability(self, word: str) -> float:
        """Natural logarithm of (count + 1) / (tokens + types + 1): add-one, one type unseen."""
        seen = self.counts.get(word, 0)
        return math.log(seen + 1) - math.log(self.num_tokens + self.num_types + 1)


@dataclass(frozen=True)
class CorpusFit:
    """How common a probe's content words are in a corpus.

    Attributes:
        mean_log_probability: Mean over the running content words.
        num_words: How many they are.
        num_unseen: How many of them the corpus does not have.
    """

    mean_log_probability: float
    num_words: int
    num_unseen: int


def read_unigrams(path: str | Path, words: Collection[str]) -> Unigrams:
    """Reads a count file: a word, a tab or spaces, and its count on each line.

    Words are counted in lower case. Only those asked for are kept, so the file may be large.

    Args:
        path: Plain text, .gz or .zip.
        words: The words whose counts are needed, in lower case.

    Raises:
        RecordError: If a line is no word with a count, or there is none; it names file and line.
        FileNotFoundError: If there is no such file.
    """
    wanted = frozenset(words)
    counts: Counter[str] = Counter()
    num_tokens = num_types = 0
    for number, line in read_lines(path, limit=WORDS):
        if not line.strip():
            continue
        parts = line.rsplit(maxsplit=1)
        if len(parts) != 2 or not parts[1].isdecimal():
            raise RecordError(
                f"{path}:{number}: {line[:60]!r} is not a word and its count, divided by a tab or "
                "spaces"
            )
        count = int(parts[1])
        num_tokens += count
        num_types += 1
        word = parts[0].strip().lower()
        if word in wanted:
            counts[word] += count
    if num_tokens == 0:
        raise RecordError(f"{path}: no word is counted here")
    return Unigrams(dict(counts), num_tokens, num_types)


def words_of_records(records: Iterable[Record]) -> Counter[str]:
    """The running content words of stems and choices, with their counts."""
    found: Counter[str] = Counter()
    for record in records:
        found.update(content_words(" ".join((record.stem, *record.choices))))
    return found


def corpus_fit(words: Mapping[str, int], corpus: Unigrams) -> CorpusFit:
    """Mean log probability of a probe's content words in a corpus.

    Args:
        words: Word to the number of times the probe has it (`words_of_records`).
        corpus: Counts of at least these words.

    Raises:
        ValueError: If there are no words.
    """
    total = sum(words.values())
    if not total:
        raise ValueError("the probe has no content words")
    log_sum = math.fsum(n * corpus.log_probability(word) for word, n in words.items())
    unseen = sum(n for word, n in words.items() if not corpus.counts.get(word))
    return CorpusFit(log_sum / total, total, unseen)
