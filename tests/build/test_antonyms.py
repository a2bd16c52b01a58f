from __future__ import annotations

from typing import Any

import pytest

from probelight.build.olmpics.antonyms import _names, antonym_pairs, synonym_pairs

WORDS = {"hot", "warm", "cold", "scorching"}


def test_opposites_also_at_one_remove(tiny_wordnet: Any) -> None:
    assert antonym_pairs(tiny_wordnet, WORDS) == {("cold", "hot"), ("cold", "scorching")}


def test_only_what_a_gloss_bears_out(tiny_wordnet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Scorching is "hot and dry", and so opposed to cold.
    opposites = antonym_pairs(tiny_wordnet, WORDS)
    assert opposites == {("cold", "hot"), ("cold", "scorching")}
    assert ("hot", "scorching") in synonym_pairs(tiny_wordnet, WORDS)
    hot, scorching = (tiny_wordnet.synsets(word)[0] for word in ("hot", "scorching"))
    assert (_names(scorching, hot), _names(hot, scorching)) == (True, False)
    monkeypatch.setattr("probelight.build.olmpics.antonyms._names", lambda one, other: False)
    assert antonym_pairs(tiny_wordnet, WORDS) == {("cold", "hot")}
    assert synonym_pairs(tiny_wordnet, WORDS) == {("hot", "warm")}


def test_synonyms_of_one_synset_and_of_similar_ones(tiny_wordnet: Any) -> None:
    assert synonym_pairs(tiny_wordnet, WORDS) == {
        ("hot", "warm"),
        ("hot", "scorching"),
        ("scorching", "warm"),
    }
