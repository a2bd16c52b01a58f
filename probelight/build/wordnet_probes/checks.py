"""Checks of items against WordNet, by the synsets that their notes name as released files do.

Text alone cannot tell that a wrong answer is right: these checks look each choice's synset up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from probelight.build.hygiene import Finding
from probelight.build.sources.wordnet import hypernym_edges, is_of_unsaid_kind
from probelight.build.wordnet_probes.graph import Graph
from probelight.probes.record import Record
from probelight.probes.words import stem_of

_CONJUNCTION = re.compile(r"An? (.+?) and an? (.+?) are both a type of \[MASK\]")
_ARROW = re.compile(r"=>|<=")


def knows(records: Sequence[Record]) -> bool:
    """Return whether items say of which synsets they are made."""
    return any(record.meta.get("chain") for record in records)


def check_synsets(records: Sequence[Record], graph: Graph) -> list[Finding]:
    """Find wrong answers that are right in WordNet: by the concept, or by a sense of its words.

    An ISA question has as right answers all hypernyms (or hyponyms) of the concept. Where another
    sense of its words makes a wrong answer right, or another sense of a choice's words would be
    right, that is a finding of its own: the sentence may tell the senses apart.

    Args:
        records: Items; those without notes on synsets are passed over.
        graph: WordNet 3.0.
    """
    numbers = {concept.name: concept.number for concept in graph.concepts}
    findings = list[Finding]()
    for record in records:
        chain = _ARROW.split(str(record.meta.get("chain") or ""))
        if len(chain) != 2:
            continue
        named = [*_names(record, "other_distractors"), *_names(record, "random_distractors")]
        unknown = [name for name in (*chain, *named) if name not in numbers]
        if unknown:
            findings.append(Finding("unknown synset", record.where, unknown[0]))
            continue
        concept, gold = (numbers[name] for name in chain)
        up = "=>" in str(record.meta["chain"])
        for name in named:
            if concept == gold:
                found = _right_same(graph, concept, numbers[name])
            else:
                below, above = (concept, numbers[name]) if up else (numbers[name], concept)
                found = _right_above(graph, below, above)
            if not found and gold in graph.homonyms(numbers[name]):
                found = "synonym of the gold (WordNet)"
            if found:
                findings.append(Finding(found, record.where, f"{name}, of {record.meta['chain']}"))
    return findings


def conjunctions(records: Sequence[Record]) -> list[tuple[Record, tuple[str, str]]]:
    """Return the items that ask what two concepts both are (Talmor 2020, 4.4), with these."""
    found = ((record, _CONJUNCTION.match(record.stem)) for record in records)
    return [(record, (match[1], match[2])) for record, match in found if match]


def check_conjunctions(records: Sequence[Record], wordnet: Any) -> list[Finding]:
    """Find answers that WordNet contradicts, by any sense of the concepts' words, or cannot judge.

    The gold has to be above both concepts, a wrong answer above one of them at most. Where a
    concept is first of all an animal of which WordNet does not say of what kind ("calf"), another
    kind of animal among the wrong answers may be right.

    Args:
        records: Items; others than "A swan and a calf are both a type of [MASK]." are passed over.
        wordnet: As `probelight.build.sources.wordnet.open_wordnet` gives it.
    """
    findings = []
    for record, concepts in conjunctions(records):
        above = [hypernym_edges(wordnet, word) or {} for word in concepts]
        shared = above[0].keys() & above[1].keys()
        if record.gold.strip().lower() not in shared:
            findings.append(Finding("the right answer is wrong", record.where, record.stem))
        findings += [
            Finding("a wrong answer is right", record.where, f"{word}: {record.stem}")
            for word in record.wrong
            if word.strip().lower() in shared
        ]
        asked = set(map(stem_of, concepts))
        findings += [
            Finding("asked word in an answer", record.where, f"{text}: {record.stem}")
            for text in record.choices
            if stem_of(text) in asked
        ]
        for word in concepts:
            senses = wordnet.synsets(word.replace(" ", "_"), "n")
            edges = {text: hypernym_edges(wordnet, text) or {} for text in record.wrong}
            animals = [text for text, above_it in edges.items() if "animal" in above_it]
            if animals and senses and is_of_unsaid_kind(senses[0]):
                said = f"{word} may be of kind {animals[0]!r}: {record.stem}"
                findings.append(Finding("animal of unsaid kind", record.where, said))
    return findings


def _right_above(graph: Graph, concept: int, hypernym: int) -> str:
    """Say how one concept may be a kind of another; "" where it is not."""
    if hypernym in graph.above(concept):
        return "a wrong answer is right (WordNet)"
    right = not graph.homonyms(hypernym).isdisjoint(graph.broadly(concept))
    return "right by another sense (WordNet)" if right else ""


def _right_same(graph: Graph, concept: int, number: int) -> str:
    """Say how two concepts may be the same; "" where they are not."""
    if number == concept or graph.concepts[number].gloss == graph.concepts[concept].gloss:
        return "a wrong answer is right (WordNet)"
    return "right by another sense (WordNet)" if number in graph.homonyms(concept) else ""


def _names(record: Record, key: str) -> list[str]:
    """Return the names of a note that holds a list of them."""
    found = record.meta.get(key)
    return [str(name) for name in found] if isinstance(found, list) else []
