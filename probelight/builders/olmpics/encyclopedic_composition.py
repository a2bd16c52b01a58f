"""Encyclopedic composition from Wikidata: a fact about a thing named by a fact (Talmor 2020, 4.5).

Three templates ask for the answer of a chain of two facts. Their single-hop facts, to train on
first, are next to the probe, in `facts.jsonl.gz`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from probelight.builders.builder import Builder, Draft, Probe, Source, finish
from probelight.builders.hygiene import Finding, plain_words, stands_in
from probelight.builders.olmpics.frame import (
    NumItemsOrNone,
    OlmpicsSettings,
    deal_names,
    first_drafts,
    in_order,
)
from probelight.builders.sources.wikidata import Facts, read_wikidata
from probelight.io.ranges import NumItems
from probelight.probes.record import Record

NAME = "encyclopedic_composition"
NUM_WRONG = 2
_YEARS = (1, 2, 3)  # how far a wrong year is from the right one
_SPARE = 2  # chains that are looked at for each item: some have no near answers
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
    """Two linked facts: Lennon, the Beatles, 1960."""

    template: str  # a key of `QUESTIONS`
    names: tuple[str, str, str]  # of the entity, of the bridge and of the answer
    ids: tuple[str, str, str]  # of the three; a year is its own

    @property
    def question(self) -> str:
        """The question about the entity."""
        return QUESTIONS[self.template][0].format(self.names[0])

    @property
    def hops(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The two single-hop questions with their answers."""
        _, first, second = QUESTIONS[self.template]
        entity, bridge, answer = self.names
        return (first.format(entity), bridge), (second.format(bridge), answer)


@dataclass
class World:
    """Wikidata's facts of `LINKS` and `DETAILS`, as the three templates need them."""

    facts: Facts

    def __post_init__(self) -> None:
        for company, founders in self.facts.objects.get(FOUNDED_BY, {}).items():
            for founder in founders:
                self.facts.add(founder, _FOUNDED, company)

    def bridges(self, template: str, entity: str) -> list[str]:
        """Return all bridges of an entity, of whatever class."""
        return self.facts.values_of(entity, _LINK[template])

    def right_answers(self, template: str, bridge: str) -> set[str]:
        """Return the right answers about a bridge: ids, or years."""
        property = _ASKED[template]
        if property == BEGAN:
            return self.facts.years(bridge, property)
        return set(self.facts.values_of(bridge, property))

    def all_right_answers(self, template: str, entity: str) -> set[str]:
        """Return the right answers about an entity, over all its bridges of any class."""
        bridges = self.bridges(template, entity)
        return set().union(*(self.right_answers(template, bridge) for bridge in bridges))

    def chains(self, template: str) -> Iterator[Chain]:
        """Yield the chains that can be asked, in the order of the source.

        A question has one answer that Wikidata knows, by one bridge: who played in two bands is not
        asked about. Names of entities and of bridges are unique in a template; no question contains
        its answer, nor the one about the entity the bridge.
        """
        entities, classes = self.facts.objects.get(_LINK[template], {}), _KINDS.get(template)
        candidates = list[Chain]()
        for entity in entities:
            bridges = [
                bridge
                for bridge in self.bridges(template, entity)
                if classes is None or not classes.isdisjoint(self.facts.values_of(bridge, KIND))
            ]
            if template == "spouse":  # a film has many actors, of whom one is known to be married
                bridges = [bridge for bridge in bridges if self.right_answers(template, bridge)]
            if len(bridges) == 1 and len(answers := self.right_answers(template, bridges[0])) == 1:
                ids = (entity, bridges[0], answers.pop())
                names = (self.name(ids[0]), self.name(ids[1]), self.name(ids[2]))
                if all(map(plain_words, names)):
                    candidates.append(Chain(template, names, ids))
        num_entities = Counter(plain_words(self.name(id)) for id in entities)
        num_bridges = Counter(plain_words(self.name(id)) for id in {c.ids[1] for c in candidates})
        for chain in candidates:
            (first, bridge), (second, answer) = chain.hops
            is_told = stands_in(bridge, first) or stands_in(answer, f"{chain.question} {second}")
            is_alone = num_entities[plain_words(chain.names[0])] == 1
            if is_alone and num_bridges[plain_words(bridge)] == 1 and not is_told:
                yield chain

    def name(self, id: str) -> str:
        """Return the name of an entity, "" if unknown; a year names itself."""
        return id if id.isdigit() else self.facts.labels.get(id, "")

    def share_object(self, first: str, second: str, property: str) -> bool:
        """Return whether two entities have a value of a property in common."""
        first_values = set(self.facts.values_of(first, property))
        return not first_values.isdisjoint(self.facts.values_of(second, property))

    def enclosing_areas(self, area: str) -> set[str]:
        """Return what a place is a part of, directly or not."""
        seen, queue = set[str](), [area]
        while queue:
            enclosing = [id for id in self.facts.values_of(queue.pop(), WITHIN) if id not in seen]
            seen.update(enclosing)
            queue += enclosing
        return seen


