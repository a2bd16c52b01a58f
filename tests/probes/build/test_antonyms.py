from __future__ import annotations

from typing import Any

import pytest

from probes.build.antonyms import _names, antonym_negation, antonym_pairs, synonym_pairs

WORDS = {"hot", "warm", "cold", "scorching"}


def test_opposites_also_at_one_remove(tiny_wordnet: Any) -> None:
    assert antonym_pairs(tiny_wordnet, WORDS) == {("cold", "hot"), ("cold", "scorching")}


def test_only_what_a_gloss_bears_out(tiny_wordnet: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Scorching is "hot and dry", and so opposed to cold.
    opposites = antonym_pairs(tiny_wordnet, WORDS, by_gloss=True)
    assert opposites == {("cold", "hot"), ("cold", "scorching")}
    assert ("hot", "scorching") in synonym_pairs(tiny_wordnet, WORDS, by_gloss=True)
    hot, scorching = (tiny_wordnet.synsets(word)[0] for word in ("hot", "scorching"))
    assert (_names(scorching, hot), _names(hot, scorching)) == (True, False)
    monkeypatch.setattr("probes.build.antonyms._names", lambda one, other: False)
    assert antonym_pairs(tiny_wordnet, WORDS, by_gloss=True) == {("cold", "hot")}
    assert synonym_pairs(tiny_wordnet, WORDS, by_gloss=True) == {("hot", "warm")}


def test_synonyms_of_one_synset_and_of_similar_ones(tiny_wordnet: Any) -> None:
    assert synonym_pairs(tiny_wordnet, WORDS) == {
        ("hot", "warm"),
        ("hot", "scorching"),
        ("scorching", "warm"),
    }


def test_half_and_half_in_both_orders(tiny_wordnet: Any) -> None:
    probe = antonym_negation(tiny_wordnet, WORDS, {"test": 4, "train": 4})
    for rows in probe.values():
        assert sorted(r.gold for r in rows) == ["not", "not", "really", "really"]
        for record in rows:
            first, second = record.meta["arguments"]
            assert record.stem == f"It was [MASK] {first}, it was really {second}."
            opposed = record.meta["template"] == "antonym"
            assert opposed == (tuple(sorted((first, second))) in antonym_pairs(tiny_wordnet, WORDS))
            assert record.gold == ("not" if opposed else "really")
    pairs = [{frozenset(r.meta["arguments"]) for r in rows} for rows in probe.values()]
    assert [len(p) for p in pairs] == [2, 2]
    assert not pairs[0] & pairs[1]
