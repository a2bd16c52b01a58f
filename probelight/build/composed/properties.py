"""The properties that ConceptNet gives to concepts, and whether a concept may have one."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from probelight.build.sources.conceptnet import Edge, read_conceptnet

# Each stands behind "What is", and behind "but is not".
PHRASES = {
    "AtLocation": "usually located at {}",
    "CapableOf": "able to {}",
    "Causes": "known to cause {}",
    "CreatedBy": "usually created by {}",
    "Desires": "known to want {}",
    "HasA": "known to have {}",
    "HasProperty": "usually {}",
    "IsA": "a kind of {}",
    "LocatedNear": "usually located near {}",
    "MadeOf": "usually made of {}",
    "PartOf": "part of {}",
    "ReceivesAction": "often {}",
    "RelatedTo": "related to {}",
    "SymbolOf": "a symbol of {}",
    "UsedFor": "usually used for {}",
}
_SAME = {"Synonym", "FormOf", "SimilarTo", "DerivedFrom"}  # what says that two are nearly one
_NARROW = 100  # of a kind at most: what one bus has, others have; what one animal has, few others
_TEXT = re.compile(r"[a-z][a-z' -]*[a-z]")
_JOINED = re.compile(r"\b(and|or|but|not)\b")
_SMALL = {"a", "an", "the", "of", "in", "on", "at", "to", "for", "with", "by", "from"}


class Property(NamedTuple):
    """What may be said of a concept: (UsedFor, writing).

    Attributes:
        relation: One of `PHRASES`.
        text: Of what.
    """

    relation: str
    text: str

    def __str__(self) -> str:
        return PHRASES[self.relation].format(self.text)


@dataclass
class Properties:
    """What ConceptNet says, by concept.

    Attributes:
        of: The properties of a concept that enough speaks for and that can be asked.
        holders: The concepts of a property.
        degree: How many statements name a concept: how well it is known.
        linked: All that any statement links a concept to, in either direction, whatever its
            relation and its weight.
        kinds: What a concept is said to be a kind of.
        size: How many are of a kind.
        same: Its synonyms and other forms.
    """

    of: dict[str, dict[Property, None]] = field(default_factory=lambda: defaultdict(dict))
    holders: dict[Property, list[str]] = field(default_factory=lambda: defaultdict(list))
    degree: Counter[str] = field(default_factory=Counter)
    linked: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    kinds: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    size: Counter[str] = field(default_factory=Counter)
    same: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _with: dict[Property, set[str]] = field(default_factory=dict)

    def may_have(self, concept: str, one: Property) -> bool:
        """Whether anything hints that a concept has a property; a distractor must have no hint.

        ConceptNet does not say what is false. A hint is a statement of any relation and weight
        that links the concept, a synonym of it, or what it is a kind of (up to two steps), with
        the property's text or a synonym of that; a word that both share; or another of the same
        narrow kind that has the property, as a bus is made of metal where a car is. (What it is
        related to says nothing of its kind.)
        """
        meant = {one.text, *self.same.get(one.text, ())}
        near = {concept, *self.same.get(concept, ())}
        for _ in range(2):
            near |= {kind for name in near for kind in self.kinds.get(name, ())}
        return (
            bool(near & meant)
            or any(not meant.isdisjoint(self.linked.get(name, ())) for name in near)
            or share_a_word(concept, one.text)
            or not self._kinds_with(one).isdisjoint(self.kinds.get(concept, ()))
        )

    def _kinds_with(self, one: Property) -> set[str]:
        """The kinds, not too wide ones, of which some have a property."""
        if one.relation == "RelatedTo":
            return set()
        if one not in self._with:
            kinds = (self.kinds.get(holder, set()) for holder in self.holders.get(one, ()))
            self._with[one] = {kind for own in kinds for kind in own if self.size[kind] <= _NARROW}
        return self._with[one]

    def num_shared(self, first: str, second: str) -> int:
        """How many properties two concepts have in common."""
        return len(self.of[first].keys() & self.of[second].keys())

    def are_kin(self, first: str, second: str) -> bool:
        """Whether two concepts are nearly one, or the one is a kind of the other."""
        kin = self.same.get(first, set()) | self.kinds.get(first, set())
        return second in kin or first in self.kinds.get(second, ()) or share_a_word(first, second)


@lru_cache(maxsize=1)
def read_properties(path: Path, min_weight: float) -> Properties:
    """Reads what ConceptNet says in English.

    Args:
        path: Its assertions.
        min_weight: How much must speak for a property that is asked for.

    Raises:
        FileNotFoundError: If they are missing, with where to get them.
        RecordError: If a line is no statement.
    """
    return gathered(read_conceptnet(path, [*PHRASES, *sorted(_SAME)]), min_weight)


def gathered(edges: Iterable[Edge], min_weight: float) -> Properties:
    """What statements say, by concept; see `read_properties`."""
    found = Properties()
    for relation, start, end, weight in edges:
        found.degree[start] += 1
        found.degree[end] += 1
        found.linked[start].add(end)
        found.linked[end].add(start)
        if relation in _SAME:
            found.same[start].add(end)
            found.same[end].add(start)
            continue
        if relation == "IsA":
            found.size[end] += end not in found.kinds[start]
            found.kinds[start].add(end)
        one = Property(relation, end)
        if weight >= min_weight and _is_askable(start, one) and one not in found.of[start]:
            found.of[start][one] = None
            found.holders[one].append(start)
    return found


def share_a_word(first: str, second: str) -> bool:
    """Whether two texts have a word in common, a plural's s apart; small words do not count."""
    return not _stems(first).isdisjoint(_stems(second))


def _stems(text: str) -> set[str]:
    return {word.removesuffix("s") for word in re.findall(r"\w+", text) if word not in _SMALL}


def _is_askable(concept: str, one: Property) -> bool:
    """Texts that everybody can read, and an answer that does not stand in its question."""
    return (
        all(_TEXT.fullmatch(text) and not _JOINED.search(text) for text in (concept, one.text))
        and len(concept.split()) <= 3
        and len(one.text.split()) <= 4
        and not share_a_word(concept, one.text)
    )