class PlausibleAnswers:
    """Draws the wrong answers of one template's items in a split.

    Wrong years are placed so that each of three years is equally often right. Other wrong answers
    are right answers of the split's other items, first those that were wrong more seldom than
    right, so that the choices alone do not tell a gold.
    """

    def __init__(self, world: World, chains: Sequence[Chain], rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.golds = {chain.ids[2]: chain.names[2] for chain in chains}
        self.surplus = Counter[str]()
        for chain in chains:
            self.surplus[chain.ids[2]] -= NUM_WRONG

    def draw(self, chain: Chain) -> tuple[str, ...] | None:
        """Draw the wrong answers of an item; None where there are too few."""
        if chain.template == "band":
            year, num_before = int(chain.ids[2]), self.rng.randint(0, NUM_WRONG)
            earlier = self.rng.sample(_YEARS, num_before)
            later = self.rng.sample(_YEARS, NUM_WRONG - num_before)
            wrong_years = [*(year - n for n in earlier), *(year + n for n in later)]
            return tuple(map(str, wrong_years))
        plausible = self._plausible_answers(chain)
        self.rng.shuffle(plausible)
        plausible.sort(key=self.surplus.__getitem__)
        ids_by_name = dict[str, str]()
        for id in plausible:
            ids_by_name.setdefault(plain_words(self.golds[id]), id)
            if len(ids_by_name) == NUM_WRONG:
                self.surplus.update(ids_by_name.values())
                return tuple(self.golds[subject] for subject in ids_by_name.values())
        return None

    def _plausible_answers(self, chain: Chain) -> list[str]:
        """Return answers of other items that resemble the right one and are certainly wrong."""
        world, gold = self.world, chain.ids[2]
        ids = {gold, *world.all_right_answers(chain.template, chain.ids[0])}
        right_names = {plain_words(world.name(id)) for id in ids}
        candidates = [id for id, name in self.golds.items() if plain_words(name) not in right_names]
        if chain.template == "headquarters":
            return [
                id
                for id in candidates
                if world.share_object(id, gold, COUNTRY)
                and gold not in world.enclosing_areas(id)
                and id not in world.enclosing_areas(gold)
            ]
        same_gender = [id for id in candidates if world.share_object(id, gold, GENDER)]
        citizens = [id for id in same_gender if world.share_object(id, gold, CITIZEN)]
        return citizens if len(citizens) >= NUM_WRONG else same_gender


@dataclass(frozen=True)
class CompositionSettings(OlmpicsSettings):
    """Settings of encyclopedic_composition.

    Args:
        source: Wikidata's JSON dump (plain, gz, bz2), or a tab-separated table of triples with the
            columns subject, subject_label, property, object, object_label.
        num_train: Number of train items, a third from each template.
        num_dev: Number of dev items.
        num_test: Number of test items, which the paper does not have; 0 for none.
        questions: Largest number of questions per band, actor or company that links two facts.
        min_sitelinks: Number of wikis that must have a page on the person, film or company that a
            fact begins with, so that it is well known. It does not apply to a table.
    """

    source: str = "latest-all.json.gz"
    questions: NumItems = 3
    min_sitelinks: NumItemsOrNone = 5


@lru_cache(maxsize=1)
def _world(source: str, min_sitelinks: int) -> World:
    return World(read_wikidata(Path(source), LINKS, DETAILS, min_sitelinks))


def build_composition(settings: CompositionSettings) -> Probe:
    """Build the probe, a third of each template."""
    world = _world(settings.source, settings.min_sitelinks)
    rng = random.Random(f"{NAME}:{settings.seed}")
    sizes = settings.train | settings.evaluation
    drafts: dict[str, list[Draft]] = {split: [] for split in sizes}
    for turn, template in enumerate(QUESTIONS):
        template_sizes = {split: (size + turn) // len(QUESTIONS) for split, size in sizes.items()}
        chains: dict[str, list[Chain]] = {}
        for chain in world.chains(template):
            # In one split lies all about an answer, or about a band, as years come again.
            key = chain.names[1] if template == "band" else chain.names[2]
            chains.setdefault(key, []).append(chain)
        used = {draft.gold for split in drafts.values() for draft in split}
        for split, keys in deal_names(sorted(chains.keys() - used), template_sizes, rng).items():
            pool = [chain for key in keys for chain in chains[key]]
            counts, bridge_chains = Counter[str](), []  # at most `questions` of each bridge
            for chain in rng.sample(pool, len(pool)):
                counts[chain.ids[1]] += 1
                if counts[chain.ids[1]] <= settings.questions:
                    bridge_chains.append(chain)
            template_drafts = _drafts(world, bridge_chains[: _SPARE * template_sizes[split]], rng)
            advice = "lower --min_sitelinks, or raise --questions"
            subject = f"{NAME}: {split}, {template}"
            drafts[split] += first_drafts(template_drafts, template_sizes[split], subject, advice)
    return finish(NAME, in_order(drafts), rng)


def _drafts(world: World, chains: Sequence[Chain], rng: random.Random) -> Iterator[Draft]:
    wrong_answers = PlausibleAnswers(world, chains, rng)
    for chain in chains:
        if wrong := wrong_answers.draw(chain):
            cluster = f"{chain.names[1]} ({chain.ids[1]})"
            meta = {
                "cluster": cluster,
                "template": chain.template,
                "names": list(chain.names),
                "ids": list(chain.ids),
            }
            yield Draft(chain.question, chain.names[2], wrong, cluster, meta)


def _chain(record: Record) -> Chain:
    (entity, bridge, answer), (first, second, third) = record.meta["names"], record.meta["ids"]
    return Chain(record.meta["template"], (entity, bridge, answer), (first, second, third))


def single_hop_facts(settings: CompositionSettings, probe: Probe) -> Mapping[str, list[Record]]:
    """Return the facts that answer a probe's questions: two per item, each fact once.

    The first asks for the bridge among other bridges, the second has the item's own choices.
    """
    world = _world(settings.source, settings.min_sitelinks)
    rng = random.Random(f"{NAME}:facts:{settings.seed}")
    items = [(record, _chain(record)) for split in probe.values() for record in split]
    bridges: dict[str, dict[str, str]] = {template: {} for template in QUESTIONS}
    for _, chain in items:
        bridges[chain.template][chain.ids[1]] = chain.names[1]
    drafts = dict[str, Draft]()
    for record, chain in items:
        right = {world.name(id) for id in world.bridges(chain.template, chain.ids[0])}
        other_bridges = [name for name in bridges[chain.template].values() if name not in right]
        (first, bridge), (second, answer) = chain.hops
        meta = {"cluster": record.meta["cluster"], "template": chain.template}
        if len(other_bridges) >= NUM_WRONG:
            wrong = tuple(rng.sample(other_bridges, NUM_WRONG))
            drafts.setdefault(first, Draft(first, bridge, wrong, first, meta))
        drafts.setdefault(second, Draft(second, answer, record.wrong, second, meta))
    return finish(NAME, {"facts": list(drafts.values())}, rng)


def check_facts(settings: CompositionSettings, records: Sequence[Record]) -> list[Finding]:
    """Find right answers that Wikidata does not confirm, and wrong ones that it does."""
    world = _world(settings.source, settings.min_sitelinks)
    findings = []
    for record in records:
        chain = _chain(record)
        right = {world.name(id) for id in world.all_right_answers(chain.template, chain.ids[0])}
        if record.gold not in right:
            text = f"{record.gold!r} is not among {sorted(right)}"
            findings.append(Finding("a right answer is wrong (Wikidata)", record.where, text))
        findings += [
            Finding("a wrong answer is right (Wikidata)", record.where, repr(text))
            for text in record.wrong
            if text in right
        ]
    return findings


_ABOUT = """\
Built as Talmor et al. (2020, section 4.5) describe, with a third of the items from each of their
three templates. Each question has one answer in Wikidata: people who played in two bands or founded
two companies, films with two actors whose spouses are known, names that two entities share, and
answers that are in a question are left out. Wrong years are up to three years away, and the
earliest, middle and latest of the three years are right equally often. Wrong cities are in the same
country and not a part of the right one. Wrong spouses have the same gender and, if there are
enough, the same citizenship. Wrong answers are right answers of other questions of the split, and
are wrong no more often than necessary. Splits share no band, actor or company, and no answer except
years.

`facts.jsonl.gz` has the single-hop facts of all splits, on which you can train a model first:
`train.py curve --first_stage DIR/encyclopedic_composition/facts.jsonl.gz`."""

ENCYCLOPEDIC_COMPOSITION = Builder(
    NAME,
    "A fact about something that another fact names",
    CompositionSettings,
    build_composition,
    sources={"source": Source("Wikidata", "as of the file below", "CC0")},
    check=check_facts,
    extra_files=single_hop_facts,
    about=_ABOUT,
    config={
        "licence": "CC0",
        "setup": "mc_qa",
        "num_choices": NUM_WRONG + 1,
        "chance": 0.3333,
        "group_by": "cluster",
        "arguments": {
            name: re.escape(question).replace(re.escape("{}"), "(.+)").replace(r"\ ", " ")
            for name, (question, *_) in QUESTIONS.items()
        },
        "key_words": [
            *("band", "played", "first", "form", "spouse", "actor", "headquarters"),
            *("company", "established"),
        ],
    },
)
