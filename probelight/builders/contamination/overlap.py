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
    window_hashes,
    words_of,
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
        self._found = {n: np.zeros(len(grams.words), dtype=np.bool_) for n in grams.wanted}
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
        before = len(self._tail)
        known = map(self._grams.ids.get, words, repeat(UNKNOWN))
        ids = np.concatenate([self._tail, np.fromiter(known, np.int64, len(words))])
        for size, wanted in self._grams.wanted.items():
            first = max(0, before - size + 1)  # those before it were looked at
            # (M,) places in the text and in the probe at which the same words begin.
            at, places = wanted.found_in(window_hashes(ids[first:], size))
            offsets = np.arange(size)
            pieces = ids[first:][at[:, None] + offsets]
            same = (pieces == self._grams.words[places[:, None] + offsets]).all(axis=1)
            at, places = at[same], places[same]
            self._found[size][places] = True
            earlier = np.zeros_like(at)
            if size == self._grams.size:
                earlier = self._earlier(at, places, max(0, len(ids) - first - size + 1))
            begin = at - earlier + first - before
            self._keep_longest(begin, places - earlier, earlier + size, where)
        most = max(self._grams.wanted, default=1)
        self._tail = ids[max(0, len(ids) - most + 1) :]

    def overlaps(self) -> list[Overlap]:
        """Return what was found of each item."""
        by_text = [self._overlap(text) for text in range(len(self._grams.texts))]
        return [by_text[text] for text in self._grams.text_of]

    def _overlap(self, text: int) -> Overlap:
        grams, windows = self._grams, self._grams.own[text]
        words = grams.texts[text].words
        start = grams.starts[text]
        if not words:
            return Overlap(None, None, None)

        def share(found: NDArray[np.bool_]) -> float | None:
            return float(found.mean()) if len(found) else None

        def found_whole(length: int) -> float:
            return float(length in self._found and self._found[length][start])

        if len(windows):
            found = self._found[grams.size][windows]
            behind, end = start + grams.texts[text].start, start + grams.texts[text].end
            has_answer = (windows + grams.size > behind) & (windows < end)
            shares = share(found), share(found[~has_answer]), share(found[has_answer])
        else:
            shares = found_whole(len(words)), None, found_whole(len(words))
        every, stem, answer = shares
        if length := grams.whole_stem(text):
            stem = found_whole(length)
        longest, begin = int(self._longest[text]), int(self._begin[text]) - start
        piece = " ".join(words[begin : begin + longest])
        return Overlap(every, stem, answer, longest, piece, self._where[text])

    def _earlier(self, at: Ints, places: Ints, num: int) -> Ints:
        """Return (M,) how many n-grams right before a match are matches too, word by word.

        `at` and `places` (M,) are its places in the text, from the first of `num` new n-grams, and
        in the probe.
        """
        order = np.lexsort((at, places - at))
        at, diagonal = at[order], (places - at)[order]
        number = np.arange(len(at))
        begins = np.ones(len(at), dtype=np.bool_)
        begins[1:] = (np.diff(diagonal) != 0) | (np.diff(at) != 1)
        begin = np.maximum.accumulate(np.where(begins, number, 0)) if len(at) else number
        earlier = number - begin
        for run in np.flatnonzero(begins & (at == 0)):
            earlier[begin == run] += self._runs.get(int(diagonal[run]), 0)
        last = at == num - 1
        pairs = zip(diagonal[last] + num, earlier[last] + 1, strict=True)
        self._runs = {int(place): int(length) for place, length in pairs}
        result = np.empty_like(earlier)
        result[order] = earlier
        return result

    def _keep_longest(
        self, begin: Ints, places: Ints, lengths: Ints, where: Callable[[int], str]
    ) -> None:
        """Keep the longest piece of each text of the probe, and where it was found."""
        texts = np.searchsorted(self._starts, places, "right") - 1
        order = np.lexsort((begin, -lengths, texts))
        _, first = np.unique(texts[order], return_index=True)
        for match in order[first]:
            text = texts[match]
            if lengths[match] > self._longest[text]:
                self._longest[text], self._begin[text] = lengths[match], places[match]
                self._where[text] = where(max(0, int(begin[match])))


def scan_records(scan: Scan, records: Iterable[Record], wrong_choices: bool = True) -> None:
    """Search items with each of their choices, as a trainer reads them, or with the gold alone."""
    words, begins, names = list[str](), list[int](), list[str]()

    def where(place: int) -> str:
        return names[bisect_right(begins, place) - 1]

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
    for text in _parts(path, watched):
        lines = [words_of(line_text) for line_text in text.split("\n")]
        ends = list(accumulate(map(len, lines)))

        def where(place: int, ends: list[int] = ends, line: int = line) -> str:
            return f"{path}:{line + bisect_right(ends, place)}"

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


def _parts(path: str | Path, watched: Watched | None) -> Iterator[str]:
    """Yield the text of a file in parts that end between words."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    for number, block in enumerate(read_blocks(path, LARGE, watched)):
        if number == 0 and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise RecordError(f"{path}: this is UTF-16; save the file as UTF-8")
        rest += decoder.decode(block)
        cut = max(rest.rfind("\n"), rest.rfind(" ")) + 1
        if cut or len(rest) > _LONGEST:
            yield rest[: cut or None]
            rest = rest[cut:] if cut else ""
    yield rest + decoder.decode(b"", final=True)


@dataclass(frozen=True)
class Shared:
    """What an item shares with items of another probe; None where it names nothing."""

    concept: bool | None  # one of them asks about the same concept
    answer: bool | None  # one of them has the same concept as its right answer


def answer_of(record: Record) -> str:
    """Return the concept of the right answer, a synset or a sense of a word; "" if unnamed."""
    chain = _ARROW.split(str(record.meta.get("chain") or ""))
    return chain[-1] if len(chain) == 2 else str(record.meta.get("sense") or "")


def shared_concepts(records: Sequence[Record], others: Sequence[Record]) -> list[Shared]:
    """Return what each item shares with the others."""
    concepts = {cluster_of(other) for other in others} - {""}
    answers = {answer_of(other) for other in others} - {""}
    found = []
    for record in records:
        concept, answer = cluster_of(record), answer_of(record)
        found.append(
            Shared(
                concept in concepts if concept and concepts else None,
                answer in answers if answer and answers else None,
            )
        )
    return found
