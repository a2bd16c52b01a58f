"""Antonym negation at any size, of adjectives, nouns and verbs (Talmor et al. 2020, section 4.3).

"It was [MASK] hot, it was really cold .": "not" is right between opposites, "really" between
synonyms. Each part of speech has its own sentence, and as many opposites as synonyms.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from probelight.builders.builder import Builder, Draft, Probe, finish, split_groups, tracked
from probelight.builders.hygiene import Finding
from probelight.builders.olmpics.frame import (
    OlmpicsSettings,
    at_most,
    frequent_words,
    in_order,
    masked,
    with_articles,
)
from probelight.builders.olmpics.taxonomy import countable_words
from probelight.builders.sources.wordnet import DEFAULT_DIR, is_fit, open_wordnet, uses
from probelight.builders.wordnet_probes.builders import WORDNET
from probelight.io.ranges import NumItems
from probelight.probes.record import MASK, Record

PartOfSpeech = Literal["adjective", "noun", "verb"]
Pair = tuple[str, str]
_LETTERS: Mapping[PartOfSpeech, str] = {"adjective": "a", "noun": "n", "verb": "v"}
_SENTENCES: Mapping[PartOfSpeech, str] = {
    "adjective": f"It was {MASK} {{}}, it was really {{}}.",
    "noun": f"It was {MASK} a {{}}, it was really a {{}}.",
    "verb": f"He was {MASK} ready to {{}}, He was really ready to {{}}.",
}
# Comparatives, and words that are not shown to everybody.
_UNFIT_PAIRS = frozenset("smaller larger darned damn damned goddam goddamned raped".split())
_MAX_SENSE = 1  # later senses of a word make pairs that no reader would take as meant
_MIN_COUNT = 4  # occurrences that make a word outside the vocabulary well known
_MAX_SHARED = 4  # letters in a row: "happy, unhappy" can be told by spelling
# Not said of a thing after "it was", or counts rather than qualities.
_UNFIT = frozenset(
    "other same such few many much several more most less least own only very mere sheer utter "
    "former latter last next first second third one two zero no all any both each every "
    "cardinal ordinal".split()
)


def antonym_pairs(wordnet: Any, vocabulary: Collection[str], pos: PartOfSpeech) -> set[Pair]:
    """Return pairs of opposites, each in alphabetic order.

    Includes opposites at one remove: what is similar to hot ("scorching") is opposed to cold, if
    the gloss of either has a word of the other ("hot and dry"); readers agree with such pairs more
    often than with all. Other opposites may be so in the second sense as well.
    """
    in_first_sense = _usable_test(wordnet, vocabulary, pos)
    usable = _usable_test(wordnet, vocabulary, pos, num_senses=2)
    pairs = set()
    for synset in wordnet.all_synsets(_LETTERS[pos]):
        for lemma in synset.lemmas():
            for opposite in filter(usable, lemma.antonyms()):
                similar_lemmas = list(filter(in_first_sense, _similar_lemmas(synset)))
                similar_lemmas += [lemma] if usable(lemma) else []
                pairs |= {_ordered_pair(near.name(), opposite.name()) for near in similar_lemmas}
    return {pair for pair in pairs if not _share_letters(*pair)}


def synonym_pairs(wordnet: Any, vocabulary: Collection[str], pos: PartOfSpeech) -> set[Pair]:
    """Return pairs of words of one synset, or of two similar ones, each in alphabetic order.

    Similar synsets are as in `antonym_pairs`.
    """
    usable = _usable_test(wordnet, vocabulary, pos)
    pairs = set()
    for synset in wordnet.all_synsets(_LETTERS[pos]):
        lemmas = list(filter(usable, synset.lemmas()))
        synonyms = [*lemmas, *filter(usable, _similar_lemmas(synset))] if lemmas else []
        pairs |= {_ordered_pair(a.name(), b.name()) for a in lemmas for b in synonyms}
    return {pair for pair in pairs if not _share_letters(*pair)}


def _usable_test(
    wordnet: Any, vocabulary: Collection[str], pos: PartOfSpeech, num_senses: int = _MAX_SENSE
) -> Callable[[Any], bool]:
    """Return a test whether a lemma's word is well known, in the sense it is mostly used in."""
    letters = "as" if pos == "adjective" else _LETTERS[pos]

    @cache
    def first_senses(name: str) -> list[str]:
        if name in _UNFIT or not (name.isalpha() and name.islower()) or len(name) < 3:
            return []
        as_part, otherwise = uses(wordnet, name, letters)
        if otherwise > as_part or not (name in vocabulary or as_part >= _MIN_COUNT):
            return []
        senses = wordnet.synsets(name, letters[0])[:num_senses]
        return [synset.name() for synset in senses if is_fit(synset.definition())]

    def usable(lemma: Any) -> bool:
        if lemma.syntactic_marker() is not None:  # "(a)": only before a noun
            return False
        return lemma.synset().name() in first_senses(lemma.name()) and lemma.count() > 0

    return usable


