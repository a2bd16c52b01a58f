"""WordNet 3.0 as a knowledge source, read through NLTK (Richardson & Sabharwal 2020, 3.1).

Also which of its glosses and examples are fit to be shown.
"""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Debian's packages lack this file of the original distribution; NLTK's reader needs it.
_LEXNAMES = (
    "adj.all adj.pert adv.all noun.Tops noun.act noun.animal noun.artifact noun.attribute "
    "noun.body noun.cognition noun.communication noun.event noun.feeling noun.food noun.group "
    "noun.location noun.motive noun.object noun.person noun.phenomenon noun.plant noun.possession "
    "noun.process noun.quantity noun.relation noun.shape noun.state noun.substance noun.time "
    "verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption "
    "verb.contact verb.creation verb.emotion verb.motion verb.perception verb.possession "
    "verb.social verb.stative verb.weather adj.ppl"
).split()
_PART_OF_SPEECH_NUMBER = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
_ANIMAL = "animal.n.01"
_ANIMAL_KINDS = {"chordate.n.01", "invertebrate.n.01"}
_REQUIRED = ("data.noun", "data.verb", "data.adj", "data.adv", "index.noun", "index.sense")

DEFAULT_DIR = Path("/usr/share/wordnet")


def open_wordnet(wordnet_dir: Path | str = DEFAULT_DIR) -> Any:
    """Open a WordNet 3.0 database folder with NLTK's WordNetCorpusReader.

    A missing `lexnames` is supplied without changing the folder. A FileNotFoundError names missing
    database files and the packages that hold them.
    """
    import nltk
    from nltk.corpus.reader import WordNetCorpusReader

    folder = Path(wordnet_dir).resolve()
    missing = [name for name in _REQUIRED if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"{folder}: not a folder with the WordNet 3.0 database; it lacks {', '.join(missing)}. "
            "On Debian: apt-get install wordnet-base wordnet-sense-index"
        )

    class Reader(WordNetCorpusReader):  # type: ignore[misc]  # it has no types
        def open(self, file: str) -> Any:
            if file != "lexnames" or (folder / file).is_file():
                return super().open(file)
            pos_numbers = (_PART_OF_SPEECH_NUMBER[name.split(".")[0]] for name in _LEXNAMES)
            rows = enumerate(zip(_LEXNAMES, pos_numbers, strict=True))
            return io.StringIO("".join(f"{n:02d}\t{name}\t{pos}\n" for n, (name, pos) in rows))

        def _synset_from_pos_and_line(self, pos: str, data_file_line: str) -> Any:
            """Sort relatives, which NLTK holds in sets, whose order differs between runs."""
            synset = super()._synset_from_pos_and_line(pos, data_file_line)
            synset._pointers = {symbol: sorted(to) for symbol, to in synset._pointers.items()}
            return synset

        def map_wn(self, version: str = "wordnet") -> None:
            """Do nothing: only multilingual functions need the second WordNet."""

    # NLTK opens only folders on its own path; this one was named by the user.
    if str(folder) not in nltk.data.path:
        nltk.data.path.append(str(folder))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The multilingual functions")
        return Reader(str(folder), None)


def synset_words(synset: Any) -> list[str]:
    """Return the synset's lemmas as words, with spaces for underscores."""
    return [name.replace("_", " ") for name in synset.lemma_names()]


def uses(wordnet: Any, word: str, pos_letters: str) -> tuple[int, int]:
    """Count how often WordNet's corpus has a word as some parts of speech, and as others."""
    counts = Counter[bool]()
    for lemma in wordnet.lemmas(word):
        counts[lemma.synset().pos() in pos_letters] += lemma.count()
    return counts[True], counts[False]


def mostly_noun(wordnet: Any, word: str) -> bool:
    """Return whether a word is a noun at least as often as anything else."""
    noun_uses, further_uses = uses(wordnet, word, "n")
    return noun_uses >= further_uses


def ancestors(synset: Any, max_hops: int) -> Iterator[tuple[int, Any]]:
    """Yield HOPS(c, up): direct and derived hypernyms as (hops, synset), nearest first."""
    return _walk(synset, max_hops, lambda s: s.hypernyms() + s.instance_hypernyms())


def descendants(synset: Any, max_hops: int) -> Iterator[tuple[int, Any]]:
    """Yield HOPS(c, down): direct and derived hyponyms as (hops, synset), nearest first."""
    return _walk(synset, max_hops, lambda s: s.hyponyms() + s.instance_hyponyms())


def _walk(
    synset: Any, max_hops: int, step: Callable[[Any], list[Any]]
) -> Iterator[tuple[int, Any]]:
    seen = {synset.name()}
    level = [synset]
    for hops in range(1, max_hops + 1):
        reached = {s.name(): s for synset in level for s in step(synset)}
        level = [s for name, s in reached.items() if name not in seen]
        seen |= reached.keys()
        yield from ((hops, s) for s in level)


def is_of_unsaid_kind(synset: Any) -> bool:
    """Return whether WordNet calls something an animal, but neither chordate nor invertebrate.

    It files the young ("calf"), larvae, males and females, pets and giants so; that no hypernym
    says so does not mean that a calf is no vertebrate.
    """
    above = {hypernym.name(): hypernym for _, hypernym in ancestors(synset, max_hops=99)}
    if _ANIMAL not in above:
        return False
    kinds = {kind.name() for kind in above[_ANIMAL].hyponyms()} & _ANIMAL_KINDS
    return bool(kinds) and kinds.isdisjoint({synset.name(), *above})


def hypernym_edges(wordnet: Any, word: str) -> dict[str, int] | None:
    """Count the fewest edges from a noun up to each word above it (Talmor 2020, 4.4).

    Inflected forms and multi-word names are found too. Words are lower case, the noun's own
    synonyms at 0; None if WordNet has no such noun.
    """
    senses = wordnet.synsets(word.strip().replace(" ", "_"), "n")
    if not senses:
        return None
    edges: dict[str, int] = {}
    for sense in senses:
        for hops, synset in [(0, sense), *ancestors(sense, max_hops=99)]:
            for name in synset_words(synset):
                edges[name.lower()] = min(hops, edges.get(name.lower(), hops))
    return edges


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
    pos = concept.pos()
    for example in concept.examples():
        sentence = plain(example).strip(" \"';")
        if "'" in sentence.replace("'s", "").replace("n't", "") or len(sentence.split()) < 3:
            continue
        if _UNFIT.search(sentence):
            continue
        for word in re.findall(r"[A-Za-z][A-Za-z-]*", sentence):
            base = wordnet.morphy(word.lower(), pos)
            if word.lower() in lemmas or (base is not None and base in lemmas):
                yield word, sentence
                break


def is_fit(gloss: str) -> bool:
    """Return whether a gloss is short enough, and fit for everybody to read."""
    return 8 <= len(gloss) <= _MAX_TEXT and not _UNFIT.search(gloss)
