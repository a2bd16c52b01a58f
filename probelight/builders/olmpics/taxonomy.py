"""Taxonomy conjunction at any size (Talmor et al. 2020, section 4.4).

"A ferry and a floatplane are both a type of [MASK].": the gold answer is the nearest hypernym that
two concepts share; each distractor is a hypernym of one of them only.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probelight.builders.builder import Builder, Draft, Probe, finish, split_groups
from probelight.builders.hygiene import Finding
from probelight.builders.olmpics.frame import (
    OlmpicsSettings,
    article,
    frequent_words,
    in_order,
    masked,
    read_vocabulary,
)
from probelight.builders.sources.wordnet import (
    DEFAULT_DIR,
    ancestors,
    descendants,
    hypernym_edges,
    is_fit,
    is_of_unsaid_kind,
    mostly_noun,
    open_wordnet,
    synset_words,
)
from probelight.builders.wordnet_probes.builders import WORDNET
from probelight.io.errors import UsageError
from probelight.io.ranges import NumItems
from probelight.probes.record import MASK, Record
from probelight.probes.words import stem_of

# Food and animals are for evaluation, as in the paper: no hypernym of train is asked for again.
EVALUATION_ROOTS = ("animal.n.01", "food.n.01", "food.n.02")
# "A seam and a gridiron are both a type of instrumentation" is not said.
_NO_KINDS = frozenset("instrumentation portion piece constituent paraphernalia status".split())
_ALL_HOPS = 99
_NEAR_HOPS = 5
_SPARE = 1.5  # items dealt to a split for each one kept, see `_even_lengths`
_AFTER_NOUN = frozenset(
    ". , ; : ) ( of in with for that is was on to and or from at by who which used having made "
    "as has can into when".split()
)
# Words without a plural that its text uses with "a" now and then.
_MASS = frozenset(
    "milk rice flour butter bread meat beef pork sugar salt oil wheat honey cream dough toast "
    "cotton wool silk furniture equipment machinery clothing footwear".split()
)
_CONJUNCTION = re.compile(r"An? (.+?) and an? (.+?) are both a type of \[MASK\]")
_TRIES = 40  # pairs looked at for each pair kept
# Things that one can see and count: "a humiliation and a twentieth" is no question to ask.
_FIELDS = frozenset({"noun.animal", "noun.artifact", "noun.food", "noun.person", "noun.plant"})
# True of nearly everything, or no words one would use in "a type of".
_NOT_NAMES = frozenset(
    "entity thing object whole unit matter cause being body group part set event act action "
    "activity state attribute relation property feature measure substance material process "
    "content instrumentality way kind type quantity amount young male female solid adult "
    "creation stuff nutriment nutrition relative unfortunate good bad native point location place "
    "starches placental diapsid".split()
)


@dataclass(frozen=True)
class Noun:
    """A noun in its first sense."""

    word: str
    synset: Any
    hops: Mapping[str, int]  # name of each hypernym, direct or derived, to its distance
    near_hypernyms: tuple[tuple[str, str], ...]  # nameable hypernyms nearby, as (synset name, word)
    hypernym_names: frozenset[str]  # names of all that any sense of the noun is a kind of
    hypernym_words: frozenset[str]  # every word for one of these


@dataclass(frozen=True)
class TaxonomySettings(OlmpicsSettings):
    """Settings of taxonomy_conjunction.

    Args:
        num_train: Number of train items.
        num_dev: Number of dev items; the released file has 599.
        num_test: Number of test items; 0 for none, as in the paper.
        wordnet_dir: Folder of a WordNet 3.0 database.
        num_words: Concepts and answers are among this number of most frequent words.
        vocabulary: File or folder of a model in whose vocabulary the answers must be; "" for none.
        evaluation_roots: Synsets whose trees are used for dev and test; train gets the others.
        per_gold: Largest number of train items per gold hypernym.
        evaluation_per_gold: Largest number of dev and test items per gold hypernym.
    """

    num_dev: NumItems = 599
    wordnet_dir: str = str(DEFAULT_DIR)
    num_words: NumItems = 60_000
    vocabulary: str = ""
    evaluation_roots: tuple[str, ...] = EVALUATION_ROOTS
    per_gold: NumItems = 90
    evaluation_per_gold: NumItems = 60


def build_taxonomy(settings: TaxonomySettings) -> Probe:
    """Build the probe: which hypernym do two concepts share? No two splits share a gold."""
    vocabulary = frequent_words(settings.num_words)
    answer_words = read_vocabulary(Path(settings.vocabulary)) if settings.vocabulary else vocabulary
    wordnet = open_wordnet(settings.wordnet_dir)
    below_roots = _tree_names(wordnet, settings.evaluation_roots)
    rng = random.Random(f"taxonomy_conjunction:{settings.seed}")
    nouns = list(read_nouns(wordnet, vocabulary, answer_words - _NO_KINDS))
    roots = set(settings.evaluation_roots)
    # A word of which any sense is food or an animal is left out of train altogether.
    train_nouns = [c for c in nouns if not roots & c.hypernym_names]
    evaluation_nouns = [c for c in nouns if roots & {*c.hops, c.synset.name()}]
    train_drafts = _drafts(train_nouns, settings.per_gold, rng)
    evaluation_drafts = _drafts(evaluation_nouns, settings.evaluation_per_gold, rng)
    train_drafts = [d for d in train_drafts if d.meta["cluster"] not in below_roots]
    evaluation_drafts = [d for d in evaluation_drafts if d.meta["cluster"] in below_roots]
    try:
        splits = _deal(train_drafts, settings.train, settings.evaluation_per_gold, rng)
        splits |= _deal(evaluation_drafts, settings.evaluation, settings.evaluation_per_gold, rng)
    except ValueError as error:
        advice = "give smaller sizes (--num_train, --num_dev, --num_test), or larger --per_gold"
        raise UsageError(f"{error}; {advice} and --evaluation_per_gold") from error
    return in_order(finish("taxonomy_conjunction", splits, rng))


def _tree_names(wordnet: Any, roots: Sequence[str]) -> set[str]:
    """Return the names of synsets and of all below them; UsageError if there is no such synset."""
    from nltk.corpus.reader.wordnet import WordNetError  # not above: nltk is for builders only

    names = set[str]()
    for root in roots:
        try:
            synset = wordnet.synset(root)
        except (WordNetError, ValueError) as error:
            raise UsageError(
                f"--evaluation_roots {root}: not a synset of WordNet; give one such as animal.n.01"
            ) from error
        names |= {synset.name(), *(below.name() for _, below in descendants(synset, _ALL_HOPS))}
    return names


def _deal(
    drafts: Sequence[Draft], sizes: Mapping[str, int], per_gold: int, rng: random.Random
) -> dict[str, list[Draft]]:
    """Deal items to splits that share no gold nor pair of wrong answers; ValueError if too few."""
    # Where items are few, less is spared: the last gold of a split may not be used up.
    num_available = len({d.stem for d in drafts}) - per_gold * (len(sizes) - 1)
    spare = max(1, min(_SPARE, num_available / max(sum(sizes.values()), 1)))
    dealt = split_groups(drafts, {name: int(spare * n) for name, n in sizes.items()}, rng)
    splits: dict[str, list[Draft]] = {}
    used_sets: set[frozenset[str]] = set()  # wrong answers that are together in an earlier split
    for name, size in sizes.items():
        items = [d for d in dealt[name] if frozenset(d.distractors) not in used_sets]
        used_sets |= {frozenset(d.distractors) for d in items}
        # The longest word is right as often as by chance, if possible.
        order = rng.sample(items, len(items))
        longest = [d for d in order if len(d.gold) > max(map(len, d.distractors))]
        shorter = [d for d in order if len(d.gold) <= max(map(len, d.distractors))]
        count = max(min(size // 3, len(longest)), size - len(shorter))
        splits[name] = longest[:count] + shorter[: size - count]
    return splits


def read_nouns(
    wordnet: Any, vocabulary: Collection[str], answers: Collection[str]
) -> Iterator[Noun]:
    """Yield well-known nouns in alphabetic order, each in its first sense.

    Known are words of the vocabulary and those that WordNet's own corpus has in that sense;
    `answers` are the words for hypernyms.
    """
    words = {
        lemma.name()
        for synset in wordnet.all_synsets("n")
        if synset.lexname() in _FIELDS and is_fit(synset.definition())
        for lemma in synset.lemmas()
        if len(lemma.name()) > 2 and lemma.name().isalpha() and lemma.name().islower()
        if lemma.name() in vocabulary or lemma.count() > 0
    }
    countable = countable_words(wordnet, words)
    for word in sorted(countable):
        senses = wordnet.synsets(word, "n")
        if word not in senses[0].lemma_names() or senses[0].lexname() not in _FIELDS:
            continue  # an inflected form of a commoner noun, or another sense comes first
        if word in _MASS or not is_fit(senses[0].definition()) or not mostly_noun(wordnet, word):
            continue
        above = list(ancestors(senses[0], _ALL_HOPS))
        if is_of_unsaid_kind(senses[0]):
            continue  # a calf, which WordNet does not call a vertebrate
        hypernyms = [
            synset
            for sense in senses
            for synset in [sense, *(s for _, s in ancestors(sense, _ALL_HOPS))]
        ]
        words_above = {name.lower() for synset in hypernyms for name in synset_words(synset)}
        near_hypernyms = [
            (synset.name(), name)
            for hops, synset in above
            if hops <= _NEAR_HOPS and (name := _answer_naming(synset, wordnet, answers))
        ]
        yield Noun(
            word,
            senses[0],
            {synset.name(): hops for hops, synset in above},
            tuple(near_hypernyms),
            frozenset(synset.name() for synset in hypernyms),
            frozenset(words_above),
        )


def countable_words(wordnet: Any, words: Collection[str]) -> set[str]:
    """Return the words that WordNet's own text uses in the plural or after "a" or "an"."""
    plurals: dict[str, set[str]] = {}
    for word in words:
        plurals.setdefault(_plural(word), set()).add(word)  # axes: of an ax, of an axe
    singular, plural = set[str](), set[str]()
    for synset in wordnet.all_synsets():
        for text in (synset.definition(), *synset.examples()):
            tokens = re.findall(r"[a-z]+|[^a-z\s]", text.lower())
            plural.update(*(plurals[token] for token in tokens if token in plurals))
            triples = zip(tokens, tokens[1:], [*tokens[2:], "."], strict=False)
            for previous, word, following in triples:
                if previous in {"a", "an"} and word in words and following in _AFTER_NOUN:
                    singular.add(word)
    return {word for word in singular | plural if word not in plurals}


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s"