def _similar_lemmas(synset: Any) -> list[Any]:
    """Return the lemmas of similar synsets, if the gloss of either names the other."""
    return [
        lemma
        for similar in synset.similar_tos()
        if _gloss_names(similar, synset) or _gloss_names(synset, similar)
        for lemma in similar.lemmas()
    ]


def _gloss_names(synset: Any, target: Any) -> bool:
    """Return whether a gloss has a word of another synset, up to an ending of two letters."""
    gloss = synset.definition().lower()
    return any(name[: max(_MAX_SHARED, len(name) - 2)] in gloss for name in target.lemma_names())


def _ordered_pair(first: str, second: str) -> Pair:
    return (first, second) if first < second else (second, first)


def _share_letters(first: str, second: str) -> bool:
    """Return whether two words share five letters, or all of one: "happy, unhappy"."""
    size = _MAX_SHARED + 1
    return (
        any(first[i : i + size] in second for i in range(len(first) - size + 1)) or first in second
    )


@dataclass(frozen=True)
class AntonymSettings(OlmpicsSettings):
    """Settings of antonym_negation.

    Args:
        num_train: Largest number of train items; WordNet has too few opposites for the default.
        wordnet_dir: Folder of a WordNet 3.0 database.
        num_words: Both words are among this number of most frequent words.
    """

    wordnet_dir: str = str(DEFAULT_DIR)
    num_words: NumItems = 60_000


def build_antonyms(settings: AntonymSettings) -> Probe:
    """Build the probe: not or really?"""
    rng = random.Random(f"antonym_negation:{settings.seed}")
    wordnet = open_wordnet(settings.wordnet_dir)
    drafts = list[Draft]()
    words = frequent_words(settings.num_words)
    for pos, (opposites, synonyms) in word_pairs(wordnet, words).items():
        # One of the opposites with one of the synonyms: every split has as many of either.
        unambiguous = (
            [pair for pair in opposites if not are_synonyms(wordnet, *pair)],
            [pair for pair in synonyms if not are_opposites(wordnet, *pair)],
        )
        usable = [sorted(p for p in pairs if _UNFIT_PAIRS.isdisjoint(p)) for pairs in unambiguous]
        for pairs in zip(*(rng.sample(pairs, len(pairs)) for pairs in usable), strict=False):
            drafts += _drafts(pos, *pairs)
    sizes = at_most({**settings.evaluation, **settings.train}, len(drafts))
    return finish("antonym_negation", in_order(split_groups(drafts, sizes, rng)), rng)


