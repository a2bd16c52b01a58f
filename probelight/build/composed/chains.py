"""A fact about a thing that is named by a fact: the three templates over Wikidata (Talmor 2020)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from probelight.build.hygiene.finding import plain_words, stands_in
from probelight.build.sources.wikidata import Facts

MEMBER_OF, CAST, SPOUSE, FOUNDED_BY, HEADQUARTERS = "P463", "P161", "P26", "P112", "P159"
LINKS = (MEMBER_OF, CAST, SPOUSE, FOUNDED_BY, HEADQUARTERS)
KIND, BEGAN, COUNTRY, WITHIN, GENDER, CITIZEN = "P31", "P571", "P17", "P131", "P21", "P27"
DETAILS = (KIND, BEGAN, COUNTRY, WITHIN, GENDER, CITIZEN)
_FOUNDED = "founded"  # P112 the other way round

QUESTIONS = {
    "band": (
        "When did the band where {} played first form?",
        "What band did {} play in?",
        "When did {} first form?",
    ),
    "spouse": (
        "Who is the spouse of the actor that played in {}?",
        "Which actor played in {}?",
        "Who is the spouse of {}?",
    ),
    "headquarters": (
        "Where is the headquarters of the company that {} established located?",
        "What company did {} establish?",
        "Where is the headquarters of {} located?",
    ),
}
# How an entity is linked to what is asked about, and what is asked about that.
_LINK = {"band": MEMBER_OF, "spouse": CAST, "headquarters": _FOUNDED}
_ASKED = {"band": BEGAN, "spouse": SPOUSE, "headquarters": HEADQUARTERS}
# Classes of which a bridge has to be, where it has to be of some.
_KINDS = {
    "band": {
        "Q215380",  # musical group
        "Q5741069",  # rock band
        "Q2088357",  # musical ensemble
        "Q216337",  # boy band
        "Q641066",  # girl group
        "Q9212979",  # musical duo
        "Q56816954",  # heavy metal band
    },
    "headquarters": {
        "Q4830453",  # business
        "Q783794",  # company
        "Q6881511",  # enterprise
        "Q891723",  # public company
        "Q18388277",  # technology company
        "Q1058914",  # software company
        "Q210167",  # video game developer
        "Q18127",  # record label
        "Q2085381",  # publishing company
        "Q46970",  # airline
        "Q786820",  # automobile manufacturer
    },
}


@dataclass(frozen=True)
class Chain:
    """An entity, what it is linked to, and what is said of that: Lennon, the Beatles, 1960.

    Attributes:
        template: A key of `QUESTIONS`.
        names: Of the entity, of the bridge and of the answer.
        ids: Of the three; a year is its own.
    """

    template: str
    names: tuple[str, str, str]
    ids: tuple[str, str, str]

    @property
    def question(self) -> str:
        """What is asked."""
        return QUESTIONS[self.template][0].format(self.names[0])

    @property
    def hops(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The two single-hop questions with their answers."""
        _, first, second = QUESTIONS[self.template]
        entity, bridge, answer = self.names
        return (first.format(entity), bridge), (second.format(bridge), answer)


@dataclass
class World:
    """The facts of Wikidata as the three templates need them.

    Args:
        facts: With `LINKS` and `DETAILS`.
    """

    facts: Facts

    def __post_init__(self) -> None:
        for company, founders in self.facts.objects.get(FOUNDED_BY, {}).items():
            for founder in founders:
                self.facts.add(founder, _FOUNDED, company)

    def linked(self, template: str, entity: str) -> list[str]:
        """All bridges of an entity, of whatever class."""
        return self.facts.of(entity, _LINK[template])

    def right(self, template: str, bridge: str) -> set[str]:
        """What is right of a bridge: ids, or years."""
        asked = _ASKED[template]
        if asked == BEGAN:
            return self.facts.years(bridge, asked)
        return set(self.facts.of(bridge, asked))

    def all_right(self, template: str, entity: str) -> set[str]:
        """What is right of an entity, by any bridge of any class."""
        return {
            one for bridge in self.linked(template, entity) for one in self.right(template, bridge)
        }

    def chains(self, template: str) -> Iterator[Chain]:
        """The chains that can be asked, in the order of the source.

        A question has one answer that Wikidata knows, by one bridge: who played in two bands is not
        asked about. No two entities and no two bridges of a template have the same name, and no
        answer stands in its question, nor a bridge in the one about the entity.
        """
        found = list(self._chains(template))
        subjects = Counter(map(self._said, self.facts.objects.get(_LINK[template], ())))
        bridges = Counter(map(self._said, {chain.ids[1] for chain in found}))
        for chain in found:
            (first, bridge), (second, answer) = chain.hops
            told = stands_in(bridge, first) or stands_in(answer, f"{chain.question} {second}")
            alone = subjects[self._said(chain.ids[0])] == bridges[self._said(chain.ids[1])] == 1
            if alone and not told:
                yield chain

    def _chains(self, template: str) -> Iterator[Chain]:
        classes = _KINDS.get(template)
        for entity in self.facts.objects.get(_LINK[template], {}):
            bridges = [
                bridge
                for bridge in self.linked(template, entity)
                if classes is None or not classes.isdisjoint(self.facts.of(bridge, KIND))
            ]
            if template == "spouse":  # a film has many actors, of whom one is known to be married
                bridges = [bridge for bridge in bridges if self.right(template, bridge)]
            if len(bridges) == 1 and len(right := self.right(template, bridges[0])) == 1:
                ids = (entity, bridges[0], right.pop())
                names = (self.name(ids[0]), self.name(ids[1]), self.name(ids[2]))
                if all(map(plain_words, names)):
                    yield Chain(template, names, ids)

    def name(self, id: str) -> str:
        """What an entity is called; a year is its own name, and "" stands where there is none."""
        return id if id.isdigit() else self.facts.labels.get(id, "")

    def _said(self, id: str) -> str:
        """A name as the checks compare it."""
        return plain_words(self.name(id))

    def share(self, first: str, second: str, property: str) -> bool:
        """Whether two entities have an object of a property in common."""
        return not set(self.facts.of(first, property)).isdisjoint(self.facts.of(second, property))

    def lies_within(self, first: str, second: str) -> bool:
        """Whether one of two places is a part of the other, as far as is known."""
        return second in self._around(first) or first in self._around(second)

    def _around(self, place: str) -> set[str]:
        seen, rest = set[str](), [place]
        while rest:
            above = [one for one in self.facts.of(rest.pop(), WITHIN) if one not in seen]
            seen.update(above)
            rest += above
        return seen
