from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.builders.hygiene import check_records, check_splits
from probelight.builders.olmpics import taxonomy
from probelight.builders.olmpics.frame import frequent_words, read_vocabulary
from probelight.builders.olmpics.taxonomy import (
    TaxonomySettings,
    build_taxonomy,
    check_conjunctions,
    countable_words,
    read_nouns,
)
from probelight.builders.sources.wordnet import open_wordnet
from probelight.io.errors import UsageError
from probelight.probes.record import Record
from tests.fixtures.wordnet import ANIMALS, write_wordnet

WORDS = frozenset(
    "animal mammal bird dog cat horse poodle hound hen owl duck vehicle building car boat ferry "
    "barn house mill artifact".split()
)


@pytest.fixture
def settings(tiny_wordnet_dir: Path, monkeypatch: pytest.MonkeyPatch) -> TaxonomySettings:
    monkeypatch.setattr(taxonomy, "frequent_words", lambda count: WORDS)
    monkeypatch.setattr(taxonomy, "countable_words", lambda _, words: words)
    return TaxonomySettings(
        num_train=2, num_dev=2, wordnet_dir=str(tiny_wordnet_dir), evaluation_roots=("animal.n.01",)
    )


def test_countable_words_stand_after_an_article_or_in_the_plural(tiny_wordnet: Any) -> None:
    words = {"dog", "cat", "mammal", "duck", "milk", "animal"}
    # "the dogs barked", "a whale is a mammal", "a duck swam by": no particle follows "duck".
    assert countable_words(tiny_wordnet, words) == {"dog", "mammal", "animal"}


def test_candidates_are_true_of_what_they_should_be(
    settings: TaxonomySettings, tiny_wordnet: Any
) -> None:
    concepts = {concept.word: concept for concept in read_nouns(tiny_wordnet, WORDS, WORDS)}
    near = {f"{word}.n.01": word for word in ("dog", "mammal", "animal")}
    assert dict(concepts["poodle"].near_hypernyms) == near
    probe = build_taxonomy(settings)
    assert list(probe) == ["train", "dev"]
    for split, rows in probe.items():
        for record in rows:
            first, second = re.findall(r"[Aa]n? (\w+)", record.stem)[:2]
            assert record.meta["arguments"] == [first, second]
            a, b = (concepts[word].hypernym_words for word in (first, second))
            assert [choice in a and choice in b for choice in record.choices] == [
                i == record.answer for i in range(3)
            ]
            assert all(choice in a or choice in b for choice in record.choices)
            assert set(record.choices) <= WORDS
            assert ("animal.n.01" in concepts[first].hypernym_names) == (split == "dev")
        assert check_records(rows) == check_conjunctions(rows, tiny_wordnet) == []
    assert probe["dev"][0].gold == "animal"
    assert probe["train"][0].gold == "artifact"
    assert check_splits(probe) == []
    assert build_taxonomy(settings) == probe


def test_splits_share_no_gold(settings: TaxonomySettings) -> None:
    with pytest.raises(UsageError, match="items for dev"):  # "animal" is in test
        build_taxonomy(replace(settings, num_test=2))


def test_both_distractors_may_be_of_one_concept(
    settings: TaxonomySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = WORDS - {"bird", "cat", "horse", "hound", "owl", "duck"}
    monkeypatch.setattr(taxonomy, "frequent_words", lambda count: words)
    for record in build_taxonomy(settings)["dev"]:
        assert len({"poodle", "hound"} & {*record.meta["arguments"]}) == 1
        assert record.gold == "animal"
        assert sorted(record.wrong) == ["dog", "mammal"]


def test_no_animal_of_unsaid_kind_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taxonomy, "countable_words", lambda _, words: words)
    vocabulary = {"animal", "vertebrate", "invertebrate", "bird", "swan", "owl", "clam", "calf"}
    wordnet = open_wordnet(write_wordnet(tmp_path, ANIMALS))
    words = {concept.word for concept in read_nouns(wordnet, vocabulary, vocabulary)}
    assert {"swan", "owl", "clam"} < words
    assert "calf" not in words


def test_what_wordnet_contradicts_is_found(settings: TaxonomySettings) -> None:
    stem = "A dog and a hen are both a type of [MASK]."
    choices = ["animal mammal bird", "mammal bird vehicle", "animal entity bird"]
    items = [Record("1", stem, tuple(words.split()), 0) for words in choices]
    findings = check_conjunctions(items, open_wordnet(settings.wordnet_dir))
    assert [(finding.check, finding.text) for finding in findings] == [
        ("the right answer is wrong", stem),
        ("a wrong answer is right", f"entity: {stem}"),
    ]


def test_word_frequencies_without_the_package_say_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frequent_words.cache_clear()
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.raises(FileNotFoundError, match="package wordfreq: pip install"):
        frequent_words(5)


def test_vocabulary_of_a_model_folder(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 1}}}))
    assert read_vocabulary(tmp_path) == {"a", "b"}
    (tmp_path / "vocab.txt").write_text("c\nd\n")
    assert read_vocabulary(tmp_path) == read_vocabulary(tmp_path / "vocab.txt") == {"c", "d"}
    with pytest.raises(FileNotFoundError, match=r"no vocab\.txt or tokenizer\.json"):
        read_vocabulary(tmp_path / "elsewhere")
