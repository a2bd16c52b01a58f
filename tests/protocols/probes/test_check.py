from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from probelight.probes.importers.items import write_ai2
from probelight.probes.record import Record
from probelight.protocols import cli
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
    said = findings(
        Record("1", "what barks, a dog?", ("dog", "cat"), 0, {"cluster": "dog.n.01"}),
        Record("2", "what purrs?", ("dog", "cat"), 1, {"cluster": "cat.n.01"}),
    )
    assert said[0] == "answer in the stem: 1"
    assert said[1].endswith("train.jsonl:1: 'dog'")
    assert said[2].endswith("1 findings in 2 items (train)")
    assert cli.main(["probes", "stats", str(tmp_path)]) == 0
    row = capsys.readouterr().out.splitlines()[2]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        *("train", "2", "2", "2", "1.0", "2", "1 1")
    ]


def test_an_asked_word_that_tells_the_answer_is_found(findings: Callable[..., list[str]]) -> None:
    stem = "In 'the moon was waning', 'waning' is best defined as"
    choices = ("the act of going", "the act of wanes")
    notes = {"surface_form": "waning", "cluster": "wane.n.01"}
    said = findings(Record("1", stem, choices, 1, notes))
    assert said[0] == "asked word in the right answer: 1"


def test_a_calf_may_be_a_vertebrate(tmp_path: Path, findings: Callable[..., list[str]]) -> None:
    (folder := tmp_path / "wordnet").mkdir()
    write_wordnet(folder, ANIMALS)
    choices = ("animal", "vertebrate", "bird")
    stems = {name: f"A swan and a {name} are both a type of [MASK]." for name in ("calf", "clam")}
    items = [Record(name, stem, choices, 0) for name, stem in stems.items()]
    said = findings(*items, options=[f"--wordnet_dir={folder}"])
    assert said[0] == "animal of unsaid kind: 1"
    assert "calf may be of kind 'vertebrate'" in said[1]


def test_what_is_no_probe(tmp_path: Path, refused: Callable[..., str]) -> None:
    assert "no train, dev or test file" in refused(f"probes stats {tmp_path}")
    (tmp_path / "dev.jsonl").write_text("")
    assert "the file is empty" in refused(f"probes validate {tmp_path}", 1)
