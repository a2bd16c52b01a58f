from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from probelight.probes.catalog import load_probe_config
from probelight.reports.kit.table import Table
from tests.fixtures.report import tables

WriteRun = Callable[..., Path]


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_files_are_named_with_their_probe(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    def files(*sums: str, path: str = "train.jsonl.gz") -> list[dict[str, object]]:
        return [{"path": path, "sha256": sha256, "num_items": 9} for sha256 in sums]

    released = load_probe_config("definitions").files["train"].sha256
    assert released is not None
    task = {"original_task": "definitions"}
    for name, probe, data, facts in (
        ("a", "hypernymy", files(released, "x1", "x2", "x3"), task),
        ("b", "hyponymy", files(released, "y1", "x2"), task),
        ("c", "hypernymy", files("x1"), {"original_task": "science"}),
        ("d", "own", files("z", path="folder/train.jsonl"), {}),
        ("e", "own", files("g", path="grid age (own wording)"), {}),
        ("f", "", files("x1"), {}),
    ):
        write_run(tmp_path, name, rows.zero_shot(probe, 5, 10, 2), data=data, **facts)
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