def _answer_naming(synset: Any, wordnet: Any, answers: Collection[str]) -> str | None:
    """Return an answer that means this synset in its first or second sense."""
    for name in synset.lemma_names():
        if name in answers and name.isalpha() and name.islower() and name not in _NOT_NAMES:
            if name.endswith("s") and wordnet.synsets(name[:-1], "n"):
                continue  # "a type of starches"
            if mostly_noun(wordnet, name) and synset in wordnet.synsets(name, "n")[:2]:
                return str(name)
    return None


def _drafts(concepts: Sequence[Noun], per_gold: int, rng: random.Random) -> list[Draft]:
    """Make items of pairs of concepts, at most `per_gold` for each hypernym that they share."""
    nouns_by_hypernym: dict[tuple[str, str], list[Noun]] = {}
    for concept in concepts:
        for hypernym in concept.near_hypernyms:
            nouns_by_hypernym.setdefault(hypernym, []).append(concept)
    drafts = list[Draft]()
    for (gold, word), members in nouns_by_hypernym.items():
        all_pairs = list(itertools.permutations(members, 2))
        pairs = rng.sample(all_pairs, min(len(all_pairs), _TRIES * per_gold))
        candidates = (_draft(a, b, gold, word, rng) for a, b in pairs)
        drafts += itertools.islice((draft for draft in candidates if draft is not None), per_gold)
    return drafts


