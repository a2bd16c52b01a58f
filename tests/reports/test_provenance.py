from __future__ import annotations

from pathlib import Path

import pytest

from probelight.probes.catalog import load_probe_config
from probelight.reports.provenance import computing_time
from probelight.reports.table import Table
from probelight.results.load import Run, RunSet
from tests.fixtures.report import present, tables
from tests.fixtures.results import inoculation_rows, write_run, zero_shot_rows


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(12.34, "12.3 s"), (150, "2 min"), (7199, "120 min"), (9000, "2.5 h"), (None, "0.0 s")],
)
def test_computing_time_has_a_readable_unit(seconds: float | None, expected: str) -> None:
    assert computing_time(RunSet("r", (Run(protocol="fit", seconds=seconds),))) == expected


def test_everything_is_listed_once(tmp_path: Path) -> None:
    data = [{"path": "p_dev.jsonl", "sha256": "d1", "num_items": 1234}]
    fields = {"data": data, "model_sha256": "w1", "git_commit": "abc", "versions": {"torch": "2"}}
    for name in ("a", "b"):
        write_run(tmp_path, name, zero_shot_rows("p", 5, 10, 2), **fields)
    fields |= {"versions": {"torch": "3"}, "counts": {"items": 10, "scored": 9}}
    write_run(tmp_path, "c", zero_shot_rows("q", 5, 10, 2), **fields, seeds=[1, 2], seconds=None)
    by_name = tables(tmp_path)
    assert texts(by_name["models"]) == [["dictionary-lm", "zero shot", "w1", "3"]]
    # Read for p by two runs and for q by one, so it cannot be told whose it is.
    assert texts(by_name["data"]) == [["p_dev.jsonl", "1,234", "d1"]]
    assert texts(by_name["software"]) == [["torch", "2, 3"], ["Probelight, git commit", "abc"]]
    assert by_name["data"].frame.num_items.tolist() == [1234]
    last = texts(by_name["runs"])[-1]
    assert last[1:] == ["zero shot", "dictionary-lm", "q", "items 10, scored 9", "1, 2", "–"]
    assert by_name["runs"].note.startswith("25.0 s of computing")


def test_weights_are_told_apart_by_what_ran(tmp_path: Path) -> None:
    write_run(tmp_path, "a", zero_shot_rows("p", 5, 10, 2), model_sha256="given")
    write_run(tmp_path, "b", inoculation_rows(), model_sha256="trained")
    assert texts(tables(tmp_path)["models"]) == [
        ["dictionary-lm", "inoculation", "trained", "1"],
        ["dictionary-lm", "zero shot", "given", "1"],
    ]


def test_what_a_run_does_not_record_is_not_shown(tmp_path: Path) -> None:
    fields = {"counts": {"original_report": 3_000, "train": 3}, "seeds": (7, 8)}
    lacking = {"data": (), "versions": {}, "git_commit": "", "model_sha256": ""}
    write_run(tmp_path, "a", zero_shot_rows("p", 5, 10, 2), **fields, **lacking)
    by_name = tables(tmp_path)
    assert not {"data", "software"} & {*by_name}
    assert texts(by_name["models"]) == [["dictionary-lm", "zero shot", "1"]]
    assert "sha256" in by_name["models"].frame
    assert texts(by_name["runs"])[0][4:6] == ["original report 3,000, train 3", "7, 8"]


def test_files_are_named_with_their_probe(tmp_path: Path) -> None:
    def files(*sums: str, path: str = "train.jsonl.gz") -> list[dict[str, object]]:
        return [{"path": path, "sha256": sha256, "num_items": 9} for sha256 in sums]

    released = present(load_probe_config("definitions").files["train"].sha256)
    task = {"original_task": "definitions"}
    for name, probe, data, fields in (
        ("a", "hypernymy", files(released, "x1", "x2", "x3"), task),
        ("b", "hyponymy", files(released, "y1", "x2"), task),
        ("c", "hypernymy", files("x1"), {"original_task": "science"}),
        ("d", "own", files("z", path="folder/train.jsonl"), {}),
        ("e", "own", files("g", path="grid age (own wording)"), {}),
        ("f", "", files("x1"), {}),
    ):
        write_run(tmp_path, name, zero_shot_rows(probe, 5, 10, 2), data=data, **fields)
    named = {row[2]: row[0] for row in texts(tables(tmp_path)["data"])}
    assert named == {
        released: "definitions/train.jsonl.gz",  # in the catalogue
        "x1": "hypernymy/train.jsonl.gz",  # of one probe with two original tasks
        "x2": "definitions/train.jsonl.gz",  # of two probes with one original task
        "x3": "hypernymy or definitions/train.jsonl.gz",
        "y1": "hyponymy or definitions/train.jsonl.gz",
        "z": "folder/train.jsonl",
        "g": "grid age (own wording)",  # no file
    }
