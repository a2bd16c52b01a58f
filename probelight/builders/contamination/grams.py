"""The words and n-grams by which an item is compared with another text.

A word is a run of letters and digits: lower case, in Unicode's compatible form (NFKC: a ligature is
its letters, full-width letters are plain ones), without soft hyphens and joiners. All else divides
words: "don't" is two, "1,000" too. In languages without blanks between words, all between two marks
is one word, so n-grams are longer than they look.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from probelight.probes.record import MASK, Record

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]
NGRAM = 8  # words
MOST_GROUPS = 10
UNKNOWN = 0  # the id of all words that the probe does not have
_END = -1  # that of none
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2**64
_INVERSE = pow(_BASE, -1, 2**64)
_MOST_BITS = 26
_WORD = re.compile(r"[^\W_]+")
_JOINERS = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
# Of text in ASCII the same, several times faster: letters in lower case, blanks for marks.
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


def split_words(text: str) -> list[str]:
    """Return the words of a text in their order."""
    if text.isascii():
        return text.translate(_ASCII).split()
    plain = unicodedata.normalize("NFKC", _JOINERS.sub("", text))
    return _WORD.findall(plain.casefold())


@dataclass(frozen=True)
class ItemText:
    """An item as one text: its stem with an answer in place of the mask, or after it."""

    words: tuple[str, ...]
    start: int  # the first word of the answer
    end: int  # the word behind its last


def item_text(record: Record, choice: str) -> ItemText:
    """Return the text of an item with one of its choices."""
    prefix, _, suffix = record.stem.partition(MASK)
    stem, answer = split_words(prefix), split_words(choice)
    return ItemText((*stem, *answer, *split_words(suffix)), len(stem), len(stem) + len(answer))


class GramIndex(NamedTuple):
    """The n-grams of one length to look for."""

    hashes: Hashes  # (W,) sorted, an n-gram as often as the probe has it
    starts: Ints  # (W,) where in `ProbeGrams.words` each begins
    bits: NDArray[np.bool_]  # the leading bits of the hashes, by which most others are passed over

    def matches(self, hashes: Hashes) -> tuple[Ints, Ints]:
        """Return (M,) places in `hashes` and (M,) places of the probe with equal hashes."""
        likely = np.flatnonzero(self.bits[leading_bits(hashes, self.bits)])
        first = np.searchsorted(self.hashes, hashes[likely], "left")
        times = np.searchsorted(self.hashes, hashes[likely], "right") - first
        nth = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        return np.repeat(likely, times), self.starts[np.repeat(first, times) + nth]


@dataclass(frozen=True, eq=False)
class ProbeGrams:
    """The n-grams of the items of a probe."""

    size: int  # n
    texts: Sequence[ItemText]  # the different texts of the items
    text_of: Sequence[int]  # (N,) the text of each item
    ids: Mapping[str, int]  # of words, from 1
    words: Ints  # (L,) the ids of all texts, with `_END` behind each
    starts: Sequence[int]  # where in `words` each text begins
    specific_starts: Sequence[Ints]  # in `words`, the n-grams of each text that are no template
    indexes: Mapping[int, GramIndex]  # by length: of `size` the specific, of others whole texts

    def whole_stem_length(self, text: int) -> int:
        """Return the length of a text's stem if it is looked for whole; else 0."""
        end = self.texts[text].start
        if end < 1 or self.texts[text].end < len(self.texts[text].words):
            return 0
        last = self.starts[text] + end - self.size
        return 0 if (self.specific_starts[text] <= last).any() else end