def _draft(a: Noun, b: Noun, gold: str, word: str, rng: random.Random) -> Draft | None:
    shared = a.hops.keys() & b.hops.keys()
    nearest = min(a.hops[name] + b.hops[name] for name in shared)
    if a.hops[gold] + b.hops[gold] > nearest or a.synset == b.synset:
        return None
    if a.synset.name() in b.hops or b.synset.name() in a.hops:
        return None
    # The hypernyms of one concept that no sense of the other has.
    only_a, only_b = (
        [
            other_word
            for name, other_word in noun.near_hypernyms
            if name not in counterpart.hops
            and other_word not in counterpart.hypernym_words
            and other_word not in (word, noun.word)
        ]
        for noun, counterpart in ((a, b), (b, a))
    )
    if only_a and only_b:
        distractors = rng.choice(only_a), rng.choice(only_b)
    elif len(either := list(dict.fromkeys(only_a or only_b))) > 1:
        first, second = rng.sample(either, 2)
        distractors = first, second
    else:
        return None
    for asked_word, choice in itertools.product((a.word, b.word), (word, *distractors)):
        # Spelling would tell the answer: "motorboat", "boat"; "house", "housing".
        if asked_word in choice or choice in asked_word or stem_of(asked_word) == stem_of(choice):
            return None
    subject = f"{article(a.word).capitalize()} {a.word} and {article(b.word)} {b.word}"
    meta = {
        "cluster": gold,
        "arguments": [a.word, b.word],
        "hops": a.hops[gold] + b.hops[gold],
        "source": "wordnet",
    }
    return Draft(f"{subject} are both a type of {MASK}.", word, distractors, word, meta)


