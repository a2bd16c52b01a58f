from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from probelight import cli
from probelight.builders.catalogue import BUILDERS
from probelight.builders.olmpics import taxonomy
from probelight.builders.wordnet_probes.builders import WORDNET_QA
from probelight.io.process import FAILURE, USAGE_ERROR
from probelight.probes.catalog import probe_names
from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from tests.fixtures.tiny import Refused
from tests.fixtures.wordnet import ANIMALS, write_wordnet


@pytest.fixture
def findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """The lines of `probes validate`, which finds something in a file of these items."""

    def validate(*records: Record, options: Sequence[str] = ()) -> list[str]:
        write_ai2(tmp_path / "train.jsonl", records)
        with pytest.raises(SystemExit) as stop:
            cli.main(["probes", "validate", str(tmp_path / "train.jsonl"), *options])
        assert stop.value.code == 1
        return capsys.readouterr().out.splitlines()

    return validate


def test_findings_are_counted_and_shown(
    tmp_path: Path, findings: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = findings(
        Record("1", "what barks, a dog?", ("dog", "cat"), 0, {"cluster": "dog.n.01"}),
        Record("2", "what purrs?", ("dog", "cat"), 1, {"cluster": "cat.n.01"}),
    )
    assert lines[0] == "answer in the stem: 1"
    assert lines[1].endswith("train.jsonl:1: 'dog'")
    assert lines[2].endswith("1 findings in 2 items (train)")
    assert cli.main(["probes", "stats", str(tmp_path)]) == 0
    row = capsys.readouterr().out.splitlines()[2]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        *("train", "2", "2", "2", "1.0", "2", "1 1")
    ]


def test_an_asked_word_that_tells_the_answer_is_found(findings: Callable[..., list[str]]) -> None:
    stem = "In 'the moon was waning', 'waning' is best defined as"
    choices = ("the act of going", "the act of wanes")
    notes = {"surface_form": "waning", "cluster": "wane.n.01"}
    lines = findings(Record("1", stem, choices, 1, notes))
    assert lines[0] == "asked word in the right answer: 1"


def test_a_calf_may_be_a_vertebrate(tmp_path: Path, findings: Callable[..., list[str]]) -> None:
    (folder := tmp_path / "wordnet").mkdir()
    write_wordnet(folder, ANIMALS)
    choices = ("animal", "vertebrate", "bird")
    stems = {name: f"A swan and a {name} are both a type of [MASK]." for name in ("calf", "clam")}
    items = [Record(name, stem, choices, 0) for name, stem in stems.items()]
    lines = findings(*items, options=[f"--wordnet_dir={folder}"])
    assert lines[0] == "animal of unknown kind: 1"
    assert "calf may be of kind 'vertebrate'" in lines[1]


def test_a_folder_that_is_no_probe_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    assert "no train, dev or test file" in refused(f"probes stats {tmp_path}")
    (tmp_path / "dev.jsonl").write_text("")
    assert "the file is empty" in refused(f"probes validate {tmp_path}", 1)


def test_probes_alone_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["probes"]) == 0
    bare = capsys.readouterr().out
    assert cli.main(["probes", "list"]) == 0
    assert bare == capsys.readouterr().out
    assert bare.startswith("age_comparison ")
    rows, _, built = bare.partition("\n\n")
    rows = rows.splitlines()
    assert [row.split()[0] for row in rows] == list(probe_names())
    names = ", ".join([*BUILDERS, WORDNET_QA])
    assert " ".join(built.split()).endswith(f" builds one of {names}.")
    assert rows[0].split()[1:4] == ["mc_mlm", "train,", "dev"]


WORDS = frozenset("animal mammal bird dog cat horse poodle hound hen owl barn house mill".split())
DICTIONARY = "Amber \\Amber\\, n.\n   Some bronze anvil; as, an amber thing.\n   [1913 Webster]\n\n"
CONCEPTNET = '/a/[...]\t/r/UsedFor\t/c/en/pen\t/c/en/writing\t{"weight": 2.0}\n'
WIKIDATA = "subject\tsubject_label\tproperty\tobject\tobject_label\nQ1\tx\tP463\tQ2\ty\n"
TAXONOMY = "taxonomy_conjunction --num_train=2 --num_dev=2 --wordnet_dir={wordnet}"
GCIDE = "dictionary_qa --gcide_path={folder}"
MISTAKES = [
    ("definition", "no builder of 'definition' (did you mean 'definitions'?)"),
    ("hyponymy --max_hops=6", "--max_hops 6: give a number from 1 to 5"),
    ("synonymy --wordnet_dir={wordnet}", "no items are left for train and dev and test"),
    ("wordnet_qa --num_processes=9", "--num_processes 9: give a number from 1 to 4"),
    ("age_comparison --perturbation=E", "--perturbation E: give one of A, B, C, D"),
    (
        "age_comparison --num_train=2 --num_test=600",
        "--num_dev 500: none of 552 items are left after --num_test",
    ),
    (
        "multihop_composition --num_dev=3000 --num_test=5",
        "--num_test 5: none of 2,024 items are left after --num_dev",
    ),
    *(
        (
            f"{TAXONOMY} --evaluation_roots=animal.n.01,{root}",
            f"--evaluation_roots {root}: not a synset of WordNet",
        )
        for root in ("animal", "animal.n.02", "aminal.n.01", "animal.n.x")
    ),
    (
        f"{TAXONOMY} --vocabulary={{folder}} --evaluation_roots=[animal.n.01]",
        "only 0 of 2 items for train; give smaller",
    ),
    (
        "property_conjunction --source={folder}/edges.csv --min_statements=1",
        "dev: the source has only 0 of 500 items; lower --min_weight",
    ),
    (
        "encyclopedic_composition --source={folder}/triples.tsv",
        "band: the source has only 0 of 166 items; lower --min_sitelinks",
    ),
    (f"{GCIDE}/gcide.dict", "of 3000 questions can be made for train; give smaller"),
]
MISSING = [
    ("hyponymy --wordnet_dir={folder}", "apt-get install wordnet-base"),
    ("wordnet_qa --num_processes=1 --wordnet_dir={folder}", "apt-get install wordnet-b"),
    (f"{TAXONOMY} --vocabulary={{folder}}/none", "no vocab.txt or tokenizer.json"),
    ("property_conjunction", "no ConceptNet assertions here. Download https://"),
    ("encyclopedic_composition", "no Wikidata here. Download the JSON dump, https://"),
    (f"{GCIDE}/none.dz", "apt-get install dict-gcide"),
    (GCIDE, "no files CIDE.A to CIDE.Z"),
    (f"{GCIDE}/CIDE.B", "https://ftp.gnu.org/gnu/gcide"),
    (f"{GCIDE}/cut.dict.dz", "dz: the file is damaged; get it again"),
    (f"{GCIDE}/edges.csv", "the file has no entries of GCIDE"),
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
