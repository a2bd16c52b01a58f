from __future__ import annotations

from typing import Any

import pytest

from probelight.build.sources.verbalise import contexts_of, is_fit


def test_context_is_an_example_with_the_word_as_it_stands(tiny_wordnet: Any) -> None:
    dog = tiny_wordnet.synset("dog.n.01")
    assert list(contexts_of(dog, tiny_wordnet)) == [("dogs", "the dogs barked all night")]
    run = tiny_wordnet.synset("run.v.01")
    assert list(contexts_of(run, tiny_wordnet)) == [("ran", "the children ran home")]
    assert not list(contexts_of(tiny_wordnet.synset("entity.n.01"), tiny_wordnet))


@pytest.mark.parametrize(
    "gloss", ["short", "x" * 200, "an offensive term", "suicide", "good; --Thomas Paine"]
)
def test_unfit_glosses(gloss: str) -> None:
    class Synset:
        def definition(self) -> str:
            return gloss

    assert not is_fit(Synset())