def conjunctions(records: Sequence[Record]) -> list[tuple[Record, tuple[str, str]]]:
    """Return the items that ask what two concepts both are, with these concepts."""
    matches = ((record, _CONJUNCTION.match(record.stem)) for record in records)
    return [(record, (match[1], match[2])) for record, match in matches if match]


def check_conjunctions(records: Sequence[Record], wordnet: Any) -> list[Finding]:
    """Find answers that WordNet contradicts by any sense of the concepts' words, or cannot judge.

    The gold must be above both concepts, a wrong answer above one at most. Where WordNet does not
    say of which kind an animal is ("calf"), another kind among the wrong answers may be right.
    """
    findings = []
    for record, concepts in conjunctions(records):
        above = [hypernym_edges(wordnet, word) or {} for word in concepts]
        shared = above[0].keys() & above[1].keys()
        if record.gold.strip().lower() not in shared:
            findings.append(Finding("the right answer is wrong", record.where, record.stem))
        findings += [
            Finding("a wrong answer is right", record.where, f"{word}: {record.stem}")
            for word in record.wrong
            if word.strip().lower() in shared
        ]
        asked_stems = set(map(stem_of, concepts))
        findings += [
            Finding("asked word in an answer", record.where, f"{text}: {record.stem}")
            for text in record.choices
            if stem_of(text) in asked_stems
        ]
        for word in concepts:
            senses = wordnet.synsets(word.replace(" ", "_"), "n")
            edges = {text: hypernym_edges(wordnet, text) or {} for text in record.wrong}
            animals = [text for text, above_it in edges.items() if "animal" in above_it]
            if animals and senses and is_of_unsaid_kind(senses[0]):
                text = f"{word} may be of kind {animals[0]!r}: {record.stem}"
                findings.append(Finding("animal of unknown kind", record.where, text))
    return findings


_ABOUT = """\
Built as Talmor et al. (2020, section 4.4) describe, from WordNet alone. Concepts are countable
nouns in their first sense that are among the frequent words of wordfreq 3 (instead of Google Books)
or occur in that sense in WordNet's own corpus. Answers are single frequent words. The right answer
is the nearest shared hypernym; wrong answers are hypernyms of one concept and, in no sense, of the
other. Animals are left out if WordNet does not say whether they are vertebrates: the young, males
and females, and pets. Food and animals are in dev and test, other trees in train. No two splits
share a right answer. The longest of three answers is right as often as by chance, if the items
allow it."""

TAXONOMY_CONJUNCTION = Builder(
    "taxonomy_conjunction",
    "Which hypernym do two concepts share?",
    TaxonomySettings,
    build_taxonomy,
    sources={"wordnet_dir": WORDNET},
    check=lambda settings, records: check_conjunctions(records, open_wordnet(settings.wordnet_dir)),
    about=_ABOUT,
    config=masked(
        3,
        licence=WORDNET.licence,
        group_by="cluster",
        arguments=r"An? (\w+) and an? (\w+) are both a type of \[MASK\]\.",
        key_words=["and", "both"],
    ),
)
