from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from reports.diagnostics.tables import diagnostics_table
from reports.kit.table import to_markdown
from results.load import load_results
from results.subset import ClozeBin
from tests.fixtures.results import accuracy

WriteRun = Callable[..., Path]


def row(right: int, number: int, model: str = "m", **columns: Any) -> dict[str, Any]:
    common = {"protocol": "diagnose", "model": model, "probe": "cprag"}
    return accuracy(right, number, **common) | {"metric": "accuracy@1"} | columns


def test_counts_and_intervals_stand_beside_the_papers_models(
    tmp_path: Path, write_run: WriteRun
) -> None:
    write_run(tmp_path, "one", [row(8, 34), row(6, 34, metric="sensitivity_margin")])
    role: dict[str, Any] = {"probe": "role"}
    write_run(tmp_path, "two", [row(3, 25, **role, subset=ClozeBin(0.166666667))])
    table = diagnostics_table(load_results(tmp_path))
    assert table is not None
    cells = [[cell.text for cell in line] for line in table.rows]
    assert cells == [
        ["CPRAG-102", "accuracy@1", "23.5", "35.3", "23.5 (8/34)"],
        ["CPRAG-102", "sensitivity > 0.01", "44.1", "58.8", "17.6 (6/34)"],
        ["ROLE-88", "accuracy@1", "12.0", "8.0", "12.0 (3/25)"],
    ]
    assert table.rows[0][-1].detail == "12.4–40.0"
    assert table.rows[2][1].detail == "cloze <=.17"
    assert table.records[0]["paper_bert-large-uncased"] == 0.353
    assert "cloze" in to_markdown(table)


def test_without_the_papers_sets_it_is_not_named(tmp_path: Path, write_run: WriteRun) -> None:
    write_run(tmp_path, "one", [row(5, 770, probe="neg_1500_simp_gen")])
    table = diagnostics_table(load_results(tmp_path))
    assert table is not None
    assert [heading.label for heading in table.columns] == ["set", "measured", "share %"]
    assert "Paper" not in table.note


def test_models_stand_side_by_side_and_outputs_of_one_name_apart(
    tmp_path: Path, write_run: WriteRun
) -> None:
    for name, model, right in (("a", "m", 1), ("b", "m", 2), ("c", "other", 3)):
        write_run(tmp_path, name, [row(right, 4, model)])
    table = diagnostics_table(load_results(tmp_path))
    assert table is not None
    [*_, first, second, other] = [heading.group for heading in table.columns]
    assert other == "other"
    assert first.startswith("m (runs/a-")
    assert second.startswith("m (runs/b-")
    [cells] = table.rows
    assert [cell.text for cell in cells][-3:] == ["25.0 (1/4)", "50.0 (2/4)", "75.0 (3/4)"]


def test_nothing_without_diagnostics(tmp_path: Path, write_run: WriteRun) -> None:
    write_run(tmp_path, "one", [row(1, 2) | {"protocol": "zero_shot"}])
    assert diagnostics_table(load_results(tmp_path)) is None
