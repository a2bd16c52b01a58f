from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from probelight.reports.kit.table import Cell
from tests.fixtures import subsets
from tests.fixtures.report import tables

WriteRun = Callable[..., Path]


def test_parts_of_an_inoculation(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.inoculation(datasets={"easy": (300, 150, 120)})
    clean = {**found[-1], "subset": subsets.UNTOUCHED, "split": "report"}
    found += [
        rows.accuracy(10, 100, **{**clean, "metric": "probe_accuracy_before"}),
        rows.accuracy(20, 100, **{**clean, "metric": "probe_accuracy"}),
    ]
    write_run(tmp_path, "a", found)
    table = tables(tmp_path)["inoculation_parts"]
    texts = [[cell.text for cell in row[3:]] for row in table.rows]
    assert texts == [
        ["original task", "easy", "50.0", "40.0", "300", "+10.0"],
        ["probe", "group not in train", "10.0", "20.0", "100", "–"],
    ]


def test_large_clusters_are_one_row_of_the_parts(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.inoculation()
    report = {**found[-1], "split": "report"}
    for size, before, after, number in ((4, 8, 16, 40), (5, 3, 4, 12), (7, 0, 2, 5), (12, 0, 0, 3)):
        own = {**report, "subset": subsets.clusters(size)}
        found += [
            rows.accuracy(before, number, **{**own, "metric": "strict_cluster_accuracy_before"}),
            rows.accuracy(after, number, **{**own, "metric": "strict_cluster_accuracy"}),
        ]
    facts = {"original_task": "definitions", "selection": "paper", "report_split": "dev"}
    write_run(tmp_path, "a", found, **facts)
    table = tables(tmp_path)["inoculation_parts"]
    first, second = table.rows
    detail = "embedded, originally definitions, chosen on the reported items (dev)"
    assert first[0] == second[0] == Cell("hypernymy", detail)
    assert [cell.text for cell in first[4:]] == ["clusters of 4", "20.0", "40.0", "40", "–"]
    # 3 of 20 before and 6 of 20 after, with Wilson's intervals.
    assert second[4:] == (
        Cell("clusters of 5 or more"),
        Cell("15.0", "5.2–36.0"),
        Cell("30.0", "14.5–51.9"),
        Cell("20"),
        Cell("–"),
    )
    sizes = [record["part"] for record in table.records]
    assert sizes == [f"clusters of {size}" for size in (4, 5, 7, 12)]


def test_cost_of_a_data_set_is_read_by_its_own_chance(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    sets = {"easy": (300, 150, 120), "hard": (200, 50, 40), "plain": (100, 20, 10)}
    found = rows.inoculation(datasets=sets)
    report = {**found[-1], "split": "report", "metric": "chance_original"}
    # 50% and 25% before; of "plain" no chance was written, and the whole task was above its own.
    found += [
        {**report, "subset": subsets.source_set(name), "value": 0.25} for name in ("easy", "hard")
    ]
    write_run(tmp_path, "a", found, cost_interpretable=True)
    table = tables(tmp_path)["inoculation_parts"]
    costs = {row[4].text: row[-1].text for row in table.rows}
    assert costs == {"easy": "+10.0", "hard": "not interpretable", "plain": "+10.0"}
    flags = {record["part"]: record["cost_interpretable"] for record in table.records}
    assert flags == {"easy": True, "hard": False, "plain": True}
