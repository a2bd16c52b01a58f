"""Wrong answers that WordNet says are right, planted one by one."""

from __future__ import annotations

import pytest

from probelight.build.wordnet_probes.checks import check_synsets, knows
from probelight.build.wordnet_probes.graph import read_graph
from probelight.probes.record import Record
from tests.fixtures.wordnet import NOUNS, write_wordnet

MORE = '\nmotion,run | entity | a thing that goes\npet | animal | a friend; "a pet"'


def item(chain: str, *wrong: str) -> Record:
    near, filled = list(wrong[:1]), list(wrong[1:])
    meta = {"chain": chain, "other_distractors": near, "random_distractors": filled}
    return Record("1", "q", ("a", "b"), 0, meta)


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (item("dog.n.01=>mammal.n.01", "cat.n.01", "bird.n.01"), []),
        (item("dog.n.01=>mammal.n.01", "cat.n.01", "animal.n.01"), ["a wrong answer is right"]),
        (item("animal.n.01<=dog.n.01", "poodle.n.01"), ["a wrong answer is right"]),
        (item("animal.n.01<=dog.n.01", "barn.n.01", "entity.n.01"), []),
        (item("dog.n.01<=dog.n.01", "poodle.n.01", "mammal.n.01"), []),
        (item("dog.n.01<=dog.n.01", "dog.n.01"), ["a wrong answer is right"]),
        # "run" is a motion, and in another sense a kind of moving.
        (item("move.v.01<=run.v.01", "motion.n.01"), ["right by another sense"]),
        (item("dog.n.01=>dgo.n.01", "cat.n.01"), ["unknown synset"]),
        (Record("1", "q", ("a", "b"), 0), []),
    ],
)
def test_wrong_answers_that_are_right(
    record: Record, found: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "more_wordnet"
    if not folder.exists():
        folder.mkdir()
        write_wordnet(folder, NOUNS.rstrip() + MORE + "\n")
    said = [
        one.check.removesuffix(" (WordNet)") for one in check_synsets([record], read_graph(folder))
    ]
    assert said == found


def test_only_items_with_notes_are_held_against_it() -> None:
    assert knows([item("dog.n.01=>mammal.n.01", "cat.n.01")])
    assert not knows([Record("1", "q", ("a", "b"), 0)])
