"""Contexts with less in them: what a model still says tells what it went by (Ettinger 2020).

CPRAG-102 (section 7.1, table 4): the words of the first sentence in another order, the second
sentence cut to its last two words, or both. ROLE-88 (section 8.1, table 7): "one" for the noun
behind "which", "other" for the noun behind the following "the", or both.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from probelight.probes.diagnostics.items import InferenceItem, Item, RoleItem
from probelight.probes.diagnostics.sets import DiagnosticSet

KEPT_WORDS = 2  # of the second sentence
OBJECT, SUBJECT = "one", "other"


@dataclass(frozen=True)
class Perturbation:
    """A way to take something out of contexts.

    Attributes:
        name: What tables of results call it.
        context: An item's context without it; the seed decides what is drawn.
        is_drawn: Whether the seed matters.
    """

    name: str
    context: Callable[[Item, int], str]
    is_drawn: bool = False


def perturbations_of(data: DiagnosticSet) -> tuple[Perturbation, ...]:
    """The perturbations that there are of a set."""
    return _OF_ITEMS.get(type(data.items[0]), ())


def shuffled(item: InferenceItem, seed: int) -> str:
    """The first sentence with its words, between white space, in a random order.

    Each word keeps what is written at it. The order depends on the seed and the sentence alone, and
    may be the old one.
    """
    words = item.first.split()
    random.Random(f"{seed} {item.first}").shuffle(words)
    return " ".join(words)


def truncated(item: InferenceItem) -> str:
    """The last words before the target."""
    return " ".join(item.second.split()[-KEPT_WORDS:])


def _inference(shuffles: bool, truncates: bool) -> Callable[[Item, int], str]:
    def context(item: Item, seed: int) -> str:
        assert isinstance(item, InferenceItem)
        first = shuffled(item, seed) if shuffles else item.first
        return f"{first} {truncated(item) if truncates else item.second}"

    return context


def _roles(object_noun: str | None, subject_noun: str | None) -> Callable[[Item, int], str]:
    def context(item: Item, seed: int) -> str:
        assert isinstance(item, RoleItem)
        return item.with_nouns(object_noun, subject_noun)

    return context


_OF_ITEMS: dict[type[Item], tuple[Perturbation, ...]] = {
    InferenceItem: (
        Perturbation("shuffled", _inference(True, False), is_drawn=True),
        Perturbation("truncated", _inference(False, True)),
        Perturbation("shuffled+truncated", _inference(True, True), is_drawn=True),
    ),
    RoleItem: (
        Perturbation("generic_object", _roles(OBJECT, None)),
        Perturbation("generic_subject", _roles(None, SUBJECT)),
        Perturbation("generic_both", _roles(OBJECT, SUBJECT)),
    ),
}
