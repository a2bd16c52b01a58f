from __future__ import annotations

from pathlib import Path

import pytest

import train
from probes.importers.ai2 import write_ai2
from probes.record import Record


def test_findings_are_counted_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [
        Record("1", "what barks, a dog?", ("dog", "cat"), 0, {"cluster": "dog.n.01"}),
        Record("2", "what purrs?", ("dog", "cat"), 1, {"cluster": "cat.n.01"}),
    ]
    write_ai2(tmp_path / "train.jsonl", records)
    with pytest.raises(SystemExit) as stop:
        train.main(["probes", "validate", str(tmp_path / "train.jsonl")])
    assert stop.value.code == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "answer in the stem: 1"
    assert said[1].endswith("train.jsonl:1: 'dog'")
    assert said[2].endswith("1 findings in 2 items (train)")
    assert train.main(["probes", "stats", str(tmp_path)]) == 0
    row = capsys.readouterr().out.splitlines()[2]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        *("train", "2", "2", "2", "1.0", "2", "1 1")
    ]


def test_what_is_no_probe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["probes", "stats", str(tmp_path)]) == 2
    assert "no train, dev or test file" in capsys.readouterr().err
    (tmp_path / "dev.jsonl").write_text("")
    assert train.main(["probes", "validate", str(tmp_path)]) == 1
    assert "the file is empty" in capsys.readouterr().err
