"""Encyclopedic composition from Wikidata: a fact about a thing named by a fact (Talmor 2020, 4.5).

The single-hop facts that a model is trained on first lie beside the probe, in `facts.jsonl.gz`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from probelight.build.composed.chains import DETAILS, LINKS, QUESTIONS, Chain, World
from probelight.build.composed.dealt import dealt, taken
from probelight.build.composed.near import NUM_WRONG, NearAnswers
from probelight.build.drafts import Draft, Probe, finish
from probelight.build.frame.builder import Builder, Source
from probelight.build.hygiene.finding import Finding
from probelight.build.olmpics.frame import NumItemsOrNone, OlmpicsSettings, in_order
from probelight.build.sources.wikidata import read_wikidata
from probelight.io.ranges import NumItems
from probelight.probes.record import Record

NAME = "encyclopedic_composition"
_SPARE = 2  # chains that are looked at for each item: some have no near answers


@dataclass(frozen=True)
class CompositionSettings(OlmpicsSettings):
    """Settings of encyclopedic_composition.

    Args:
        source: Wikidata's JSON dump (plain, gz, bz2), or a table of triples parted by tabs with the
            columns subject, subject_label, property, object, object_label.
        num_train: Items of train, a third of each template.
        num_dev: Items of dev.
        num_test: Items of test, which the paper does not have; 0 for none.
        questions: Questions of one bridge (a band, an actor, a company) at most.
        min_sitelinks: Wikis that must have a page on the person, film or company that a fact
            begins with, so that it is a known one; a table does not say it.
    """

    source: str = "latest-all.json.gz"
    questions: NumItems = 3
    min_sitelinks: NumItemsOrNone = 5


@lru_cache(maxsize=1)
def _world(source: str, min_sitelinks: int) -> World:
    return World(read_wikidata(source, LINKS, DETAILS, min_sitelinks))


def build_composition(settings: CompositionSettings) -> Probe:
    """Builds the probe.

    Raises:
        FileNotFoundError: If Wikidata is missing, with where to get it.
        UsageError: If it says too little for so many items.
    """
    world = _world(settings.source, settings.min_sitelinks)
    rng = random.Random(f"{NAME}:{settings.seed}")
    sizes = settings.train | settings.evaluation
    drafts: dict[str, list[Draft]] = {split: [] for split in sizes}
    for place, template in enumerate(QUESTIONS):
        own = {split: (size + place) // len(QUESTIONS) for split, size in sizes.items()}
        chains: dict[str, list[Chain]] = {}
        for chain in world.chains(template):
            chains.setdefault(_key(chain), []).append(chain)
        used = {one.gold for split in drafts.values() for one in split}
        for split, keys in dealt(sorted(chains.keys() - used), own, rng).items():
            pool = [chain for key in keys for chain in chains[key]]
            found = _drafts(world, _few(pool, settings.questions, rng), own[split], rng)
            advice = "lower --min_sitelinks, or raise --questions"
            drafts[split] += taken(found, own[split], f"{NAME}: {split}, {template}", advice)
    return finish(NAME, in_order(drafts), rng)


def _key(chain: Chain) -> str:
    """What lies in one split: all about an answer, or about a band, as years come again."""
    return chain.names[1] if chain.template == "band" else chain.names[2]


def _few(chains: Sequence[Chain], most: int, rng: random.Random) -> list[Chain]:
    """Chains in a random order, so many of each bridge at most."""
    counts, found = Counter[str](), []
    for chain in rng.sample(chains, len(chains)):
        counts[chain.ids[1]] += 1
        if counts[chain.ids[1]] <= most:
            found.append(chain)
    return found


def _drafts(
    world: World, chains: Sequence[Chain], size: int, rng: random.Random
) -> Iterator[Draft]:
    looked_at = chains[: _SPARE * size]
    near = NearAnswers(world, looked_at, rng)
    for chain in looked_at:
        if wrong := near.of(chain):
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
    """The facts that answer the probe's questions: two of each item, those that come again once.

    The first asks for the bridge among other bridges, the second has the item's own choices.
    """
    world = _world(settings.source, settings.min_sitelinks)
    rng = random.Random(f"{NAME}:facts:{settings.seed}")
    records = [record for split in probe.values() for record in split]
    bridges: dict[str, dict[str, str]] = {template: {} for template in QUESTIONS}
    for chain in map(_chain, records):
        bridges[chain.template][chain.ids[1]] = chain.names[1]
    drafts = dict[str, Draft]()
    for record in records:
        chain = _chain(record)
        right = {world.name(id) for id in world.linked(chain.template, chain.ids[0])}
        others = [name for name in bridges[chain.template].values() if name not in right]
        (first, bridge), (second, answer) = chain.hops
        meta = {"cluster": record.meta["cluster"], "template": chain.template}
        if len(others) >= NUM_WRONG:
            wrong = tuple(rng.sample(others, NUM_WRONG))
            drafts.setdefault(first, Draft(first, bridge, wrong, first, meta))
        drafts.setdefault(second, Draft(second, answer, record.wrong, second, meta))
    return finish(NAME, {"facts": list(drafts.values())}, rng)


def check(settings: CompositionSettings, records: Sequence[Record]) -> list[Finding]:
    """What Wikidata says against items: of their right answers, and of each wrong one."""
    world = _world(settings.source, settings.min_sitelinks)
    findings = []
    for record in records:
        chain = _chain(record)
        right = {world.name(id) for id in world.all_right(chain.template, chain.ids[0])}
        if record.gold not in right:
            text = f"{record.gold!r} is not among {sorted(right)}"
            findings.append(Finding("a right answer is wrong (Wikidata)", record.where, text))
        findings += [
            Finding("a wrong answer is right (Wikidata)", record.where, repr(text))
            for text in record.wrong
            if text in right
        ]
    return findings


_CONFIG = {
    "licence": "CC0",
    "setup": "mc_qa",
    "num_choices": NUM_WRONG + 1,
    "chance": 0.3333,
    "group_by": "cluster",
    "arguments": {
        name: re.escape(asked).replace(re.escape("{}"), "(.+)").replace(r"\ ", " ")
        for name, (asked, *_) in QUESTIONS.items()
    },
    "key_words": [
        *("band", "played", "first", "form", "spouse", "actor", "headquarters"),
        *("company", "established"),
    ],
}
_ABOUT = """\
Built as Talmor et al. (2020, section 4.5) describe it: their three templates, a third each. Asked
is only what has one answer in Wikidata: who played in two bands, or founded two companies, is left
out, as are films with two actors whose spouses are known, names that two have, and answers that
stand in a question. Wrong years are up to three years away, and each of three years in their order
is equally often right; wrong cities are of the same country and not a part of the right one; wrong
spouses are of the same gender and, where there are enough, citizens of the same country. Those are
right answers of the split's other questions, and no oftener wrong than need be. Splits share no
band, actor or company, and no answer but years.

`facts.jsonl.gz` has the single-hop facts of all splits, which a model is trained on first:
`train.py curve --first_stage DIR/encyclopedic_composition/facts.jsonl.gz`."""

ENCYCLOPEDIC_COMPOSITION = Builder(
    NAME,
    "A fact about a thing named by a fact.",
    CompositionSettings,
    build_composition,
    sources={"source": Source("Wikidata", "as of the file below", "CC0")},
    check=check,
    beside=single_hop_facts,
    about=_ABOUT,
    config=_CONFIG,
)
