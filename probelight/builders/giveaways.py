"""What gives answers away: words that go with being right, and rules that ignore the question.

Which words of the answers, and which whole answers, go with being right (Gururangan et al. 2018)?
An item counts once for a part, however often the part occurs in it; an item whose choices all have
the part does not count. Of the n items that count, let r be those whose right answer has the part,
and c the sum of the shares of their choices that have it: the r to expect by chance. Then

    PMI = log2 (r + s p) / (c + s p),    p = c / n, s = SMOOTHING

which is log2 P(right | part) / P(right) where one choice of each item has the part, drawn towards 0
by s further items that chance decides.

A surface rule scores each choice of an item by what any reader sees, as a model does, so its
accuracy has ties and an interval to compare with chance. Most rules see the answers alone; some see
which words of the question an answer repeats, which a choice-only model cannot. Each rule has its
opposite, since either gives a probe away.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from statistics import fmean

from probelight.builders.hygiene import answer_words, asked_stems, plain_words
from probelight.probes.record import Record
from probelight.probes.words import content_words, stem_of, stems_in

SMOOTHING = 10.0  # items at chance that are added to those of each word
LEAST_ITEMS = 10  # fewer tell of the word what they tell of themselves
Parts = Callable[[str], Set[str]]
Rule = Callable[[Record], list[float]]
Frequency = Callable[[str], float]
WORDFREQ, TRAIN = "wordfreq", "train"  # where the frequency of a word is from
STEMMER = "Snowball English"  # by which a word of the question is found in an answer
ASKED = "an answer with the asked word", "an answer without the asked word"


@dataclass(frozen=True)
class Association:
    """How often a part of answers, a word or the whole, goes with being right."""

    part: str
    num_items: int  # n, the items that it tells choices of apart
    num_right: int  # r
    expected: float  # c

    @property
    def pmi(self) -> float:
        """Smoothed PMI in bits; above 0 where right answers have the part more often."""
        added = SMOOTHING * self.expected / self.num_items
        return math.log2((self.num_right + added) / (self.expected + added))


def words_of(answer: str) -> Set[str]:
    """Return the words of an answer, in lower case, each once."""
    return set(plain_words(answer).split())


def whole(answer: str) -> Set[str]:
    """Return the whole answer, without case and marks unless it has nothing else."""
    return {plain_words(answer) or answer.strip()}


def associations(records: Sequence[Record], parts: Parts = words_of) -> dict[str, Association]:
    """Count how each part of the answers goes with being right, in alphabetical order.

    `parts` says what an answer is made of: `words_of` or `whole`.
    """
    told: dict[str, list[tuple[bool, float]]] = {}
    for record in records:
        for part, right_and_share in told_by(record, parts).items():
            told.setdefault(part, []).append(right_and_share)
    return {
        part: Association(part, len(items), sum(r for r, _ in items), sum(s for _, s in items))
        for part, items in sorted(told.items())
    }


def told_by(record: Record, parts: Parts = words_of) -> dict[str, tuple[bool, float]]:
    """Return the parts that only some choices have: whether the gold does, and their share."""
    texts = [parts(choice) for choice in record.choices]
    counts = Counter(part for text in texts for part in text)
    return {
        part: (part in texts[record.answer], count / len(texts))
        for part, count in counts.items()
        if count < len(texts)
    }


def most_telling(
    found: Iterable[Association], most: int, least_items: int = LEAST_ITEMS
) -> list[Association]:
    """Return the parts of highest and of lowest PMI, `most` of either, the highest first.

    Parts of fewer than `least_items` items are left out.
    """
    seen = [word for word in found if word.num_items >= least_items]
    seen.sort(key=lambda word: (-word.pmi, word.part))
    return [
        *[word for word in seen if word.pmi > 0][:most],
        *[word for word in seen if word.pmi < 0][-most:],
    ]


def surface_rules(
    frequency: Frequency, learned: Mapping[str, Association], num_places: int
) -> dict[str, Rule]:
    """Return the rules by their names in tables.

    `learned` says how words go with being right, counted on other items than those to score.
    """

    def by(score: Callable[[str], float], sign: int = 1) -> Rule:
        return lambda record: [float(sign * score(choice)) for choice in record.choices]

    def repeats(stems_of: Callable[[Record], Set[str]], sign: int = 1) -> Rule:
        """Score choices by how many of some stems of the question they have."""

        def rule(record: Record) -> list[float]:
            stems = stems_of(record)
            return [float(sign * len(stems & stems_in(choice))) for choice in record.choices]

        return rule

    def at(place: int) -> Rule:
        # Of an item with fewer choices all are equal: it counts as chance does.
        return lambda record: [float(n == place) for n in range(len(record.choices))]

    def known(answer: str) -> float:
        return sum(learned[w].pmi for w in sorted(words_of(answer)) if w in learned)

    common = partial(commonness, frequency=frequency)

    def question_stems(record: Record) -> Set[str]:
        return set(map(stem_of, content_words(record.stem)))

    return {
        "the longest answer": by(len),
        "the shortest answer": by(len, -1),
        "the most words": by(lambda answer: len(answer.split())),
        "the fewest words": by(lambda answer: len(answer.split()), -1),
        "the commonest words": by(common),
        "the rarest words": by(common, -1),
        "words that are right in train": by(known),
        ASKED[0]: repeats(asked_stems),
        ASKED[1]: repeats(asked_stems, -1),
        "the most words of the question": repeats(question_stems),
        "the fewest words of the question": repeats(question_stems, -1),
        **{f"the answer at place {n + 1}": at(n) for n in range(num_places)},
    }


def commonness(answer: str, frequency: Frequency) -> float:
    """Return the mean frequency of an answer's words, by its best known name.

    Of "ounce (or snow leopard), defined as '...'" the gloss is left out.
    """
    return max(fmean(map(frequency, name.split() or [name])) for name in answer_words(answer))


def frequency_source() -> str:
    """Return `WORDFREQ` if the package is installed, else `TRAIN`."""
    return WORDFREQ if find_spec("wordfreq") else TRAIN


def word_frequency(source: str, train: Sequence[Record]) -> Frequency:
    """Return a function that gives how common a word is, on a logarithmic scale (base 10).

    It is wordfreq's Zipf scale of English (`WORDFREQ`), or counts items of train (`TRAIN`).
    """
    if source == WORDFREQ:
        from wordfreq import zipf_frequency  # an optional package

        return lambda word: float(zipf_frequency(word, "en"))
    counts = Counter(
        word for record in train for word in words_of(" ".join((record.stem, *record.choices)))
    )
    return lambda word: math.log10(1 + counts[word])