def word_pairs(
    wordnet: Any, vocabulary: Collection[str]
) -> dict[PartOfSpeech, tuple[set[Pair], set[Pair]]]:
    """Return opposites and synonyms by part of speech; nouns are countable, as they follow "a".

    Each pair is in one set, for the first part of speech that has it; what is opposed in any part
    of speech is a synonym in none.
    """
    pairs_by_pos = dict[PartOfSpeech, tuple[set[Pair], set[Pair]]]()
    for pos in tracked(get_args(PartOfSpeech), "antonym_negation: pairs"):
        opposites = antonym_pairs(wordnet, vocabulary, pos)
        synonyms = synonym_pairs(wordnet, vocabulary, pos)
        if pos == "noun":
            nouns = {word for pair in opposites | synonyms for word in pair}
            countable = countable_words(wordnet, nouns)
            opposites = {pair for pair in opposites if countable >= {*pair}}
            synonyms = {pair for pair in synonyms if countable >= {*pair}}
        pairs_by_pos[pos] = opposites, synonyms
    used = set[Pair]().union(*(opposites for opposites, _ in pairs_by_pos.values()))
    seen = set[Pair]()
    for pos, (opposites, synonyms) in pairs_by_pos.items():
        pairs_by_pos[pos] = opposites - seen, synonyms - used - seen
        seen |= pairs_by_pos[pos][0] | pairs_by_pos[pos][1]
    return pairs_by_pos


def _drafts(pos: PartOfSpeech, opposites: Pair, synonyms: Pair) -> Iterator[Draft]:
    for turn in (1, -1):
        for pair, gold, distractor in ((opposites, "not", "really"), (synonyms, "really", "not")):
            first, second = pair[::turn]
            stem = with_articles(_SENTENCES[pos].format(first, second))
            meta = {
                "arguments": [first, second],
                "template": "antonym" if gold == "not" else "synonym",
                "pos": pos,
                "source": "wordnet",
            }
            yield Draft(stem, gold, (distractor,), (opposites, synonyms), meta)


def check_pairs(settings: AntonymSettings, records: Sequence[Record]) -> list[Finding]:
    """Find pairs that WordNet contradicts: synonyms in one sense, opposites in another."""
    wordnet = open_wordnet(settings.wordnet_dir)
    findings = []
    for record in records:
        pair = record.meta["arguments"]
        if record.gold != "not" and are_opposites(wordnet, *pair):
            findings.append(Finding("opposites in another sense", record.where, record.stem))
        if record.gold != "really" and are_synonyms(wordnet, *pair):
            findings.append(Finding("synonyms in another sense", record.where, record.stem))
    return findings


def are_opposites(wordnet: Any, first: str, second: str) -> bool:
    """Return whether two words are opposites in any of their senses."""
    return any(o.name() == second for lemma in wordnet.lemmas(first) for o in lemma.antonyms())


def are_synonyms(wordnet: Any, first: str, second: str) -> bool:
    """Return whether two words share any of their senses."""
    return any(second in lemma.synset().lemma_names() for lemma in wordnet.lemmas(first))


_ABOUT = """\
Built as Talmor et al. (2020, section 4.3) describe, in the released sentences (with "an" where
English needs it, and without adverbs), from opposites and synonyms of WordNet. Both words are among
the frequent words of wordfreq 3 (instead of Google Books). Synonyms are in their most common sense,
opposites in one of the two most common. Indirect opposites (a word similar to hot is the opposite
of cold) need a gloss that confirms them. No pair shares five letters in a row, as happy and unhappy
do, or is opposite in one sense and synonymous in another. Both orders of a pair are asked, in the
same split. The paper also took pairs from ConceptNet. Few of WordNet's opposites are nouns and
verbs, so most items are adjectives, and train is smaller than the paper's 4,000. Without the check
of glosses there are twice as many opposites, but about one in five could be disputed, judging by a
sample that was read."""

ANTONYM_NEGATION = Builder(
    "antonym_negation",
    "Not or really, between opposites or synonyms?",
    AntonymSettings,
    build_antonyms,
    sources={"wordnet_dir": WORDNET},
    check=check_pairs,
    about=_ABOUT,
    config=masked(
        2,
        licence=WORDNET.licence,
        group_by="arguments",
        candidates=["not", "really"],
        arguments={
            "noun": r"It was \[MASK\] an? (.+?), it was really an? (.+?)\.",
            "verb": r"He was \[MASK\] ready to (.+?), He was really ready to (.+?)\.",
            "adjective": r"It was \[MASK\] (.+?), it was really (.+?)\.",
        },
        key_words=["really"],
        nonsense={"not": "blah", "really": "ya"},
    ),
)
