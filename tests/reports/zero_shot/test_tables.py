from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from probelight.reports.kit.table import Cell
from probelight.reports.zero_shot.tables import ranks_table
from probelight.results.load import load_results
from tests.fixtures.report import labels, tables

WriteRun = Callable[..., Path]


def test_zero_shot_row_by_hand(demo_folder: Path) -> None:
    table = tables(demo_folder)["zero_shot"]
    (row,) = [row for row in table.rows if row[0].text == "taxonomy_conjunction"]
    # 367 of 599 = 0.61269; Wilson: centre 0.61197, half width 0.03888.
    assert row == (
        Cell("taxonomy_conjunction", "dev"),
        Cell("33.3"),
        Cell("34.3"),
        Cell("61.3", "57.3–65.1"),
        Cell("60.9"),
        Cell("599"),
        Cell("above"),
    )
    (record,) = [r for r in table.records if r["probe"] == "taxonomy_conjunction"]
    assert record["accuracy"] == 367 / 599
    assert record["ci_low"] == pytest.approx(0.61197 - 0.03888, abs=1e-4)


def test_zero_shot_has_columns_for_each_model(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_run(tmp_path, "a", rows.zero_shot("p", 5, 10, 2, model="m1"))
    write_run(tmp_path, "b", rows.zero_shot("q", 1, 1, 2, model="m2"))
    write_run(tmp_path, "c", rows.zero_shot("q", 1_000_000, 2_000_000, 2, model="m1"))
    table = tables(tmp_path)["zero_shot"]
    assert labels(table)[3:8] == [
        "m1: accuracy %",
        "m1: macro %",
        "m1: n",
        "m1: against chance",
        "m2: accuracy %",
    ]
    first, second = table.rows
    assert [cell.text for cell in first[7:]] == ["–"] * 4  # m2 was not asked p
    assert second[3:6] == (Cell("50.0", "49.9–50.1"), Cell("49.6"), Cell("2,000,000"))
    # One item, right: Wilson's interval reaches down to 1 / (1 + z^2) = 20.7%.
    assert second[7] == Cell("100.0", "20.7–100.0")


def test_ties_have_a_column_where_there_are_any(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("p", 5, 10, 2, model="m1")
    write_run(tmp_path, "a", [*found, {**found[1], "metric": "tied_share", "value": 0.0}])
    assert "m1: ties %" not in labels(tables(tmp_path)["zero_shot"])
    found = rows.zero_shot("q", 5, 10, 2, model="m1")
    write_run(tmp_path, "b", [*found, {**found[1], "metric": "tied_share", "value": 0.3}])
    table = tables(tmp_path)["zero_shot"]
    assert labels(table)[3:] == [
        "m1: accuracy %", "m1: macro %", "m1: n", "m1: against chance", "m1: ties %"
    ]  # fmt: skip
    assert [row[-1].text for row in table.rows] == ["0.0", "30.0"]
    assert [record["tied_share"] for record in table.records] == [0.0, 0.3]


def test_near_ties_have_a_column_where_there_are_any(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("p", 5, 10, 2, model="m1")
    near = {**found[1], "metric": "near_tied_share", "value": 0.125}
    write_run(tmp_path, "a", [*found, near])
    table = tables(tmp_path)["zero_shot"]
    assert labels(table)[-1] == "m1: near-ties %"
    assert "less than 0.0001 above the second" in table.note
    assert table.rows[0][-1].text == "12.5"
    assert table.records[0]["near_tied_share"] == 0.125


def test_other_ways_of_scoring_are_named(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("p", 5, 10, 5)
    write_run(tmp_path, "a", [{**row, "mode": "pseudo_log_likelihood"} for row in found])
    assert tables(tmp_path)["zero_shot"].rows[0][0] == Cell("p", "dev, pseudo log likelihood")
    other = [{**row, "model": "b", "mode": "causal_likelihood"} for row in found]
    write_run(tmp_path, "b", other)
    table = tables(tmp_path)["zero_shot"]
    assert table.rows[0][0] == Cell("p", "dev")
    ways = [cell.text for cell in table.rows[0] if "likelihood" in cell.text]
    assert sorted(ways) == ["causal likelihood", "pseudo log likelihood"]


def test_predicted_shares(demo_folder: Path) -> None:
    table = tables(demo_folder)["predicted_shares"]
    shares = [row for row in table.rows if row[0].text == "always_never"]
    assert [row[2].text for row in shares] == ["50.0", "12.5", "12.5", "12.5", "12.5"]


def test_ranks_stand_in_a_table_of_their_own(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("age", 30, 60, 2)
    fields = {key: found[0][key] for key in ("protocol", "model", "probe", "split")}
    found.append({**fields, "metric": "median_gold_rank", "value": 1234.5, "num_items": 60})
    found.append({**rows.accuracy(15, 60, **fields), "metric": "gold_in_top10"})
    found.append({**rows.accuracy(6, 60, **fields), "metric": "all_in_top10"})
    write_run(tmp_path, "zero_shot-age", found)
    write_run(tmp_path, "zero_shot-other", rows.zero_shot("other", 30, 60, 2))
    table = ranks_table(load_results(tmp_path))
    assert table is not None
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["age", "embedded", "1,234.5", "25.0", "10.0", "60"]
    ]
    assert table.records[0]["all_in_top10"] == 0.1
