"""Rules that answer without knowing anything, by what any reader sees.

Most see the answers alone; some see which words of the question an answer repeats, which no model
that is given the choices alone can tell. A rule gives each choice of an item a score, as a model
does: so it has an accuracy, with ties and an interval, that chance can be held against. Each has
its opposite, since both give a probe away.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from statistics import fmean

from probelight.build.giveaways.words import Association, words_of
from probelight.build.hygiene.finding import answer_words, asked_stems
from probelight.probes.record import Record
from probelight.probes.words import content_words, stem_of, stems_in

Rule = Callable[[Record], list[float]]
Frequency = Callable[[str], float]
WORDFREQ, TRAIN = "wordfreq", "train"  # where the frequency of a word is from
STEMMER = "Snowball English"  # by which a word of the question is found in an answer
ASKED = "an answer with the asked word", "an answer without the asked word"


def surface_rules(
    frequency: Frequency, learned: Mapping[str, Association], num_places: int
) -> dict[str, Rule]:
    """The rules by what tables call them.

    Args:
        frequency: How common a word is.
        learned: How words go with being right, counted on other items than the rule is asked about.
        num_places: The largest number of choices of an item.
    """

    def known(answer: str) -> float:
        return sum(learned[w].pmi for w in sorted(words_of(answer)) if w in learned)

    return {
        "the longest answer": _by(len),
        "the shortest answer": _by(lambda answer: -len(answer)),
        "the most words": _by(lambda answer: len(answer.split())),
        "the fewest words": _by(lambda answer: -len(answer.split())),
        "the commonest words": _by(lambda answer: commonness(answer, frequency)),
        "the rarest words": _by(lambda answer: -commonness(answer, frequency)),
        "words that are right in train": _by(known),
        ASKED[0]: _repeats(asked_stems),
        ASKED[1]: _repeats(asked_stems, -1),
        "the most words of the question": _repeats(_question_stems),
        "the fewest words of the question": _repeats(_question_stems, -1),
        **{f"the answer at place {n + 1}": _at(n) for n in range(num_places)},
    }


def commonness(answer: str, frequency: Frequency) -> float:
    """How common an answer is: the mean over its words; a glossed one goes by its best known name.

    Args:
        answer: Such as "ounce (or snow leopard), defined as '...'", of which the gloss is left out.
        frequency: How common a word is.
    """
    return max(fmean(map(frequency, name.split() or [name])) for name in answer_words(answer))


def frequency_source() -> str:
    """Where frequencies come from here: `wordfreq` where it is installed, else the train items."""
    return WORDFREQ if find_spec("wordfreq") else TRAIN


def word_frequency(source: str, train: Sequence[Record]) -> Frequency:
    """How common a word is, on a scale of powers of ten.

    Args:
        source: `WORDFREQ`: its Zipf scale of English; `TRAIN`: in how many of the items it stands.
        train: The items.
    """
    if source == WORDFREQ:
        from wordfreq import zipf_frequency  # an optional package

        return lambda word: float(zipf_frequency(word, "en"))
    counts = Counter(
        word for record in train for word in words_of(" ".join((record.stem, *record.choices)))
    )
    return lambda word: math.log10(1 + counts[word])


def _by(score: Callable[[str], float]) -> Rule:
    return lambda record: [float(score(choice)) for choice in record.choices]


def _at(place: int) -> Rule:
    # Of an item with fewer choices all are equal: it counts as chance does.
    return lambda record: [float(n == place) for n in range(len(record.choices))]


def _repeats(wanted: Callable[[Record], frozenset[str]], sign: int = 1) -> Rule:
    """How many of some stems of the question a choice has."""

    def rule(record: Record) -> list[float]:
        stems = wanted(record)
        return [float(sign * len(stems & stems_in(choice))) for choice in record.choices]

    return rule


def _question_stems(record: Record) -> frozenset[str]:
    return frozenset(map(stem_of, content_words(record.stem)))
