"""WordNet and GCIDE as sentences: the training text of the bundled models.

The taxonomy is stated in phrasings of our own, without that of the released taxonomy probe ("are
both a type of"), so that the probe still asks for a transfer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from probelight.builders.sources.gcide import (
    DEFAULT_PATH,
    PUBLIC_DOMAIN_SOURCE,
    QUOTED_FROM,
    Sense,
    is_remark,
    tagged_paragraphs,
)
from probelight.builders.sources.wordnet import ancestors, descendants, synset_words

SUPPLEMENT_SOURCE = "Webster 1913 Suppl."  # of the same year, and in the public domain as well
_ISA = (
    "{a} is a kind of {b}",
    "{a} is a type of {b}",
    "{a} is a sort of {b}",
    "one kind of {b} is {a}",
    "{a} is {b_article}",
    "{a} , or some other {b}",
)
_SIBLINGS = (
    "{a} and {c} are kinds of {b}",
    "{a} and {c} are each a {b}",
    "like {c} , {a} is a type of {b}",
    "{b} : for example {a} or {c}",
)
_PART = ("{a} has {b}", "{b} is a part of {a}")
# WordNet's other relations, for a text that tells all of them; most are given from either side.
_RELATIONS = (
    ("hyponyms", "n", ("{b} is a kind of {c}", "{b} is a type of {c}", "one kind of {c} is {b}")),
    ("instance_hyponyms", "n", ("{c} : for example {b}",)),
    ("hyponyms", "v", ("to {c} : for example to {d}",)),
    ("part_holonyms", "n", ("{a} is a part of {b}", "{b} has {a}")),
    ("substance_holonyms", "n", ("{b} is made with {c}",)),
    ("substance_meronyms", "n", ("{a} is made with {d}",)),
    ("member_holonyms", "n", ("{a} belongs to {b}",)),
    ("member_meronyms", "n", ("{b} belongs to {a}",)),
    ("attributes", "n", ("{c} : something can be {d}",)),
    ("attributes", "as", ("something {c} has a certain {d}",)),
    ("similar_tos", "as", ("what is {c} is also {d}", "{c} is much like {d}")),
    ("also_sees", "asv", ("{c} , see also {d}",)),
    ("entailments", "v", ("to {c} one has to {d}",)),
    ("causes", "v", ("to {c} makes something {d}",)),
    ("verb_groups", "v", ("to {c} is much like to {d}",)),
    ("topic_domains", "nvasr", ("{c} is a word of {d}",)),
)
_MAX_RELATED = 4
_MAX_HOPS = 5
_SECOND_GLOSS = 0.3  # share of grandparents told with their gloss: it keeps the text balanced
_MAX_EXAMPLES = 4


@dataclass(frozen=True)
class Document:
    """Sentences about one concept: training text that may be shown together."""

    key: str  # synset name or headword; train and held-out text are split by it
    source: str  # "wordnet", "gcide" or the name of a free text
    sentences: tuple[str, ...]  # in the order of the source
    words: tuple[str, ...] = ()  # what a dictionary entry is about; none for running text
    in_order: bool = False  # running text, whose sentences are not shuffled


def with_article(word: str) -> str:
    """Put "a" or "an" before a word; names stay as they are."""
    if word[:1].isupper():
        return word
    return f"{'an' if word[:1] in 'aeiou' else 'a'} {word}"


def wordnet_documents(
    wordnet: Any, seed: int = 0, every_relation: bool = False
) -> Iterator[Document]:
    """Yield a document per synset: gloss, examples, taxonomy, parts and opposites.

    `every_relation` tells the other relations as well, and all examples.
    """
    for synset in wordnet.all_synsets():
        rng = random.Random(f"{seed}:{synset.name()}")
        names = " , ".join(synset_words(synset)[:4])
        sentences = [f"{names} : {synset.definition()}", *synset.examples()[:_MAX_EXAMPLES]]
        sentences += _taxonomy_sentences(synset, rng)
        sentences += _lexical_sentences(synset, rng)
        if every_relation:
            sentences += [*synset.examples(), *_further_sentences(synset, rng)]
        texts = tuple(dict.fromkeys(sentences))
        yield Document(synset.name(), "wordnet", texts, tuple(synset_words(synset)))


def gcide_documents(senses: Iterator[Sense]) -> Iterator[Document]:
    """Yield a document per headword: every sense with its usages."""
    for word, word_senses in groupby(senses, attrgetter("word")):
        texts = ((f"{word} : {sense.definition}", *sense.examples) for sense in word_senses)
        yield Document(word.lower(), "gcide", tuple(chain.from_iterable(texts)), (word,))


def read_remarks(
    path: Path | str = DEFAULT_PATH, source: str = PUBLIC_DOMAIN_SOURCE
) -> Iterator[tuple[str, str]]:
    """Yield (headword, text) of what `read_gcide` leaves out: collocations, quotations, notes."""
    for word, paragraph, tag in tagged_paragraphs(path):
        if not word or tag != source or not is_remark(paragraph):
            continue
        text = QUOTED_FROM.sub("", " ".join(line.strip() for line in paragraph))
        # The braces mark the collocation, which is what is defined.
        text = re.sub(r"\[[^\[\]]*\]|\([A-Z][\w. &]*\.\)|[{}]", "", text).replace("--", " ")
        text = re.sub(r"\s+", " ", text).replace(" ,", ",").strip(" .,;:*")
        if len(text.split()) > 2:
            yield word, text


def remark_documents(remarks: Iterator[tuple[str, str]]) -> Iterator[Document]:
    """Yield a document per headword: its collocations, quotations and notes."""
    for word, word_remarks in groupby(remarks, itemgetter(0)):
        texts = (f"{word} : {text}" for _, text in word_remarks)
        yield Document(word.lower(), "gcide", tuple(texts), (word,))


def _taxonomy_sentences(synset: Any, rng: random.Random) -> list[str]:
    noun = synset.pos() == "n"
    sentences = []
    for hops, above in ancestors(synset, _MAX_HOPS):
        a, b = rng.choice(synset_words(synset)), synset_words(above)[0]
        if noun:
            fields = {"a": with_article(a), "b": b, "b_article": with_article(b)}
            sentences.append(rng.choice(_ISA).format(**fields))
        else:
            sentences.append(f"to {a} is to {b} in some way")
        if hops == 1 or (hops == 2 and rng.random() < _SECOND_GLOSS):
            sentences.append(f"{a} , a type of {b} , that is , {above.definition()}")
    if noun:
        sentences += _sibling_sentences(synset, rng)
    return sentences


def _sibling_sentences(synset: Any, rng: random.Random) -> list[str]:
    """Return pairs with a cousin under each of the three nearest ancestors."""
    sentences = []
    for hops, above in ancestors(synset, 3):
        below = [d for _, d in descendants(above, hops) if d != synset]
        if not below:
            continue
        for cousin in rng.sample(below, min(2, len(below))):
            fields = {
                "a": with_article(synset_words(synset)[0]),
                "b": synset_words(above)[0],
                "c": with_article(synset_words(cousin)[0]),
            }
            sentences.append(rng.choice(_SIBLINGS).format(**fields))
    return sentences


def _lexical_sentences(synset: Any, rng: random.Random) -> list[str]:
    words = synset_words(synset)
    sentences = [f"{words[0]} , also called {synonym}" for synonym in words[1:4]]
    for lemma in synset.lemmas():
        for opposite in lemma.antonyms():
            antonym = opposite.name().replace("_", " ")
            sentences.append(
                f"{words[0]} is not {antonym} ; {antonym} is the opposite of {words[0]}"
            )
    for meronym in synset.part_meronyms()[:3]:
        fields = {"a": with_article(words[0]), "b": with_article(synset_words(meronym)[0])}
        sentences.append(rng.choice(_PART).format(**fields))
    return sentences


def _further_sentences(synset: Any, rng: random.Random) -> list[str]:
    """Return sentences on relations that the others leave out, and on derived words."""
    sentences = []
    for relation, pos_letters, phrasings in _RELATIONS:
        related = getattr(synset, relation)() if synset.pos() in pos_letters else []
        for relative in rng.sample(related, min(_MAX_RELATED, len(related))):
            c, d = rng.choice(synset_words(synset)), synset_words(relative)[0]
            fields = {"a": with_article(c), "b": with_article(d), "c": c, "d": d}
            sentences.append(rng.choice(phrasings).format(**fields))
            if relation == "hyponyms":
                sentences.append(f"{d} , a type of {c} : {relative.definition()}")
    for lemma in synset.lemmas():
        for relative in (*lemma.derivationally_related_forms()[:2], *lemma.pertainyms()[:1]):
            word, derived = (form.name().replace("_", " ") for form in (lemma, relative))
            sentences.append(f"{word} comes with {derived} : {relative.synset().definition()}")
    return sentences
