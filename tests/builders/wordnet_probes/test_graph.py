from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probelight.builders.wordnet_probes.graph import Graph, _name, check_synsets, levels, read_graph
from probelight.probes.record import Record
from tests.fixtures.wordnet import NOUNS, write_wordnet


def names(graph: Graph, levels: list[list[int]]) -> list[set[str]]:
    return [{graph.concepts[number].name for number in level} for level in levels]


def test_the_sets_of_a_concept(tiny_wordnet_dir: Path) -> None:
    graph = read_graph(tiny_wordnet_dir)
    number = {concept.name: concept.number for concept in graph.concepts}
    dog = number["dog.n.01"]
    above = [{"mammal.n.01"}, {"animal.n.01"}, {"entity.n.01"}]
    assert names(graph, levels([dog], graph.up, 5)) == above
    assert names(graph, levels([dog], graph.up, 2)) == above[:2]
    below = [{"dog.n.01", "cat.n.01", "horse.n.01"}, {"poodle.n.01", "hound.n.01"}]
    assert names(graph, levels([number["mammal.n.01"]], graph.down, 2)) == below
    assert names(graph, graph.sisters(number["bird.n.01"], 3)) == [{"mammal.n.01"}, *below]
    assert graph.sisters(number["entity.n.01"], 2) == []
    assert names(graph, [list(graph.above(dog))]) == [{"dog.n.01"}.union(*above)]


def test_what_is_read_is_what_nltk_says(tiny_wordnet_dir: Path, tiny_wordnet: Any) -> None:
    graph = read_graph(tiny_wordnet_dir)
    assert len(graph.concepts) == len(list(tiny_wordnet.all_synsets()))
    for concept in graph.concepts:
        synset = tiny_wordnet.synset(concept.name)
        assert concept.gloss == synset.definition()
        assert list(concept.words) == [name.replace("_", " ") for name in synset.lemma_names()]
        above = {node.name() for node in synset.closure(lambda s: s.hypernyms())}
        hypernyms = {graph.concepts[number].name for number in graph.above(concept.number)}
        assert hypernyms == above | {concept.name}
    dog = graph.senses["domestic dog"]
    assert [graph.concepts[number].contexts for number in dog] == [
        (("dogs", "the dogs barked all night"),)
    ]


def test_satellite_adjectives_are_numbered_with_the_others() -> None:
    # The second sense of "public" as an adjective is a satellite: public.s.02 in released files,
    # public.s.01 for some versions of NLTK.
    first = SimpleNamespace(name=lambda: "public.a.01", pos=lambda: "a", offset=lambda: 10)
    second = SimpleNamespace(name=lambda: "public.s.01", pos=lambda: "s", offset=lambda: 20)
    wordnet = SimpleNamespace(synsets=lambda word, pos: [first, second])
    assert [_name(synset, wordnet) for synset in (first, second)] == ["public.a.01", "public.s.02"]


MORE = '\nmotion,run | entity | a thing that goes\npet | animal | a friend; "a pet"'


@pytest.fixture(scope="module")
def more_wordnet(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("wordnet")
    write_wordnet(folder, NOUNS.rstrip() + MORE + "\n")
    return read_graph(folder)


def item(chain: str, *wrong: str) -> Record:
    near, filled = list(wrong[:1]), list(wrong[1:])
    meta = {"chain": chain, "other_distractors": near, "random_distractors": filled}
    return Record("1", "q", ("a", "b"), 0, meta)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (item("dog.n.01=>mammal.n.01", "cat.n.01", "bird.n.01"), []),
        (item("dog.n.01=>mammal.n.01", "cat.n.01", "animal.n.01"), ["a wrong answer is right"]),
        (item("animal.n.01<=dog.n.01", "poodle.n.01"), ["a wrong answer is right"]),
        (item("animal.n.01<=dog.n.01", "barn.n.01", "entity.n.01"), []),
        (item("dog.n.01<=dog.n.01", "poodle.n.01", "mammal.n.01"), []),
        (item("dog.n.01<=dog.n.01", "dog.n.01"), ["a wrong answer is right"]),
        # "run" is a motion, and in another sense a kind of moving.
        (item("move.v.01<=run.v.01", "motion.n.01"), ["right in another sense"]),
        (item("dog.n.01=>dgo.n.01", "cat.n.01"), ["unknown synset"]),
        (Record("1", "q", ("a", "b"), 0), []),
    ],
)
def test_wrong_answers_that_are_right(
    record: Record, expected: list[str], more_wordnet: Graph
) -> None:
    checks = [finding.check for finding in check_synsets([record], more_wordnet)]
    assert [check.removesuffix(" (WordNet)") for check in checks] == expected
