"""What `probes build` refuses: mistakes in settings, and sources that are missing or too small."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from probelight.build.olmpics import taxonomy
from probelight.protocols.cli import FAILURE, USAGE_ERROR
from tests.protocols.conftest import Refused

WORDS = frozenset("animal mammal bird dog cat horse poodle hound hen owl barn house mill".split())
DICTIONARY = "Amber \\Amber\\, n.\n   Some bronze anvil; as, an amber thing.\n   [1913 Webster]\n\n"
CONCEPTNET = '/a/[...]\t/r/UsedFor\t/c/en/pen\t/c/en/writing\t{"weight": 2.0}\n'
WIKIDATA = "subject\tsubject_label\tproperty\tobject\tobject_label\nQ1\tx\tP463\tQ2\ty\n"
TAXONOMY = "taxonomy_conjunction --num_train=2 --num_dev=2 --wordnet_dir={wordnet}"
GCIDE = "dictionary_qa --gcide_path={folder}"
MISTAKES = [
    ("definition", "no builder of 'definition' (did you mean 'definitions'?)"),
    ("hyponymy --max_hops=6", "--max_hops 6: give a number from 1 to 5"),
    ("synonymy --wordnet_dir={wordnet}", "nothing is left for train and dev and test"),
    ("wordnet_qa --num_processes=9", "--num_processes 9: give a number from 1 to 4"),
    ("age_comparison --perturbation=E", "--perturbation E: give one of A, B, C, D"),
    (
        "age_comparison --num_train=2 --num_test=600",
        "--num_dev 500: --num_test leave none of 552 items",
    ),
    (
        "multihop_composition --num_dev=3000 --num_test=5",
        "--num_test 5: --num_dev leave none of 2,024 items",
    ),
    *(
        (
            f"{TAXONOMY} --evaluation_roots=animal.n.01,{root}",
            f"--evaluation_roots {root}: no synset of WordNet",
        )
        for root in ("animal", "animal.n.02", "aminal.n.01", "animal.n.x")
    ),
    (
        f"{TAXONOMY} --vocabulary={{folder}} --evaluation_roots=[animal.n.01]",
        "only 0 items are left for train, not 2: give smaller",
    ),
    (
        "property_conjunction --source={folder}/edges.csv --min_statements=1",
        "dev: the source gives 0 items, not 500; lower --min_weight",
    ),
    (
        "encyclopedic_composition --source={folder}/triples.tsv",
        "band: the source gives 0 items, not 166; lower --min_sitelinks",
    ),
    (f"{GCIDE}/gcide.dict", "questions can be made for train, not 3000: give smaller"),
]
MISSING = [
    ("hyponymy --wordnet_dir={folder}", "apt-get install wordnet-base"),
    ("wordnet_qa --num_processes=1 --wordnet_dir={folder}", "apt-get install wordnet-b"),
    (f"{TAXONOMY} --vocabulary={{folder}}/none", "no vocab.txt or tokenizer.json"),
    ("property_conjunction", "no ConceptNet assertions there. Get https://"),
    ("encyclopedic_composition", "no Wikidata there. Get the JSON dump, https://"),
    (f"{GCIDE}/none.dz", "apt-get install dict-gcide"),
    (GCIDE, "no file CIDE.A to CIDE.Z"),
    (f"{GCIDE}/CIDE.B", "https://ftp.gnu.org/gnu/gcide"),
    (f"{GCIDE}/cut.dict.dz", "dz: it is damaged; get it anew"),
    (f"{GCIDE}/edges.csv", "no entry of GCIDE is there"),
]


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with sources that hold next to nothing."""
    (folder := tmp_path / "sources").mkdir()
    (folder / "vocab.txt").write_text("animal\nmammal\nbird\nartifact\nvehicle\n")
    (folder / "edges.csv").write_text(CONCEPTNET)
    (folder / "triples.tsv").write_text(WIKIDATA)
    (folder / "gcide.dict").write_text(DICTIONARY)
    (folder / "cut.dict.dz").write_bytes(gzip.compress(DICTIONARY.encode())[:-20])
    monkeypatch.setattr(taxonomy, "frequent_words", lambda count: WORDS)
    return folder


@pytest.mark.parametrize(
    ("line", "message", "code"),
    [*((*row, USAGE_ERROR) for row in MISTAKES), *((*row, FAILURE) for row in MISSING)],
)
def test_what_cannot_be_built_is_refused_and_nothing_is_written(
    line: str, message: str, code: int, refused: Refused, sources: Path, tiny_wordnet_dir: Path
) -> None:
    line = line.format(folder=sources, wordnet=tiny_wordnet_dir)
    output_dir = sources.with_name("probes")
    assert message in refused(f"probes build {line} --output_dir={output_dir}", code)
    assert not output_dir.exists()


@pytest.mark.parametrize("line", ["definitions", ""])
def test_without_a_folder_nothing_goes_into_the_assets_of_the_package(
    line: str, refused: Refused
) -> None:
    assert "give --output_dir" in refused(f"probes build {line}")
