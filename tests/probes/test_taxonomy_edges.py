from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from probelight.builders.sources.wordnet import DEFAULT_DIR, hypernym_edges, open_wordnet
from probelight.probes.record import Record
from probelight.probes.taxonomy_edges import item_distances

# crow > bird > vertebrate > animal; horse > mammal > vertebrate; words above, with their edges.
GRAPH = {
    "crow": {"crow": 0, "bird": 1, "vertebrate": 2, "animal": 3},
    "horse": {"horse": 0, "mammal": 1, "vertebrate": 2, "animal": 3},
    "bird": {"bird": 0, "vertebrate": 1, "animal": 2},
    "mammal": {"mammal": 0, "vertebrate": 1, "animal": 2},
    "animal": {"animal": 0},
    "creature": {"creature": 0},
}


def item(*choices: str, answer: int) -> Record:
    return Record("1", "A crow and a horse are both a type of [MASK].", choices, answer)


def test_distractors_nearer_to_one_concept() -> None:
    paths = item_distances(item("bird", "animal", "mammal", answer=1), ("crow", "horse"), GRAPH.get)
    assert paths.edges == ((1, None), (3, 3), (None, 1))
    assert (paths.nearer, paths.unknown, paths.is_placed) == ((0, 2), (), True)
    neither = item("Animal ", "bird", "creature", answer=1)  # or further up
    paths = item_distances(neither, ("crow", "bird"), GRAPH.get)
    assert (paths.edges, paths.nearer) == (((3, 2), (1, 0), (None, None)), ())


def test_words_that_the_taxonomy_lacks() -> None:
    distances = item_distances(item("bird", "gizmo", answer=0), ("crow", "smeerp"), GRAPH.get)
    assert distances.unknown == ("smeerp", "gizmo")
    assert distances.edges == ((1, None), (None, None))
    assert not distances.is_placed


def test_edges_in_the_tiny_wordnet(tiny_wordnet: Any) -> None:
    above = {"poodle": 0, "dog": 1, "domestic dog": 1, "mammal": 2, "animal": 3, "entity": 4}
    assert hypernym_edges(tiny_wordnet, "poodle") == above
    assert hypernym_edges(tiny_wordnet, "dogs") == hypernym_edges(tiny_wordnet, "domestic dog")
    assert hypernym_edges(tiny_wordnet, "smeerp") is None


def test_the_papers_example_in_the_real_wordnet() -> None:
    if not (DEFAULT_DIR / "index.sense").exists():
        pytest.skip(f"no WordNet in {DEFAULT_DIR}")
    edges = partial(hypernym_edges, open_wordnet())
    distances = item_distances(item("bird", "animal", answer=1), ("crow", "horse"), edges)
    # crow > corvine bird > oscine > passerine > bird > vertebrate > chordate > animal
    # horse > equine > odd-toed ungulate > ungulate > placental > mammal > … > animal
    assert distances.edges == ((4, None), (7, 8))
    assert distances.nearer == (0,)
