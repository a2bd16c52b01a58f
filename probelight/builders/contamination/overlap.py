"""Searching texts for a probe's n-grams: which part of each item another text has.

A `Scan` is fed the text in parts, from items or a file; `shared_concepts` compares items by the
concepts that they name.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from probelight.builders.contamination.grams import (
    UNKNOWN,
    Ints,
    ProbeGrams,
    item_text,
    split_words,
    window_hashes,
)
from probelight.builders.hygiene import cluster_of
from probelight.io.errors import RecordError
from probelight.io.files import LARGE, Watched, read_blocks
from probelight.probes.record import Record

_ARROW = re.compile(r"=>|<=")
_MOST_WORDS = 200_000  # fed at once
_LONGEST = 1 << 24  # characters without a blank, which are cut
_LOST = "\ufffd"


@dataclass(frozen=True)
class Overlap:
    """The part of an item that another text has; an item looked for whole has one n-gram."""

    share: float | None  # of its n-grams, in the other text; None for an item without words
    stem: float | None  # the same of n-grams within the stem; None if there are none
    answer: float | None  # the same of n-grams with a word of the right answer
    longest: int = 0  # words of the longest common piece
    piece: str = ""
    where: str = ""  # the place where the piece was found first


class Scan:
    """Finds n-grams in one text, or in all texts of one source, fed to it in parts."""

    def __init__(self, grams: ProbeGrams) -> None:
        self._grams = grams
        self._is_matched = {n: np.zeros(len(grams.words), dtype=np.bool_) for n in grams.indexes}
        self._longest = np.zeros(len(grams.texts), dtype=np.int64)
        self._begin = np.zeros(len(grams.texts), dtype=np.int64)  # in the words of the probe
        self._where = [""] * len(grams.texts)
        self._tail = np.empty(0, np.int64)  # words that a piece may go on from
        self._runs: dict[int, int] = {}  # where pieces go on, and their n-grams until there
        self._starts = np.array(grams.starts)

    def feed(self, words: Sequence[str], where: Callable[[int], str]) -> None:
        """Search the next words, which continue those fed before; "" divides texts.

        `where` names the place of a word, given its index.
        """
        if not words:
            return
        num_tail_words = len(self._tail)
        word_ids = map(self._grams.ids.get, words, repeat(UNKNOWN))
        ids = np.concatenate([self._tail, np.fromiter(word_ids, np.int64, len(words))])
        for size, index in self._grams.indexes.items():
            first = max(0, num_tail_words - size + 1)  # those before it were looked at
            # (M,) places in the text and in the probe at which the same words begin.
            text_starts, probe_starts = index.matches(window_hashes(ids[first:], size))
            offsets = np.arange(size)
            pieces = ids[first:][text_starts[:, None] + offsets]
            is_equal = (pieces == self._grams.words[probe_starts[:, None] + offsets]).all(axis=1)
            text_starts, probe_starts = text_starts[is_equal], probe_starts[is_equal]
            self._is_matched[size][probe_starts] = True
            earlier = np.zeros_like(text_starts)
            if size == self._grams.size:
                num_new = max(0, len(ids) - first - size + 1)
                earlier = self._num_earlier(text_starts, probe_starts, num_new)
            begin = text_starts - earlier + first - num_tail_words
            self._keep_longest(begin, probe_starts - earlier, earlier + size, where)
        most = max(self._grams.indexes, default=1)
        self._tail = ids[max(0, len(ids) - most + 1) :]

    def overlaps(self) -> list[Overlap]:
        """Return what was found of each item."""
        by_text = [self._overlap(text) for text in range(len(self._grams.texts))]
        return [by_text[text] for text in self._grams.text_of]

    def _overlap(self, text: int) -> Overlap:
        grams, windows = self._grams, self._grams.specific_starts[text]
        words = grams.texts[text].words
        start = grams.starts[text]
        if not words:
            return Overlap(None, None, None)

        def share(is_matched: NDArray[np.bool_]) -> float | None:
            return float(is_matched.mean()) if len(is_matched) else None

        def whole_share(length: int) -> float:
            return float(length in self._is_matched and self._is_matched[length][start])

        if len(windows):
            is_matched = self._is_matched[grams.size][windows]
            answer_start = start + grams.texts[text].start
            answer_end = start + grams.texts[text].end
            has_answer = (windows + grams.size > answer_start) & (windows < answer_end)
            total = share(is_matched)
            stem, answer = share(is_matched[~has_answer]), share(is_matched[has_answer])
        else:
            total, stem, answer = whole_share(len(words)), None, whole_share(len(words))
        if stem_length := grams.whole_stem_length(text):
            stem = whole_share(stem_length)
        longest, begin = int(self._longest[text]), int(self._begin[text]) - start
        piece = " ".join(words[begin : begin + longest])
        return Overlap(total, stem, answer, longest, piece, self._where[text])

    def _num_earlier(self, text_starts: Ints, probe_starts: Ints, num: int) -> Ints:
        """Return (M,) how many n-grams right before each match match too.

        `text_starts` (M,) count from the first of `num` new n-grams, `probe_starts` (M,) from the
        probe's first word.
        """
        order = np.lexsort((text_starts, probe_starts - text_starts))
        text_starts, diagonal = text_starts[order], (probe_starts - text_starts)[order]
        number = np.arange(len(text_starts))
        begins = np.ones(len(text_starts), dtype=np.bool_)
        begins[1:] = (np.diff(diagonal) != 0) | (np.diff(text_starts) != 1)
        begin = np.maximum.accumulate(np.where(begins, number, 0)) if len(text_starts) else number
        earlier = number - begin
        for run in np.flatnonzero(begins & (text_starts == 0)):
            earlier[begin == run] += self._runs.get(int(diagonal[run]), 0)
        last = text_starts == num - 1
        pairs = zip(diagonal[last] + num, earlier[last] + 1, strict=True)
        self._runs = {int(end): int(length) for end, length in pairs}
        in_given_order = np.empty_like(earlier)
        in_given_order[order] = earlier
        return in_given_order

    def _keep_longest(
        self, begin: Ints, probe_starts: Ints, lengths: Ints, where: Callable[[int], str]
    ) -> None:
        """Keep the longest piece of each text of the probe, and where it was found."""
        texts = np.searchsorted(self._starts, probe_starts, "right") - 1
        order = np.lexsort((begin, -lengths, texts))
        _, first = np.unique(texts[order], return_index=True)
        for match in order[first]:
            text = texts[match]
            if lengths[match] > self._longest[text]:
                self._longest[text], self._begin[text] = lengths[match], probe_starts[match]
                self._where[text] = where(max(0, int(begin[match])))


def scan_records(scan: Scan, records: Iterable[Record], wrong_choices: bool = True) -> None:
    """Search items with each of their choices, as a trainer reads them, or with the gold alone."""
    words, begins, names = list[str](), list[int](), list[str]()

    def where(word_index: int) -> str:
        return names[bisect_right(begins, word_index) - 1]

    for record in records:
        begins.append(len(words))
        names.append(record.where)
        for choice in record.choices if wrong_choices else [record.gold]:
            words += [*item_text(record, choice).words, ""]
        if len(words) > _MOST_WORDS:
            scan.feed(words, where)
            words, begins, names = [], [], []
    scan.feed(words, where)


def scan_text(scan: Scan, path: str | Path, watched: Watched | None = None) -> list[str]:
    """Search a UTF-8 text file (plain, .gz or .zip), streamed; return notices about the file.

    Words go on over line ends, as in wrapped text. A RecordError says that the file is not UTF-8,
    damaged or without words. For `watched` see `probelight.io.files.open_content`.
    """
    line = 1
    num_words = num_lost = 0
    for text in _text_blocks(path, watched):
        lines = [split_words(line_text) for line_text in text.split("\n")]
        ends = list(accumulate(map(len, lines)))

        def where(word_index: int, ends: list[int] = ends, line: int = line) -> str:
            return f"{path}:{line + bisect_right(ends, word_index)}"

        scan.feed(list(chain.from_iterable(lines)), where)
        line += len(lines) - 1
        num_words += ends[-1]
        num_lost += text.count(_LOST)
    if num_lost > num_words:
        raise RecordError(f"{path}: this is not a text in UTF-8")
    if not num_words:
        raise RecordError(f"{path}: the file has no words")
    lost = f"{path}: {num_lost:,} characters are not UTF-8; they count as spaces"
    return [lost] if num_lost else []


def _text_blocks(path: str | Path, watched: Watched | None) -> Iterator[str]:
    """Yield the text of a file in parts that end between words."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pending = ""
    for number, block in enumerate(read_blocks(path, LARGE, watched)):
        if number == 0 and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise RecordError(f"{path}: this is UTF-16; save the file as UTF-8")
        pending += decoder.decode(block)
        cut = max(pending.rfind("\n"), pending.rfind(" ")) + 1
        if cut or len(pending) > _LONGEST:
            yield pending[: cut or None]
            pending = pending[cut:] if cut else ""
    yield pending + decoder.decode(b"", final=True)


@dataclass(frozen=True)
class Shared:
    """What an item shares with items of another probe; None where it names nothing."""

    concept: bool | None  # one of them asks about the same concept
    answer: bool | None  # one of them has the same concept as its right answer


def answer_of(record: Record) -> str:
    """Return the concept of the right answer, a synset or a sense of a word; "" if unnamed."""
    chain = _ARROW.split(str(record.meta.get("chain") or ""))
    return chain[-1] if len(chain) == 2 else str(record.meta.get("sense") or "")


def shared_concepts(records: Sequence[Record], reference_records: Sequence[Record]) -> list[Shared]:
    """Return what each item shares with the reference items."""
    concepts = {cluster_of(reference) for reference in reference_records} - {""}
    answers = {answer_of(reference) for reference in reference_records} - {""}
    shared = []
    for record in records:
        concept, answer = cluster_of(record), answer_of(record)
        shared.append(
            Shared(
                concept in concepts if concept and concepts else None,
                answer in answers if answer and answers else None,
            )
        )
    return shared
