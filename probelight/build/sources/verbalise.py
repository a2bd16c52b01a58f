"""WordNet and GCIDE as sentences: training text of the bundled model, glosses and examples.

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
from typing import Any

from probelight.build.sources.gcide import Sense
from probelight.build.sources.wordnet import ancestors, descendants, words_of

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
        names = " , ".join(words_of(synset)[:4])
        sentences = [f"{names} : {synset.definition()}", *synset.examples()[:_MAX_EXAMPLES]]
        sentences += _taxonomy_sentences(synset, rng)
        sentences += _lexical_sentences(synset, rng)
        if every_relation:
            sentences += [*synset.examples(), *_further_sentences(synset, rng)]
        texts = tuple(dict.fromkeys(sentences))
        yield Document(synset.name(), "wordnet", texts, tuple(words_of(synset)))


def gcide_documents(senses: Iterator[Sense]) -> Iterator[Document]:
    """Yield a document per headword: every sense with its usages."""
    for word, of_word in groupby(senses, attrgetter("word")):
        texts = ((f"{word} : {sense.definition}", *sense.examples) for sense in of_word)
        yield Document(word.lower(), "gcide", tuple(chain.from_iterable(texts)), (word,))


def remark_documents(remarks: Iterator[tuple[str, str]]) -> Iterator[Document]:
    """Yield a document per headword: its collocations, quotations and notes."""
    for word, of_word in groupby(remarks, itemgetter(0)):
        texts = (f"{word} : {text}" for _, text in of_word)
        yield Document(word.lower(), "gcide", tuple(texts), (word,))


def _taxonomy_sentences(synset: Any, rng: random.Random) -> list[str]:
    noun = synset.pos() == "n"
    sentences = []
    for hops, above in ancestors(synset, _MAX_HOPS):
        a, b = rng.choice(words_of(synset)), words_of(above)[0]
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
                "a": with_article(words_of(synset)[0]),
                "b": words_of(above)[0],
                "c": with_article(words_of(cousin)[0]),
            }
            sentences.append(rng.choice(_SIBLINGS).format(**fields))
    return sentences


def _lexical_sentences(synset: Any, rng: random.Random) -> list[str]:
    words = words_of(synset)
    sentences = [f"{words[0]} , also called {other}" for other in words[1:4]]
    for lemma in synset.lemmas():
        for opposite in lemma.antonyms():
            other = opposite.name().replace("_", " ")
            sentences.append(f"{words[0]} is not {other} ; {other} is the opposite of {words[0]}")
    for part in synset.part_meronyms()[:3]:
        fields = {"a": with_article(words[0]), "b": with_article(words_of(part)[0])}
        sentences.append(rng.choice(_PART).format(**fields))
    return sentences


def _further_sentences(synset: Any, rng: random.Random) -> list[str]:
    """Return sentences on relations that the others leave out, and on derived words."""
    sentences = []
    for relation, parts, phrasings in _RELATIONS:
        related = getattr(synset, relation)() if synset.pos() in parts else []
        for other in rng.sample(related, min(_MAX_RELATED, len(related))):
            c, d = rng.choice(words_of(synset)), words_of(other)[0]
            fields = {"a": with_article(c), "b": with_article(d), "c": c, "d": d}
            sentences.append(rng.choice(phrasings).format(**fields))
            if relation == "hyponyms":
                sentences.append(f"{d} , a type of {c} : {other.definition()}")
    for lemma in synset.lemmas():
        for other in (*lemma.derivationally_related_forms()[:2], *lemma.pertainyms()[:1]):
            word, derived = (one.name().replace("_", " ") for one in (lemma, other))
            sentences.append(f"{word} comes with {derived} : {other.synset().definition()}")
    return sentences


def plain(text: str) -> str:
    """Return a text with single spaces and uniform quotation marks."""
    return re.sub(r"\s+", " ", text.replace("``", '"').replace("''", '"')).strip()


_MAX_TEXT = 110  # characters of a gloss: longer ones hold lists and remarks
# What is shipped is shown to everybody.
_UNFIT = re.compile(
    r"\b(offensive|obscene|slurs?|disparag\w*|derogatory|vulgar\w*|sexual\w*|genital\w*|rape|"
    r"masturbat\w*|copulat\w*|orgasm\w*|incest\w*|sodom\w*|whores?|suicid\w*|killing yourself)\b"
    r"|pejorative|pornogra|prostitut|--|; ;|; -",  # the last three: authors of quotations
    re.IGNORECASE,
)


def contexts_of(concept: Any, wordnet: Any) -> Iterator[tuple[str, str]]:
    """Yield (word, example) of each fit example of a synset that has one of its words."""
    lemmas = {name.lower() for name in concept.lemma_names()}
    part = concept.pos()
    for example in concept.examples():
        sentence = plain(example).strip(" \"';")
        if "'" in sentence.replace("'s", "").replace("n't", "") or len(sentence.split()) < 3:
            continue
        if _UNFIT.search(sentence):
            continue
        for word in re.findall(r"[A-Za-z][A-Za-z-]*", sentence):
            base = wordnet.morphy(word.lower(), part)
            if word.lower() in lemmas or (base is not None and base in lemmas):
                yield word, sentence
                break


def is_fit(gloss: str) -> bool:
    """Return whether a gloss is short enough, and fit for everybody to read."""
    return 8 <= len(gloss) <= _MAX_TEXT and not _UNFIT.search(gloss)
