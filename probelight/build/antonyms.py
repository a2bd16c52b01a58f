"""Opposites and synonyms of WordNet, for antonym negation (Talmor et al. 2020, section 4.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from probelight.build.glosses import is_fit
from probelight.build.sources.wordnet import uses

Part = Literal["adjective", "noun", "verb"]
_LETTERS: Mapping[Part, str] = {"adjective": "a", "noun": "n", "verb": "v"}

_MAX_SENSE = 1  # later senses of a word make pairs that no reader would take as meant
_MIN_COUNT = 4  # occurrences that make a word outside the vocabulary well known
_MAX_SHARED = 4  # letters in a row: "happy, unhappy" can be told by spelling
# Not said of a thing after "it was", or counts rather than qualities.
_UNFIT = frozenset(
    "other same such few many much several more most less least own only very mere sheer utter "
    "former latter last next first second third one two zero no all any both each every "
    "cardinal ordinal".split()
)


def antonym_pairs(
    wordnet: Any, vocabulary: Collection[str], part: Part = "adjective"
) -> set[tuple[str, str]]:
    """Opposites, each pair once in alphabetic order.

    Also the opposites at one remove: what is similar to hot ("scorching") is opposed to cold, where
    the gloss of the one has a word of the other ("hot and dry"): a reader agrees with such pairs
    more often than with all. Other opposites may be so in the second sense as well.
    """
    first = _Known(wordnet, vocabulary, part)
    known = _Known(wordnet, vocabulary, part, 2)
    pairs = set()
    for synset in wordnet.all_synsets(_LETTERS[part]):
        for lemma in synset.lemmas():
            for opposite in (o for o in lemma.antonyms() if known.usable(o)):
                similar = (n for s in _similar(synset) for n in s.lemmas())
                near = [n for n in similar if first.usable(n)]
                near += [lemma] if known.usable(lemma) else []
                pairs |= {_ordered(n.name(), opposite.name()) for n in near}
    return {pair for pair in pairs if not _alike(*pair)}


def synonym_pairs(
    wordnet: Any, vocabulary: Collection[str], part: Part = "adjective"
) -> set[tuple[str, str]]:
    """Words of one synset, or of a synset and one similar to it; each pair once, in order.

    Similar ones are as in `antonym_pairs`.
    """
    known = _Known(wordnet, vocabulary, part)
    pairs = set()
    for synset in wordnet.all_synsets(_LETTERS[part]):
        own = [lemma for lemma in synset.lemmas() if known.usable(lemma)]
        similar = [lemma for s in _similar(synset) for lemma in s.lemmas()]
        for one in own:
            for other in (o for o in [*own, *similar] if o.name() != one.name()):
                if known.usable(other):
                    pairs.add(_ordered(one.name(), other.name()))
    return {pair for pair in pairs if not _alike(*pair)}


class _Known:
    """Words that everybody knows, in the sense they are mostly used in."""

    def __init__(
        self, wordnet: Any, vocabulary: Collection[str], part: Part, num_senses: int = _MAX_SENSE
    ) -> None:
        self.wordnet = wordnet
        self.num_senses = num_senses
        self.letters = "as" if part == "adjective" else _LETTERS[part]
        self.vocabulary = vocabulary
        self.senses: dict[str, list[str]] = {}

    def usable(self, lemma: Any) -> bool:
        """Whether a lemma may stand in the sentence."""
        name = lemma.name()
        if lemma.syntactic_marker() is not None:  # "(a)": only before a noun
            return False
        if name not in self.senses:
            self.senses[name] = self._first_senses(name)
        return lemma.synset().name() in self.senses[name] and lemma.count() > 0

    def _first_senses(self, name: str) -> list[str]:
        if name in _UNFIT or not (name.isalpha() and name.islower()) or len(name) < 3:
            return []
        own, other = uses(self.wordnet, name, self.letters)
        if other > own or not (name in self.vocabulary or own >= _MIN_COUNT):
            return []
        senses = self.wordnet.synsets(name, self.letters[0])[: self.num_senses]
        return [synset.name() for synset in senses if is_fit(synset)]


def _similar(synset: Any) -> list[Any]:
    """Synsets similar to one of which the gloss, or its own, names the other."""
    similar: list[Any] = synset.similar_tos()
    return [other for other in similar if _names(other, synset) or _names(synset, other)]


def _names(one: Any, other: Any) -> bool:
    """Whether a gloss has a word of another synset; an ending of two letters does not count."""
    gloss = one.definition().lower()
    return any(name[: max(_MAX_SHARED, len(name) - 2)] in gloss for name in other.lemma_names())


def _ordered(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _alike(one: str, other: str) -> bool:
    """Whether the words share more than a few letters in a row, as "happy, unhappy" do."""
    size = _MAX_SHARED + 1
    return any(one[i : i + size] in other for i in range(len(one) - size + 1)) or one in other
