"""What gives answers away: words that go with being right, and rules that ignore the question.

Which words of the answers, and which whole answers, go with being right (Gururangan et al. 2018)?
An item counts once for a feature, however often it occurs there; an item whose choices all have
the feature does not count. Of the n items that count, let r be those whose right answer has the
feature, and c the sum of the shares of their choices that have it: the r to expect by chance. Then

    PMI = log2 (r + s p) / (c + s p),    p = c / n, s = SMOOTHING

which is log2 P(right | feature) / P(right) where one choice of each item has it, drawn towards 0 by
s further items that chance decides.

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
Features = Callable[[str], Set[str]]
Rule = Callable[[Record], list[float]]
Frequency = Callable[[str], float]
WORDFREQ, TRAIN = "wordfreq", "train"  # where the frequency of a word is from
STEMMER = "Snowball English"  # by which a word of the question is found in an answer
ASKED = "an answer with the asked word", "an answer without the asked word"


@dataclass(frozen=True)
class Association:
    """How often a feature of answers, a word or the whole, goes with being right."""

    feature: str
    num_items: int  # n, the items that it tells choices of apart
    num_right: int  # r
    expected: float  # c

    @property
    def pmi(self) -> float:
        """Smoothed PMI in bits; above 0 where right answers have the part more often."""
        added = SMOOTHING * self.expected / self.num_items
        return math.log2((self.num_right + added) / (self.expected + added))


def word_set(answer: str) -> Set[str]:
    """Return the words of an answer, in lower case, each once."""
    return set(plain_words(answer).split())


def whole_answer(answer: str) -> Set[str]:
    """Return the whole answer, without case and marks unless it has nothing else."""
    return {plain_words(answer) or answer.strip()}


def associations(
    records: Sequence[Record], features_of: Features = word_set
) -> dict[str, Association]:
    """Count how each feature of the answers goes with being right, in alphabetical order.

    `features_of` an answer is `word_set` or `whole_answer`.
    """
    counts_by_feature: dict[str, list[tuple[bool, float]]] = {}
    for record in records:
        for feature, right_and_share in telling_features(record, features_of).items():
            counts_by_feature.setdefault(feature, []).append(right_and_share)
    return {
        feature: Association(
            feature, len(items), sum(r for r, _ in items), sum(s for _, s in items)
        )
        for feature, items in sorted(counts_by_feature.items())
    }


def telling_features(record: Record, features_of: Features) -> dict[str, tuple[bool, float]]:
    """Return the features that only some choices have: whether the gold does, and their share."""
    choice_features = [features_of(choice) for choice in record.choices]
    counts = Counter(feature for features in choice_features for feature in features)
    return {
        feature: (feature in choice_features[record.answer], count / len(choice_features))
        for feature, count in counts.items()
        if count < len(choice_features)
    }


def most_telling(
    candidates: Iterable[Association], most: int, least_items: int = LEAST_ITEMS
) -> list[Association]:
    """Return the features of highest and of lowest PMI, `most` of either, the highest first.

    Features of fewer than `least_items` items are left out.
    """
    seen = [word for word in candidates if word.num_items >= least_items]
    seen.sort(key=lambda word: (-word.pmi, word.feature))
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

    def by_score(score: Callable[[str], float], sign: int = 1) -> Rule:
        return lambda record: [float(sign * score(choice)) for choice in record.choices]

    def repeats(stems_of: Callable[[Record], Set[str]], sign: int = 1) -> Rule:
        """Score choices by how many of some stems of the question they have."""

        def score_choices(record: Record) -> list[float]:
            stems = stems_of(record)
            return [float(sign * len(stems & stems_in(choice))) for choice in record.choices]

        return score_choices

    def at_position(position: int) -> Rule:
        # Of an item with fewer choices all are equal: it counts as chance does.
        return lambda record: [float(n == position) for n in range(len(record.choices))]

    def learned_pmi(answer: str) -> float:
        return sum(learned[w].pmi for w in sorted(word_set(answer)) if w in learned)

    common = partial(commonness, frequency=frequency)

    def question_stems(record: Record) -> Set[str]:
        return set(map(stem_of, content_words(record.stem)))

    return {
        "the longest answer": by_score(len),
        "the shortest answer": by_score(len, -1),
        "the most words": by_score(lambda answer: len(answer.split())),
        "the fewest words": by_score(lambda answer: len(answer.split()), -1),
        "the commonest words": by_score(common),
        "the rarest words": by_score(common, -1),
        "words that are right in train": by_score(learned_pmi),
        ASKED[0]: repeats(asked_stems),
        ASKED[1]: repeats(asked_stems, -1),
        "the most words of the question": repeats(question_stems),
        "the fewest words of the question": repeats(question_stems, -1),
        **{f"the answer at place {n + 1}": at_position(n) for n in range(num_places)},
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
        word for record in train for word in word_set(" ".join((record.stem, *record.choices)))
    )
    return lambda word: math.log10(1 + counts[word])
