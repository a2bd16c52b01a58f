"""Chemical elements: their symbols, and which is heavier than which, from periodictable."""

from __future__ import annotations

from collections.abc import Sequence, Set
from itertools import pairwise
from random import Random
from typing import Any

from probelight.builders.builder import BuildSettings, Draft, Probe, finish
from probelight.builders.school.fours import (
    Fact,
    comparison_items,
    in_fours,
    school_builder,
    source_package,
    two_way_items,
)

_LAST_NATURAL = 92  # uranium: what is known of the mass of heavier ones changes
_MARGIN = 1.03  # times the mass of what is lighter
_ROUNDS = 2  # how often an element is asked for by its weight, at most
_TRIES = 100
_WORDS = ("An element", "heavier", "lighter")
_STEMS = {
    "symbol": "The chemical symbol of {} is",
    "element": "The chemical element with the symbol {} is",
}


def build_elements(settings: BuildSettings) -> Probe:
    """Build the probe: symbol and element in both directions, and heavier or lighter elements."""
    rng = Random(f"elements:{settings.seed}")
    elements = {e.name: e for e in source_package("periodictable").elements if e.number > 0}
    natural = [element for element in elements.values() if element.number <= _LAST_NATURAL]
    facts = [Fact(element.name, element.name, element.symbol) for element in elements.values()]
    splits, stems = two_way_items(facts, _STEMS, _unlikeness, rng), set[str]()
    for drafts in reversed(splits.values()):  # test first: there are few pairs of elements to name
        names = {str(draft.group) for draft in drafts}
        dealt = [element for element in natural if element.name in names]
        for _ in range(_ROUNDS):
            for four in in_fours(dealt, lambda first, second: 0, rng):
                weighed = _weighed(four, natural, stems, rng)
                stems |= {draft.stem for draft in weighed}
                drafts += weighed
    return finish("elements", splits, rng)


def _unlikeness(fact: Fact, wrong: Fact) -> int:
    """Return how little a wrong symbol looks like an abbreviation of a name, from 0 to 4.

    It does if it has the first letter, and its second letter comes after that.
    """
    symbol, name = sorted((fact.name, wrong.answer), key=len)
    begins = name[0] == symbol[0].lower()
    return 2 * (not begins) + 2 * (not begins or symbol[1:] not in name[1:])


def _weighed(
    four: Sequence[Any], elements: Sequence[Any], stems: Set[str], rng: Random
) -> list[Draft]:
    """Ask for four elements by others that are between them, not in `stems`; [] if none are."""
    names = [element.name for element in sorted(four, key=lambda element: element.mass)]
    between = []
    for light, heavy in pairwise(sorted(element.mass for element in four)):
        least, most = light * _MARGIN, heavy / _MARGIN
        between.append([element.name for element in elements if least < element.mass < most])
    for _ in range(_TRIES if all(between) else 0):
        drafts = comparison_items(_WORDS, names, [*map(rng.choice, between)], "heavier")
        if stems.isdisjoint(draft.stem for draft in drafts):
            return drafts
    return []


ELEMENTS = school_builder(
    build_elements,
    """\
All 118 elements by the package's English names (aluminum, cesium, sulfur): the symbol of an
element, and the element of a symbol; both are in one group. Of those up to uranium also which of
four is heavier than a second element, lighter, or between two, by the mass of an atom, with at
least 3% between any two that are compared. The choices are, as far as they go, what the name might
be abbreviated to, or what the symbol might stand for. Each of four choices is asked
for once, so the choices alone tell nothing, and no element is a choice in two splits. A reader who
looks for the letters of a symbol in the name still finds the answer more often than by chance.""",
    "periodictable",
    "public domain",
)
