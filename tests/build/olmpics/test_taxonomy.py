from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.build.hygiene import check_records, check_splits
from probelight.build.olmpics import taxonomy
from probelight.build.olmpics.frame import frequent_words
from probelight.build.olmpics.taxonomy import (
    Rules,
    TaxonomySettings,
    build_taxonomy,
    countable_words,
    read_concepts,
    taxonomy_conjunction,
)
from probelight.build.sources.wordnet import open_wordnet
from probelight.build.wordnet_probes.checks import check_conjunctions
from probelight.io.errors import UsageError
from probelight.probes.record import Record
from tests.fixtures.wordnet import ANIMALS, write_wordnet

VOCABULARY = set(
    "animal mammal bird dog cat horse poodle hound hen owl duck vehicle building car boat ferry "
    "barn house mill artifact".split()
)
SIZES = {"test": 2, "train": 2}
ROOTS = ("animal.n.01",)


def concepts(wordnet: Any) -> dict[str, Any]:
    return {concept.word: concept for concept in read_concepts(wordnet, VOCABULARY, VOCABULARY)}


def test_countable_words_stand_after_an_article_or_in_the_plural(tiny_wordnet: Any) -> None:
    words = {"dog", "cat", "mammal", "duck", "milk", "animal"}
    # "the dogs barked", "a whale is a mammal", "a duck swam by": no particle follows "duck".
    assert countable_words(tiny_wordnet, words) == {"dog", "mammal", "animal"}


def test_candidates_are_true_of_what_they_should_be(
    tiny_wordnet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probelight.build.olmpics.taxonomy.countable_words", lambda _, words: words)
    known = concepts(tiny_wordnet)
    assert dict(known["poodle"].near) == {
        "dog.n.01": "dog",
        "mammal.n.01": "mammal",
        "animal.n.01": "animal",
    }
    probe = taxonomy_conjunction(tiny_wordnet, VOCABULARY, SIZES, rules=Rules(ROOTS))
    for split, rows in probe.items():
        for record in rows:
            first, second = re.findall(r"[Aa]n? (\w+)", record.stem)[:2]
            a, b = (known[word].claims for word in (first, second))
            assert [choice in a and choice in b for choice in record.choices] == [
                i == record.answer for i in range(3)
            ]
            assert all(choice in a or choice in b for choice in record.choices)
            assert set(record.choices) <= VOCABULARY
            assert ("animal.n.01" in known[first].kinds) == (split == "test")
            assert record.meta["arguments"] == [first, second]
    assert probe["test"][0].gold == "animal"
    assert probe["train"][0].gold == "artifact"


def test_a_split_of_groups_shares_no_gold(
    tiny_wordnet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probelight.build.olmpics.taxonomy.countable_words", lambda _, words: words)
    with pytest.raises(ValueError, match="items are left for dev"):  # "animal" is in test
        taxonomy_conjunction(tiny_wordnet, VOCABULARY, {"test": 2, "dev": 2}, rules=Rules(ROOTS))


def test_both_distractors_may_be_of_one_concept(
    tiny_wordnet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probelight.build.olmpics.taxonomy.countable_words", lambda _, words: words)
    vocabulary = {"animal", "mammal", "dog", "poodle", "hen"}
    with pytest.raises(ValueError, match="only 0 items are left for test"):
        taxonomy_conjunction(tiny_wordnet, vocabulary, {"test": 2}, rules=Rules(ROOTS))
    rules = Rules(ROOTS, one_sided=True)
    rows = taxonomy_conjunction(tiny_wordnet, vocabulary, {"test": 2}, rules=rules)["test"]
    for record in rows:
        assert len({"poodle", "hound"} & {*record.meta["arguments"]}) == 1
        assert record.gold == "animal"
        assert sorted(record.wrong) == ["dog", "mammal"]


def test_no_animal_of_unsaid_kind_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("probelight.build.olmpics.taxonomy.countable_words", lambda _, words: words)
    vocabulary = {"animal", "vertebrate", "invertebrate", "bird", "swan", "owl", "clam", "calf"}
    wordnet = open_wordnet(write_wordnet(tmp_path, ANIMALS))
    known = {concept.word for concept in read_concepts(wordnet, vocabulary, vocabulary)}
    assert {"swan", "owl", "clam"} < known
    assert "calf" not in known


WORDS = frozenset(
    "animal mammal bird dog cat horse poodle hound hen owl duck vehicle building car boat ferry "
    "barn house mill artifact".split()
)


@pytest.fixture
def settings(tiny_wordnet_dir: Path, monkeypatch: pytest.MonkeyPatch) -> TaxonomySettings:
    monkeypatch.setattr(taxonomy, "frequent_words", lambda count: WORDS)
    monkeypatch.setattr("probelight.build.olmpics.taxonomy.countable_words", lambda _, words: words)
    return TaxonomySettings(
        num_train=2,
        num_dev=2,
        num_test=0,
        wordnet_dir=str(tiny_wordnet_dir),
        evaluation_roots=("animal.n.01",),
    )


def test_the_gold_is_shared_and_nothing_else(settings: TaxonomySettings) -> None:
    probe = build_taxonomy(settings)
    assert list(probe) == ["train", "dev"]
    wordnet = open_wordnet(settings.wordnet_dir)
    for rows in probe.values():
        assert check_records(rows) == check_conjunctions(rows, wordnet) == []
    assert check_splits(probe) == []
    assert build_taxonomy(settings) == probe


def test_answers_can_be_held_to_a_models_pieces(settings: TaxonomySettings, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("animal\nmammal\nbird\nartifact\nvehicle\n")
    with pytest.raises(UsageError, match="only 0 items are left for train, not 2: give smaller"):
        build_taxonomy(replace(settings, vocabulary=str(tmp_path)))


@pytest.mark.parametrize("root", ["animal", "animal.n.02", "aminal.n.01", "animal.n.x", ""])
def test_a_root_that_is_no_synset_is_named(settings: TaxonomySettings, root: str) -> None:
    with pytest.raises(UsageError, match=f"--evaluation_roots {root}: no synset of WordNet"):
        build_taxonomy(replace(settings, evaluation_roots=("animal.n.01", root)))


def test_what_wordnet_contradicts_is_found(settings: TaxonomySettings) -> None:
    stem = "A dog and a hen are both a type of [MASK]."

    def item(choices: tuple[str, str, str]) -> Record:
        return Record("1", stem, choices, 0)

    items = [
        item(("animal", "mammal", "bird")),
        item(("mammal", "bird", "vehicle")),
        item(("animal", "entity", "bird")),
    ]
    found = check_conjunctions(items, open_wordnet(settings.wordnet_dir))
    assert [(one.check, one.text) for one in found] == [
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
