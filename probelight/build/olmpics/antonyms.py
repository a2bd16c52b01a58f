"""Antonym negation at any size, of adjectives, nouns and verbs (Talmor et al. 2020, section 4.3).

"It was [MASK] hot, it was really cold .": "not" is right between opposites, "really" between
synonyms. In each part of speech, which has a sentence of its own, half are opposites.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from probelight.build.antonyms import Part, antonym_pairs, synonym_pairs
from probelight.build.drafts import Draft, Probe, finish, split_groups
from probelight.build.frame.builder import Builder
from probelight.build.frame.progress import tracked
from probelight.build.hygiene.finding import Finding
from probelight.build.olmpics.frame import OlmpicsSettings, at_most, in_order, masked, with_articles
from probelight.build.olmpics.frequency import frequent_words
from probelight.build.sources.wordnet import DEFAULT_DIR, open_wordnet
from probelight.build.taxonomy import countable_words
from probelight.build.wordnet_probes.builders import WORDNET
from probelight.io.ranges import NumItems
from probelight.probes.record import MASK, Record

_PARTS: tuple[Part, ...] = get_args(Part)
_SENTENCES: Mapping[Part, str] = {
    "adjective": f"It was {MASK} {{}}, it was really {{}}.",
    "noun": f"It was {MASK} a {{}}, it was really a {{}}.",
    "verb": f"He was {MASK} ready to {{}}, He was really ready to {{}}.",
}
# Comparatives, and words that are not shown to everybody.
_UNFIT = frozenset("smaller larger darned damn damned goddam goddamned raped".split())
Pair = tuple[str, str]


@dataclass(frozen=True)
class AntonymSettings(OlmpicsSettings):
    """Settings of antonym_negation.

    Args:
        num_train: Items of train at most; WordNet has fewer opposites than are asked for.
        num_dev: Items of dev at most.
        num_test: Items of test at most; 0 for none, as in the paper.
        wordnet_dir: Folder of a WordNet 3.0 database.
        num_words: Both words are among so many of the most frequent ones.
    """

    wordnet_dir: str = str(DEFAULT_DIR)
    num_words: NumItems = 60_000


def build_antonyms(settings: AntonymSettings) -> Probe:
    """Not or really?

    Raises:
        FileNotFoundError: If WordNet or `wordfreq` is missing, with how to get it.
        UsageError: If no item is left for a split.
    """
    rng = random.Random(f"antonym_negation:{settings.seed}")
    wordnet = open_wordnet(settings.wordnet_dir)
    drafts = list[Draft]()
    words = frequent_words(settings.num_words)
    for part, (opposites, same) in word_pairs(wordnet, words).items():
        # One of the opposites with one of the synonyms: every split has as many of either.
        clear = (
            sorted(p for p in opposites if _UNFIT.isdisjoint(p) and not are_synonyms(wordnet, *p)),
            sorted(p for p in same if _UNFIT.isdisjoint(p) and not are_opposites(wordnet, *p)),
        )
        for two in zip(*(rng.sample(pairs, len(pairs)) for pairs in clear), strict=False):
            drafts += _drafts(part, *two)
    sizes = at_most({**settings.evaluation, **settings.train}, len(drafts))
    return finish("antonym_negation", in_order(split_groups(drafts, sizes, rng)), rng)


def word_pairs(
    wordnet: Any, vocabulary: Collection[str]
) -> dict[Part, tuple[set[Pair], set[Pair]]]:
    """Opposites and synonyms by part of speech.

    A pair is in one of the sets only, in that of the first part of speech that has it; what is
    opposed in any of them is a synonym in none. Nouns can be counted, so that "a" can stand there.
    """
    found = dict[Part, tuple[set[Pair], set[Pair]]]()
    for part in tracked(_PARTS, "antonym_negation: pairs"):
        opposites = antonym_pairs(wordnet, vocabulary, part)
        same = synonym_pairs(wordnet, vocabulary, part)
        if part == "noun":
            words = countable_words(wordnet, {word for pair in opposites | same for word in pair})
            opposites, same = ({p for p in pairs if words >= {*p}} for pairs in (opposites, same))
        found[part] = opposites, same
    used = set[Pair]().union(*(opposites for opposites, _ in found.values()))
    seen = set[Pair]()
    for part, (opposites, same) in found.items():
        found[part] = opposites - seen, same - used - seen
        seen |= found[part][0] | found[part][1]
    return found


def _drafts(part: Part, opposite: Pair, same: Pair) -> Iterator[Draft]:
    for turn in (1, -1):
        for pair, gold, other in ((opposite, "not", "really"), (same, "really", "not")):
            first, second = pair[::turn]
            stem = with_articles(_SENTENCES[part].format(first, second))
            meta = {
                "arguments": [first, second],
                "template": "antonym" if gold == "not" else "synonym",
                "pos": part,
                "source": "wordnet",
            }
            yield Draft(stem, gold, (other,), (opposite, same), meta)


def check_pairs(settings: AntonymSettings, records: Sequence[Record]) -> list[Finding]:
    """Pairs whose answer WordNet contradicts: synonyms in one sense and opposites in another."""
    wordnet = open_wordnet(settings.wordnet_dir)
    findings = []
    for record in records:
        pair = record.meta["arguments"]
        if record.gold != "not" and are_opposites(wordnet, *pair):
            findings.append(Finding("opposites by another sense", record.where, record.stem))
        if record.gold != "really" and are_synonyms(wordnet, *pair):
            findings.append(Finding("synonyms by another sense", record.where, record.stem))
    return findings


def are_opposites(wordnet: Any, first: str, second: str) -> bool:
    """Whether two words are opposites in any of their senses."""
    return any(o.name() == second for one in wordnet.lemmas(first) for o in one.antonyms())


def are_synonyms(wordnet: Any, first: str, second: str) -> bool:
    """Whether two words share any of their senses."""
    return any(second in one.synset().lemma_names() for one in wordnet.lemmas(first))


_ABOUT = """\
Built as Talmor et al. (2020, section 4.3) describe it, in the released sentences ("an" where it is
said, and none for adverbs): opposites and synonyms of WordNet, both words among the frequent ones
of wordfreq 3 (in place of Google Books) and in the sense they are mostly used in, opposites in one
of two; opposites also at one remove (what is similar to hot is opposed to cold), where a gloss
bears that out. No pair shares five letters in a row, as happy and unhappy do; none are opposites in
one sense and synonyms in another. Each pair is asked in both orders, which lie in one split. The
paper also took pairs from ConceptNet; of WordNet's opposites few are nouns and verbs, so most items
are adjectives, and train is smaller than the paper's 4,000: without a look at the glosses there are
twice as many opposites, of which about every fifth, read in a sample, could be disputed."""

ANTONYM_NEGATION = Builder(
    "antonym_negation",
    "Not or really? Opposites and synonyms.",
    AntonymSettings,
    build_antonyms,
    sources={"wordnet_dir": WORDNET},
    check=check_pairs,
    about=_ABOUT,
    config={
        **masked(
            2,
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
        "licence": WORDNET.licence,
    },
)