def probe_grams(
    records: Sequence[Record],
    groups: Sequence[Hashable],
    size: int = NGRAM,
    most_groups: int = MOST_GROUPS,
) -> ProbeGrams:
    """Collect the n-grams of a probe's items.

    An n-gram that more than `most_groups` of the `groups` (N,) have belongs to a template.
    """
    text_numbers: dict[ItemText, int] = {}
    text_of = [text_numbers.setdefault(item_text(r, r.gold), len(text_numbers)) for r in records]
    texts = list(text_numbers)
    ids: dict[str, int] = {}
    flat_ids, starts = list[int](), list[int]()
    for text in texts:
        starts.append(len(flat_ids))
        flat_ids += [*(ids.setdefault(word, len(ids) + 1) for word in text.words), _END]
    words = np.array(flat_ids, dtype=np.int64)
    spans = [(start, start + len(text.words)) for start, text in zip(starts, texts, strict=True)]
    grouped = [(*spans[text], group) for text, group in set(zip(text_of, groups, strict=True))]
    is_specific = _mostly_specific(words, grouped, size, most_groups)
    starts_until = [(start, max(start, end - size + 1)) for start, end in spans]
    specific_starts = [a + np.flatnonzero(is_specific[a:b]) for a, b in starts_until]
    indexes: dict[int, GramIndex] = {}
    grams = ProbeGrams(size, texts, text_of, ids, words, starts, specific_starts, indexes)
    starts_by_length = {size: [int(n) for numbers in specific_starts for n in numbers]}
    for text_number, text in enumerate(texts):
        if not len(specific_starts[text_number]) and text.words:
            starts_by_length.setdefault(len(text.words), []).append(starts[text_number])
        if stem_length := grams.whole_stem_length(text_number):
            starts_by_length.setdefault(stem_length, []).append(starts[text_number])
    for length, length_starts in starts_by_length.items():
        if length_starts:
            starts_in_order = np.unique(np.array(length_starts, dtype=np.int64))
            hashes = window_hashes(words, length)[starts_in_order]
            order = np.argsort(hashes, kind="stable")
            num_bits = min(_MOST_BITS, max(10, 6 + len(starts_in_order).bit_length()))
            bits = np.zeros(1 << num_bits, dtype=np.bool_)
            bits[leading_bits(hashes, bits)] = True
            indexes[length] = GramIndex(hashes[order], starts_in_order[order], bits)
    return grams


def window_hashes(words: Ints, size: int) -> Hashes:
    """Return (L - size + 1,) a hash of each `size` words, independent of their place.

    The words' own hashes are the digits of a number modulo 2**64, summed once for all sizes.
    """
    if len(words) < size:
        return np.empty(0, np.uint64)
    mixed = words.astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(31)  # numbers of 64 bits that have nothing of the ids' order
    factors = np.full((2, len(words)), [[_BASE], [_INVERSE]], np.uint64)
    factors[:, 0] = 1
    powers, inverse_powers = np.cumprod(factors, axis=1, dtype=np.uint64)
    digits = mixed * np.uint64(0x94D049BB133111EB) * powers
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(digits, dtype=np.uint64)])
    num = len(words) - size + 1
    hashes: Hashes = (sums[size:] - sums[:num]) * inverse_powers[:num]
    return hashes


def _mostly_specific(
    words: Ints, grouped: Sequence[tuple[int, int, Hashable]], size: int, most_groups: int
) -> NDArray[np.bool_]:
    """Return (L,) whether at least half of the n-gram that begins there is in no template.

    `grouped` has begin and end of a text in `words`, once for each group that has it.
    """
    half = (size + 1) // 2
    hashes = window_hashes(words, half)
    group_numbers: dict[Hashable, int] = {}
    hash_spans, group_spans = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for start, end, group in grouped:
        hash_spans.append(hashes[start : max(start, end - half + 1)])
        group_number = group_numbers.setdefault(group, len(group_numbers))
        group_spans.append(np.full(len(hash_spans[-1]), group_number))
    distinct_hashes, hash_numbers = np.unique(np.concatenate(hash_spans), return_inverse=True)
    group_hashes = np.unique(np.stack([hash_numbers, np.concatenate(group_spans)]), axis=1)[0]
    num_groups = np.bincount(group_hashes, minlength=len(distinct_hashes))
    templates = distinct_hashes[num_groups > most_groups]
    is_template_start = np.zeros(len(words))
    is_template_start[: len(hashes)] = np.isin(hashes, templates)
    in_template = np.convolve(is_template_start, np.ones(half))[: len(words)] > 0
    num_own_words = np.convolve(~in_template, np.ones(size))[size - 1 :]
    return np.asarray(num_own_words * 2 >= size)


def leading_bits(hashes: Hashes, bits: NDArray[np.bool_]) -> Hashes:
    """Return as many leading bits of hashes as index `bits`."""
    return hashes >> np.uint64(65 - len(bits).bit_length())
