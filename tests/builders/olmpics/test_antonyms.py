from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from probelight.builders.hygiene import check_records, check_splits
from probelight.builders.olmpics import antonyms
from probelight.builders.olmpics.antonyms import (
    ANTONYM_NEGATION,
    AntonymSettings,
    PartOfSpeech,
    antonym_pairs,
    build_antonyms,
    check_pairs,
    synonym_pairs,
    word_pairs,
)
from probelight.probes.record import Record

WORDS = frozenset({"hot", "warm", "cold", "scorching"})
OPPOSED = {("cold", "hot"), ("cold", "scorching")}


def test_opposites_and_synonyms_also_at_one_remove_where_a_gloss_bears_it_out(
    tiny_wordnet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Scorching is "hot and dry", and so opposed to cold.
    assert antonym_pairs(tiny_wordnet, WORDS, "adjective") == OPPOSED
    same = {("hot", "warm"), ("hot", "scorching"), ("scorching", "warm")}
    assert synonym_pairs(tiny_wordnet, WORDS, "adjective") == same
    monkeypatch.setattr(antonyms, "_gloss_names", lambda word, opposite: False)
    assert antonym_pairs(tiny_wordnet, WORDS, "adjective") == {("cold", "hot")}
    assert synonym_pairs(tiny_wordnet, WORDS, "adjective") == {("hot", "warm")}


@pytest.fixture
def settings(tiny_wordnet_dir: Path, monkeypatch: pytest.MonkeyPatch) -> AntonymSettings:
    monkeypatch.setattr(antonyms, "frequent_words", lambda count: WORDS)
    return AntonymSettings(num_dev=4, wordnet_dir=str(tiny_wordnet_dir))


def test_half_are_opposites_in_every_split_and_train_gets_what_is_left(
    settings: AntonymSettings,
) -> None:
    probe = build_antonyms(settings)
    # Two pairs of opposites and two of three of synonyms, each in both orders.
    assert {split: len(rows) for split, rows in probe.items()} == {"train": 4, "dev": 4}
    for rows in probe.values():
        assert sorted(record.gold for record in rows) == ["not", "not", "really", "really"]
        for record in rows:
            first, second = record.meta["arguments"]
            assert record.stem == f"It was [MASK] {first}, it was really {second}."
            assert (tuple(sorted((first, second))) in OPPOSED) == (record.gold == "not")
        assert len({frozenset(record.meta["arguments"]) for record in rows}) == 2
        assert check_records(rows) == check_pairs(settings, rows) == []
    assert check_splits(probe) == []
    assert build_antonyms(settings) == probe


def test_a_pair_is_asked_in_one_part_of_speech(monkeypatch: pytest.MonkeyPatch) -> None:
    opposed = {"adjective": {("a", "b")}, "noun": {("c", "d"), ("milk", "oil")}, "verb": set()}
    same = {
        "adjective": {("e", "f"), ("c", "d")},
        "noun": {("g", "h"), ("e", "f")},
        "verb": {("a", "b"), ("g", "h"), ("i", "j")},
    }
    monkeypatch.setattr(antonyms, "antonym_pairs", lambda w, v, pos: opposed[pos])
    monkeypatch.setattr(antonyms, "synonym_pairs", lambda w, v, pos: same[pos])
    monkeypatch.setattr(antonyms, "countable_words", lambda wordnet, words: words - {"milk"})
    assert word_pairs(None, WORDS) == {
        "adjective": ({("a", "b")}, {("e", "f")}),
        "noun": ({("c", "d")}, {("g", "h")}),
        "verb": (set(), {("i", "j")}),
    }


@pytest.mark.parametrize(
    ("pos", "stem"),
    [
        ("noun", "It was [MASK] {}, it was really {}."),
        ("verb", "He was [MASK] ready to {}, He was really ready to {}."),
    ],
)
def test_sentences_as_released_and_their_arguments(pos: PartOfSpeech, stem: str) -> None:
    drafts = list(antonyms._drafts(pos, ("end", "start"), ("x", "y")))
    end, start = ("an end", "a start") if pos == "noun" else ("end", "start")
    stems = [stem.format(end, start), stem.format(start, end)]
    assert [draft.stem for draft in drafts if draft.gold == "not"] == stems
    patterns = ANTONYM_NEGATION.config["arguments"]
    matches = ((name, re.fullmatch(pattern, stems[0])) for name, pattern in patterns.items())
    parsed = [(name, match.groups()) for name, match in matches if match]
    assert parsed[0] == (pos, ("end", "start"))


def test_what_wordnet_contradicts_is_found(settings: AntonymSettings) -> None:
    def item(first: str, second: str, answer: int) -> Record:
        choices = ("not", "really")
        return Record("1", f"{first} {second}", choices, answer, {"arguments": [first, second]})

    right = [item("hot", "cold", 0), item("hot", "warm", 1)]
    wrong = [item("cold", "hot", 1), item("warm", "hot", 0)]
    assert [finding.check for finding in check_pairs(settings, [*right, *wrong])] == [
        "opposites in another sense",
        "synonyms in another sense",
    ]
