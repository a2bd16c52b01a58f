from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from probelight.reports.kit.table import Cell
from probelight.results.load import Results
from tests.fixtures import subsets
from tests.fixtures.report import labels, tables

WriteRun = Callable[..., Path]


def test_inoculation_row_by_hand(demo_folder: Path) -> None:
    table = tables(demo_folder)["inoculation"]
    row = dict(zip(labels(table), table.rows[1], strict=True))
    assert row["probe"] == Cell("hypernymy", "embedded, originally definitions")
    assert row["k"] == Cell("1,000")
    assert row["setting"] == Cell("rate 2e-5, epoch 3", "extra none, seed 1")
    assert row["probe %: before"].text == "29.1"
    assert row["probe %: after"].text == "55.3"
    assert row["original task %: before"].text == "60.2"
    assert row["original task %: after"].text == "56.4"
    assert row["average %"] == Cell("55.9")  # (55.3 + 56.4) / 2 = 55.85
    assert row["cost, points"] == Cell("+3.8", "+0.8 to +6.8")  # (301 - 282) / 500
    assert row["lost / gained"] == Cell("39 / 20", "p < 0.001")
    assert row["whole clusters %: before"] == Cell("10.0")
    assert row["whole clusters %: after"] == Cell("25.0")
    assert row["whole clusters %: n"] == Cell("800")
    record = table.records[1]
    assert record["inoculation_cost"] == pytest.approx(0.038)
    assert record["cost_interpretable"] is True


def test_cost_at_chance_is_not_interpretable(
    tmp_path: Path, inoculated: Callable[..., Results]
) -> None:
    low = {
        "original_correct": (100, 98),
        "datasets": {"easy": (300, 60, 60), "hard": (200, 40, 38)},
    }
    inoculated(*({**low, "seed": seed} for seed in (1, 2)), cost_interpretable=False)
    found_tables = tables(tmp_path)
    for name in ("inoculation", "inoculation_seeds", "inoculation_parts"):
        table = found_tables[name]
        (place,) = (
            place
            for place, column in enumerate(table.columns)
            if "cost, points" in (column.label, column.group) and column.label != "over seeds"
        )
        assert {row[place] for row in table.rows} == {Cell("not interpretable")}, name


def test_seeds_and_unchosen_rates(tmp_path: Path, inoculated: Callable[..., Results]) -> None:
    for seed, after in ((1, 300), (2, 400)):
        for rate, score in ((1e-5, 0.4), (5e-5, 0.3)):
            selection = [(0.2, 0.6), (score, 0.5)]
            own = {"seed": seed, "learning_rate": rate, "selection": selection}
            inoculated({**own, "probe_correct": (200, after)})
    found_tables = tables(tmp_path)
    settings = [row[2].text for row in found_tables["inoculation"].rows]
    assert settings.count("rate 1e-5, epoch 1") == 2
    assert settings.count("rate 5e-5, epoch 1 †") == 2
    table = found_tables["inoculation_seeds"]
    (row,) = table.rows
    columns = [f"{column.group} {column.label}".strip() for column in table.columns]
    by_label = dict(zip(columns, row, strict=True))
    assert by_label["seeds"] == Cell("2")
    assert by_label["probe % after"].text == "35.0"
    assert by_label["probe % over seeds"] == Cell("30.0–40.0")
    assert by_label["original task % after"].text == "58.0"
    # The runs hold no items, so nothing is known about a mean, such as that of 10 / 500 in both.
    assert by_label["cost, points mean"] == Cell("+2.0")
    assert "none where a run" in table.note
    assert by_label["cost, points over seeds"] == Cell("+2.0 to +2.0")
    (record,) = table.records
    assert record["probe_accuracy_median"] == pytest.approx(0.35)
    assert (record["probe_accuracy_min"], record["probe_accuracy_max"]) == (0.3, 0.4)


def test_seeds_are_averaged_on_untouched_items_too(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    # Of the second dose one seed lacks the rows, so there is no mean.
    for dose, seed, untouched in ((100, 1, 20), (100, 2, 30), (500, 1, 40), (500, 2, None)):
        found = rows.inoculation(dose=dose, seed=seed)
        part = {**found[-1], "subset": subsets.UNTOUCHED, "split": "report"}
        if untouched is not None:
            found += [
                rows.accuracy(10, 100, **{**part, "metric": "probe_accuracy_before"}),
                rows.accuracy(untouched, 100, **{**part, "metric": "probe_accuracy"}),
            ]
        write_run(tmp_path, f"{dose}-{seed}", found)
    table = tables(tmp_path)["inoculation_seeds"]
    group = "probe, group not in train %"
    assert [c.label for c in table.columns if c.group == group] == ["before", "after"]
    assert "no relative in the train file" in table.note
    first, second = table.rows
    assert first[-2:] == (Cell("10.0"), Cell("25.0"))
    assert second[-2:] == (Cell("–"), Cell("–"))
    assert table.records[0]["probe_accuracy_group_not_in_train"] == pytest.approx(0.25)
    assert "probe_accuracy_group_not_in_train" not in table.records[1]


def test_original_task_reports_its_report_split(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    common = {"protocol": "original", "model": "m", "probe": "science", "epoch": 2, "seed": 1}
    found = [
        rows.accuracy(40, 100, **common, split="selection"),
        rows.accuracy(45, 100, **common, split="report"),
    ]
    write_run(tmp_path, "a", found)
    (row,) = tables(tmp_path)["original_task"].rows
    assert row[0] == Cell("science", "report")
    assert row[3].text == "45.0"
