"""Property conjunction from ConceptNet: which concept has both properties (Talmor 2020, 4.4)?"""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Annotated, NamedTuple

from probelight.builders.builder import Builder, Draft, Probe, Source, finish, tracked_lines
from probelight.builders.hygiene import Finding
from probelight.builders.olmpics.frame import OlmpicsSettings, deal_names, first_drafts, in_order
from probelight.io.errors import RecordError
from probelight.io.ranges import NumItems, Within
from probelight.probes.record import Record

DEFAULT_PATH = Path("conceptnet-assertions-5.7.0.csv.gz")
ADDRESS = f"https://s3.amazonaws.com/conceptnet/downloads/2019/edges/{DEFAULT_PATH}"


class Edge(NamedTuple):
    """A statement: pen UsedFor writing."""

    relation: str  # without "/r/"
    start: str  # the words of a concept, without part of speech and sense
    end: str
    weight: float  # how much speaks for it; 1.0 is one contributor


def read_conceptnet(path: Path, relations: Collection[str]) -> Iterator[Edge]:
    """Read the English statements of some relations, named without "/r/", in file order.

    The file has five tab-separated columns (URI, relation, start, end, JSON with the weight). A
    FileNotFoundError says where to get it; a RecordError names the malformed line.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: no ConceptNet assertions here. Download {ADDRESS} (475 MB), and give its "
            "path as --source, or as `source:` in --config"
        )
    relation_uris = {f"/r/{name}" for name in relations}
    prefix = "/c/en/"
    for number, line in tracked_lines(path, "ConceptNet"):
        cells = line.split("\t")
        if len(cells) != 5:
            raise RecordError(f"{path}:{number}: {len(cells)} columns between tabs; 5 are needed")
        _, relation, start, end, notes = cells
        if not relation.startswith("/r/"):
            raise RecordError(
                f"{path}:{number}: {relation[:60]!r} is not a relation like /r/UsedFor"
            )
        if relation in relation_uris and start.startswith(prefix) and end.startswith(prefix):
            try:
                weight = float(json.loads(notes)["weight"])
            except (ValueError, TypeError, KeyError, RecursionError):
                weight = math.nan
            if not math.isfinite(weight):
                raise RecordError(
                    f'{path}:{number}: the last column must be JSON with a "weight": {notes[:60]!r}'
                )
            # "toy store" of /c/en/toy_store/n/wn/artifact
            first, second = (
                uri.removeprefix(prefix).partition("/")[0].replace("_", " ") for uri in (start, end)
            )
            yield Edge(relation.removeprefix("/r/"), first, second, weight)


# Each is behind "What is", and behind "but is not".
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
    """What may be said of a concept, a key of `PHRASES` and its object: (UsedFor, writing)."""

    relation: str
    text: str

    def __str__(self) -> str:
        return PHRASES[self.relation].format(self.text)


class Properties:
    """What ConceptNet says, by concept."""

    def __init__(self) -> None:
        # Properties with enough weight that can be asked for, and their concepts.
        self.by_concept: dict[str, dict[Property, None]] = defaultdict(dict)
        self.holders: dict[Property, list[str]] = defaultdict(list)
        self.num_statements = Counter[str]()  # that name a concept: how well it is known
        # All that any statement links a concept to, either way, whatever relation and weight.
        self.neighbours: dict[str, set[str]] = defaultdict(set)
        self.kinds: dict[str, set[str]] = defaultdict(set)
        self.num_members = Counter[str]()  # of a kind
        self.synonyms: dict[str, set[str]] = defaultdict(set)  # and other forms
        self._kinds_with: dict[Property, set[str]] = {}

    def may_have(self, concept: str, prop: Property) -> bool:
        """Return whether anything hints that a concept has a property; no distractor may.

        ConceptNet does not say what is false. A hint is a statement of any relation and weight that
        links the concept, a synonym, or what it is a kind of (up to two steps) with the property's
        text or a synonym of that; a word that both share; or another of the same narrow kind that
        has the property, as a bus is made of metal if a car is. (Related concepts say nothing of a
        kind.)
        """
        text_names = {prop.text, *self.synonyms.get(prop.text, ())}
        concept_names = {concept, *self.synonyms.get(concept, ())}
        for _ in range(2):
            concept_names |= {kind for name in concept_names for kind in self.kinds.get(name, ())}
        if prop not in self._kinds_with:
            holders = [] if prop.relation == "RelatedTo" else self.holders.get(prop, [])
            kinds = {kind for holder in holders for kind in self.kinds.get(holder, ())}
            self._kinds_with[prop] = {kind for kind in kinds if self.num_members[kind] <= _NARROW}
        return (
            bool(concept_names & text_names)
            or any(not text_names.isdisjoint(self.neighbours.get(n, ())) for n in concept_names)
            or share_a_word(concept, prop.text)
            or not self._kinds_with[prop].isdisjoint(self.kinds.get(concept, ()))
        )

    def are_kin(self, first: str, second: str) -> bool:
        """Return whether two concepts are nearly the same, or one is a kind of the other."""
        kin = self.synonyms.get(first, set()) | self.kinds.get(first, set())
        return second in kin or first in self.kinds.get(second, ()) or share_a_word(first, second)


@lru_cache(maxsize=1)
def read_properties(path: Path, min_weight: float) -> Properties:
    """Read what ConceptNet says in English; errors are those of `read_conceptnet`."""
    return gather_properties(read_conceptnet(path, [*PHRASES, *sorted(_SAME)]), min_weight)


def gather_properties(edges: Iterable[Edge], min_weight: float) -> Properties:
    """Gather statements by concept; properties to ask for have at least `min_weight`."""
    properties = Properties()
    for relation, start, end, weight in edges:
        properties.num_statements[start] += 1
        properties.num_statements[end] += 1
        properties.neighbours[start].add(end)
        properties.neighbours[end].add(start)
        if relation in _SAME:
            properties.synonyms[start].add(end)
            properties.synonyms[end].add(start)
            continue
        if relation == "IsA":
            properties.num_members[end] += end not in properties.kinds[start]
            properties.kinds[start].add(end)
        prop = Property(relation, end)
        # Everybody can read the texts, and neither is in the other.
        is_askable = (
            all(_TEXT.fullmatch(text) and not _JOINED.search(text) for text in (start, end))
            and len(start.split()) <= 3
            and len(end.split()) <= 4
            and not share_a_word(start, end)
        )
        if weight >= min_weight and is_askable and prop not in properties.by_concept[start]:
            properties.by_concept[start][prop] = None
            properties.holders[prop].append(start)
    return properties


def share_a_word(first: str, second: str) -> bool:
    """Return whether two texts share a word, up to a plural s; small words do not count."""
    first_stems, second_stems = (
        {word.removesuffix("s") for word in re.findall(r"\w+", text) if word not in _SMALL}
        for text in (first, second)
    )
    return not first_stems.isdisjoint(second_stems)


NAME = "property_conjunction"
_PAIRS = 40  # of a concept's properties that are tried
_VAGUE = {"RelatedTo", "IsA"}  # most of what ConceptNet says, and least of what a question needs
_TRIED = 100  # of the concepts that have a property
_ALIKE = 2  # properties that a wrong answer shares with the right one at most, with the asked one
_MOST = 4  # times that a concept may be a wrong answer more often than twice for each time right


@dataclass(frozen=True)
class ConjunctionSettings(OlmpicsSettings):
    """Settings of property_conjunction.

    Args:
        source: The assertions of ConceptNet 5.7: the released csv.gz, or the unpacked file.
        num_train: Number of train items.
        num_dev: Number of dev items.
        num_test: Number of test items, which the paper does not have; 0 for none.
        questions: Largest number of questions per concept.
        min_weight: Least weight of a property: 1 is one contributor; 2 is two, or WordNet. A wrong
            answer must not have the property with any weight.
        min_statements: Number of statements that must name a concept, so that it is well known.
    """

    source: str = str(DEFAULT_PATH)
    questions: NumItems = 3
    min_weight: Annotated[float, Within(0, 100)] = 2.0
    min_statements: NumItems = 10


def build_conjunction(settings: ConjunctionSettings) -> Probe:
    """Build the probe: which concept has both properties?"""
    properties = read_properties(Path(settings.source), settings.min_weight)
    rng = random.Random(f"{NAME}:{settings.seed}")
    concepts = sorted(
        concept
        for concept, concept_properties in properties.by_concept.items()
        if len(concept_properties) > 1
        and properties.num_statements[concept] >= settings.min_statements
    )
    sizes = settings.train | settings.evaluation
    asked_pairs = set[frozenset[Property]]()
    drafts = dict[str, list[Draft]]()
    for split, pool in deal_names(concepts, sizes, rng).items():
        conjunctions = Conjunctions(properties, pool, settings.questions, rng, asked_pairs)
        advice = "lower --min_weight or --min_statements, or raise --questions"
        subject = f"{NAME}: {split}"
        drafts[split] = first_drafts(conjunctions.drafts(), sizes[split], subject, advice)
    return finish(NAME, in_order(drafts), rng)


@dataclass
class Conjunctions:
    """The items of one split, whose answers, right and wrong, are all from its own concepts.

    `asked_pairs` of properties are those of other splits too.
    """

    properties: Properties
    concepts: Sequence[str]
    questions: int
    rng: random.Random
    asked_pairs: set[frozenset[Property]]
    _surplus: Counter[str] = field(default_factory=Counter)  # times wrong over those to be expected

    def __post_init__(self) -> None:
        self._split_concepts = set(self.concepts)

    def drafts(self) -> Iterator[Draft]:
        """Yield items, concept by concept, the most telling pairs of properties first.

        The order is random, but wrong answers are asked about next, if possible: were they never
        right, a model could tell by the choices alone.
        """
        order = self.rng.sample(self.concepts, len(self.concepts))
        num_right = Counter[str]()
        for num_vague in range(len(_VAGUE) + 1):
            queue, seen = deque(order), set[str]()
            while queue:
                if (concept := queue.popleft()) in seen:
                    continue
                seen.add(concept)
                pairs = [
                    pair
                    for pair in combinations(self.properties.by_concept[concept], 2)
                    if sum(prop.relation in _VAGUE for prop in pair) == num_vague
                    and (num_vague < 2 or len({prop.relation for prop in pair}) == 2)
                ]
                for pair in self.rng.sample(pairs, min(_PAIRS, len(pairs))):
                    if num_right[concept] == self.questions:
                        break
                    if draft := self._draft(concept, *self.rng.sample(pair, 2)):
                        num_right[concept] += 1
                        self._surplus[concept] -= len(draft.distractors)
                        self._surplus.update(draft.distractors)
                        queue.extendleft(draft.distractors)
                        yield draft

    def _draft(self, concept: str, first: Property, second: Property) -> Draft | None:
        key = frozenset((first, second))
        if key in self.asked_pairs or self.properties.are_kin(first.text, second.text):
            return None
        only_first = self._holder(first, second, [concept])
        only_second = self._holder(second, first, [concept, only_first or ""])
        if only_first is None or only_second is None:
            return None
        self.asked_pairs.add(key)
        meta = {
            "cluster": concept,
            "template": f"{first.relation}+{second.relation}",
            "first_distractor": only_first,
            "properties": [list(first), list(second)],
        }
        stem = f"What is {first} and is {second}?"
        return Draft(stem, concept, (only_first, only_second), concept, meta)

    def _holder(self, present: Property, absent: Property, chosen: Sequence[str]) -> str | None:
        """Choose a concept with one property only, unlike the gold and no kin to an answer."""
        properties, gold = self.properties, chosen[0]
        holders = filter(self._split_concepts.__contains__, properties.holders[present])
        pool = [name for name in holders if self._surplus[name] < _MOST]
        order = self.rng.sample(pool, len(pool))
        order.sort(key=self._surplus.__getitem__)
        for name in order[:_TRIED]:
            if (
                len(properties.by_concept[name].keys() & properties.by_concept[gold].keys())
                <= _ALIKE
                and not any(name == answer or properties.are_kin(name, answer) for answer in chosen)
                and not properties.may_have(name, absent)
            ):
                return name
        return None


def check_properties(settings: ConjunctionSettings, records: Sequence[Record]) -> list[Finding]:
    """Find right answers that ConceptNet does not confirm, and wrong ones that it hints at."""
    properties = read_properties(Path(settings.source), settings.min_weight)
    findings = []
    for record in records:
        first, second = (Property(*prop) for prop in record.meta["properties"])
        if not {first, second} <= properties.by_concept[record.gold].keys():
            text = f"{record.gold!r} does not have both properties"
            findings.append(Finding("a right answer is wrong (ConceptNet)", record.where, text))
        for name in record.wrong:
            is_first = name == record.meta["first_distractor"]
            present, absent = (first, second) if is_first else (second, first)
            if present not in properties.by_concept[name] or properties.may_have(name, absent):
                check = "a wrong answer is right (ConceptNet)"
                findings.append(Finding(check, record.where, repr(name)))
    return findings


_ABOUT = """\
Built as Talmor et al. (2020, section 4.4) describe, in their wording: the right answer has both
properties, one wrong answer has only the first, and the other only the second. Properties come from
15 relations with enough weight. RelatedTo and IsA, the most common, are used only after the others,
and neither twice in one question. ConceptNet does not state what a concept lacks. Therefore no
statement of any weight may suggest that a wrong answer has the other property, whether it is about
the concept, its synonyms, what it is a kind of, or other concepts of a narrow kind. A wrong answer
shares at most two properties with the right one. The choices of a split are concepts of no other
split. Each is right a few times at most, and wrong answers are right in other questions if
possible. No pair of properties is asked for twice. `first_distractor` in the notes is the right
answer of the variant `--variant but_not`."""

PROPERTY_CONJUNCTION = Builder(
    NAME,
    "Which concept has both properties?",
    ConjunctionSettings,
    build_conjunction,
    sources={
        "source": Source(
            "ConceptNet",
            "5.7",
            "CC BY-SA 4.0 (https://conceptnet.io; what is built from it is too)",
        )
    },
    check=check_properties,
    about=_ABOUT,
    config={
        "licence": "CC BY-SA 4.0",
        "setup": "mc_qa",
        "num_choices": 3,
        "chance": 0.3333,
        "group_by": "cluster",
        "arguments": {"conjunction": r"What is (.+?) and is (.+?)\?"},
        "key_words": ["and"],
        "variants": {
            "but_not": {
                "arguments": {"conjunction": r"What is (.+?) but is not (.+?)\?"},
                "key_words": ["but", "not"],
            }
        },
    },
)
