from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from probelight.build.hygiene import check_records, check_splits
from probelight.build.olmpics import taxonomy
from probelight.build.olmpics.frame import frequent_words
from probelight.build.olmpics.taxonomy import TaxonomySettings, build_taxonomy
from probelight.build.sources.wordnet import open_wordnet
from probelight.build.wordnet_probes.checks import check_conjunctions
from probelight.io.errors import UsageError
from probelight.probes.record import Record

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
