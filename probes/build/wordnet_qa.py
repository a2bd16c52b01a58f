"""5-way questions from WordNet: definitions, hypernymy, hyponymy (Richardson & Sabharwal, 3.1).

A first cut of the paper's construction: its templates (table 2) and its distractor sets, fewer
perturbations of each concept.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from probes.build.drafts import Draft, Probe, finish, pick_distractors, split_groups
from probes.build.glosses import context_of, is_fit
from probes.sources.verbalise import plain
from probes.sources.wordnet import ancestors, descendants, sisters, words_of

Kind = Literal["definitions", "hypernymy", "hyponymy"]

NUM_DISTRACTORS = 4
_MAX_HOPS = 5
_SISTER_DEPTH = 2
_QUESTIONS_PER_CONCEPT = 2
_PARTS: Mapping[Kind, str] = {"definitions": "nvar", "hypernymy": "nv", "hyponymy": "nv"}
# Sisters and hyponyms are more special than any hypernym: with four of them the answer could be
# told without the question.
_MAX_NEAR: Mapping[Kind, int] = {"definitions": 4, "hypernymy": 2, "hyponymy": 4}
_MAX_FILLERS = 4000
_MAX_PER_GOLD = 8  # a few very general hypernyms would be the answer of every tenth question
_SPARE = 1.5  # drafts per item wanted, because groups do not fill the splits exactly
_CONTEXTS = (
    "Given '{s}',",
    "In the sentence or expression '{s}',",
    "Given the fragment '{s}',",
    "In the following context: '{s}',",
    "Assuming '{s}',",
)
_QUESTIONS: Mapping[Kind, tuple[str, ...]] = {
    "definitions": (
        "the word '{w}' is best defined as",
        "the word or concept '{w}' is best described as",
        "'{w}' is best characterized as",
    ),
    "hypernymy": (
        "the word or concept '{w}' is best described as a type of",
        "'{w}' as a concept is best defined as a type of",
        "the concept '{w}' is best characterized as a type of",
    ),
    "hyponymy": (
        "which of the following is a more specific type of '{w}'",
        "which of the following words or concepts is a specific example of '{w}'",
        "a more specific type of the concept '{w}' is",
    ),
}


@dataclass(frozen=True)
class Distractors:
    """Synsets that may stand beside the gold answer, by how they are related to the concept."""

    kind: str
    hops: int
    synsets: tuple[Any, ...]


def wordnet_probe(kind: Kind, wordnet: Any, sizes: Mapping[str, int], seed: int = 0) -> Probe:
    """Builds one probe.

    Args:
        kind: Which relation is asked for.
        wordnet: The taxonomy, as `probes.sources.wordnet.open_wordnet` gives it.
        sizes: Items by split.
        seed: Seeds every choice.

    Returns:
        Records by split. No two splits share a concept (`meta["cluster"]`, the synset's name).

    Raises:
        ValueError: If WordNet gives fewer items than asked for.
    """
    rng = random.Random(f"{kind}:{seed}")
    wanted = int(_SPARE * sum(sizes.values())) + 10
    drafts = itertools.islice(_Builder(kind, wordnet, rng).drafts(), wanted)
    return finish(kind, split_groups(drafts, sizes, rng), rng)


class _Builder:
    def __init__(self, kind: Kind, wordnet: Any, rng: random.Random) -> None:
        self.kind = kind
        self.wordnet = wordnet
        self.rng = rng
        self.uses = Counter[str]()
        self.fillers = {part: self._fillers(part) for part in _PARTS[kind]}

    def drafts(self) -> Iterator[Draft]:
        """All questions, concept by concept in a random order."""
        concepts = [s for part in _PARTS[self.kind] for s in self.wordnet.all_synsets(part)]
        self.rng.shuffle(concepts)
        for concept in concepts:
            context = context_of(concept, self.wordnet)
            if context and is_fit(concept) and not self._is_circular(concept, context[0]):
                yield from self._questions(concept, *context)

    def _is_circular(self, concept: Any, word: str) -> bool:
        """Whether a definition holds the word it defines: spelling would give it away."""
        start = word.lower()[:5]
        words = re.findall(r"[a-z]+", concept.definition().lower())
        return self.kind == "definitions" and any(w.startswith(start) for w in words)

    def _fillers(self, part: str) -> list[Any]:
        """Synsets for random distractors: gold answers of other concepts.

        Then nothing in such a distractor tells it from a gold answer; any synset would not do,
        since hypernyms are general and concepts with an example sentence are well known.
        """
        concepts = [s for s in self.wordnet.all_synsets(part) if s.examples() and is_fit(s)]
        concepts = self.rng.sample(concepts, min(_MAX_FILLERS, len(concepts)))
        golds = [self._choose_gold(concept) for concept in concepts]
        return [gold for hops_and_gold in golds if hops_and_gold for gold in hops_and_gold[1:]]

    def _questions(self, concept: Any, word: str, sentence: str) -> Iterator[Draft]:
        sets = related_sets(self.kind, concept)
        self.rng.shuffle(sets)
        for turn in range(_QUESTIONS_PER_CONCEPT if len(sets) > 1 else 1):
            choice = self._choose_gold(concept)
            if choice is None:
                return
            hops, gold = choice
            related = sets[turn % len(sets)] if sets else Distractors("random", 0, ())
            draft = self._draft(concept, word, sentence, hops, gold, related)
            if draft is not None:
                self.uses[gold.name()] += 1
                yield draft

    def _usable(self, gold: Any) -> bool:
        return is_fit(gold) and self.uses[gold.name()] < _MAX_PER_GOLD

    def _choose_gold(self, concept: Any) -> tuple[int, Any] | None:
        if self.kind == "definitions":
            return 0, concept
        walk = ancestors if self.kind == "hypernymy" else descendants
        golds = [g for g in walk(concept, _MAX_HOPS) if self._usable(g[1])]
        # Near relatives first: far ones are few and very general, or many and obscure.
        return self.rng.choices(golds, [1 / hops for hops, _ in golds])[0] if golds else None

    def _draft(
        self, concept: Any, word: str, sentence: str, hops: int, gold: Any, related: Distractors
    ) -> Draft | None:
        wrong = self._wrong(concept, word, gold)
        answer = answer_text(self.kind, gold)
        near = [s for s in related.synsets if wrong(s)]
        most = _MAX_NEAR[self.kind]
        inner = [s for s in near if s.hyponyms()]
        if self.kind == "hypernymy" and len(self._texts(inner)) >= most:
            near = inner  # as gold answers are; leaves are rarer words
        chosen = self._pick(near, answer, min(most, len(self._texts(near))), ())
        count = len(chosen)
        if count < NUM_DISTRACTORS:
            fillers = self.fillers[_part(concept)]
            pool = [s for s in self.rng.sample(fillers, min(40, len(fillers))) if wrong(s)]
            chosen += self._pick(pool, answer, NUM_DISTRACTORS - count, chosen)
        if len(chosen) < NUM_DISTRACTORS:
            return None
        context = self.rng.choice(_CONTEXTS).format(s=sentence)
        question = self.rng.choice(_QUESTIONS[self.kind]).format(w=word)
        meta = {
            "cluster": concept.name(),
            "hops": hops,
            "distractor_type": related.kind if count else "random",
            "distractor_hops": related.hops if count else 0,
            "source": "wordnet",
        }
        return Draft(f"{context} {question}", answer, chosen, concept.name(), meta)

    def _texts(self, synsets: Sequence[Any]) -> list[str]:
        """Answer texts, one for each gloss."""
        return list({s.definition(): answer_text(self.kind, s) for s in synsets}.values())

    def _pick(
        self, synsets: Sequence[Any], answer: str, count: int, taken: tuple[str, ...]
    ) -> tuple[str, ...]:
        texts = [text for text in self._texts(synsets) if text not in taken]
        return pick_distractors(texts, answer, count, self.rng) if len(texts) >= count else ()

    def _wrong(self, concept: Any, word: str, gold: Any) -> Callable[[Any], bool]:
        """Whether a synset is certainly no right answer for this concept."""
        above = {s.name() for _, s in ancestors(concept, 99)} | {concept.name()}
        below = {s.name() for _, s in descendants(concept, 99)}
        right = {"definitions": {concept.name()}, "hypernymy": above, "hyponymy": below}[self.kind]
        right = right | {concept.name()}
        glosses = {self.wordnet.synset(name).definition() for name in right} | set(words_of(gold))
        taken = {w.lower() for w in words_of(gold)} | {word.lower()}

        def wrong(synset: Any) -> bool:
            # Another sense of the word itself may well be right: dictionaries split hairs.
            return (
                synset.name() not in right
                and synset.definition() not in glosses
                and not taken & {w.lower() for w in words_of(synset)}
                and is_fit(synset)
            )

        return wrong


def related_sets(kind: Kind, concept: Any) -> list[Distractors]:
    """The paper's distractor sets of a concept: sisters by depth, relatives by hops."""
    walks = {"sister": sisters(concept, _SISTER_DEPTH)}
    if kind in {"definitions", "hypernymy"}:
        walks["hyponym"] = descendants(concept, _MAX_HOPS)
    if kind in {"definitions", "hyponymy"}:
        walks["hypernym"] = ancestors(concept, _MAX_HOPS)
    sets = []
    for name, walk in walks.items():
        by_hops: dict[int, list[Any]] = {}
        for hops, synset in walk:
            by_hops.setdefault(hops, []).append(synset)
        sets += [Distractors(name, hops, tuple(found)) for hops, found in by_hops.items()]
    return sets


def answer_text(kind: Kind, synset: Any) -> str:
    """A gloss, or for ISA questions "report (or account), defined as '...'"."""
    gloss = plain(synset.definition())
    if kind == "definitions":
        return gloss
    first, *others = words_of(synset)
    more = f" (or {', '.join(others[:2])})" if others else ""
    event = " event" if synset.pos() == "v" else ""
    return f"{first}{more}{event}, defined as '{gloss}'"


def _part(synset: Any) -> str:
    """Part of speech, satellite adjectives counted as adjectives."""
    return "a" if synset.pos() == "s" else str(synset.pos())
