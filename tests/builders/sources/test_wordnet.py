from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probelight.builders.sources.wordnet import ancestors, contexts_of, descendants, is_fit, plain


def names(walk: Any) -> list[tuple[int, str]]:
    return [(hops, synset.name()) for hops, synset in walk]


def test_ancestors_are_nearest_first_and_counted_in_hops(tiny_wordnet: Any) -> None:
    walk = names(ancestors(tiny_wordnet.synset("poodle.n.01"), 5))
    assert walk == [(1, "dog.n.01"), (2, "mammal.n.01"), (3, "animal.n.01"), (4, "entity.n.01")]
    assert names(ancestors(tiny_wordnet.synset("poodle.n.01"), 2)) == walk[:2]


def test_descendants_go_down_to_the_given_depth(tiny_wordnet: Any) -> None:
    mammal = tiny_wordnet.synset("mammal.n.01")
    near = [(1, "dog.n.01"), (1, "cat.n.01"), (1, "horse.n.01")]
    assert names(descendants(mammal, 1)) == near
    assert names(descendants(mammal, 5)) == [*near, (2, "poodle.n.01"), (2, "hound.n.01")]


@pytest.mark.thorough
def test_order_does_not_depend_on_the_hash_seed(tiny_wordnet_dir: Path) -> None:
    program = (
        "import sys; from probelight.builders.sources.wordnet import *\n"
        "entity = open_wordnet(sys.argv[1]).synset('entity.n.01')\n"
        "print([s.name() for _, s in descendants(entity, 5)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program, str(tiny_wordnet_dir)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


def test_quotation_marks_and_spaces() -> None:
    assert plain(" ``so''\n he   said") == '"so" he said'


def test_context_is_an_example_with_the_word_as_it_stands(tiny_wordnet: Any) -> None:
    dog = tiny_wordnet.synset("dog.n.01")
    assert list(contexts_of(dog, tiny_wordnet)) == [("dogs", "the dogs barked all night")]
    run = tiny_wordnet.synset("run.v.01")
    assert list(contexts_of(run, tiny_wordnet)) == [("ran", "the children ran home")]
    assert not list(contexts_of(tiny_wordnet.synset("entity.n.01"), tiny_wordnet))


@pytest.mark.parametrize(
    "gloss", ["short", "x" * 200, "an offensive term", "suicide", "good; --Thomas Paine"]
)
def test_unfit_glosses_are_left_out(gloss: str) -> None:
    assert not is_fit(gloss)
