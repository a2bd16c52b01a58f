from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from reports.kit.layout import Cell, Table
from reports.tables import tables
from results.load import load_results

WriteRun = Callable[..., Path]


def made(folder: Path) -> dict[str, Table]:
    return {table.name: table for table in tables(load_results(folder))}


def labels(table: Table) -> list[str]:
    return [f"{c.group}: {c.label}" if c.group else c.label for c in table.columns]


def test_demo_makes_the_tables_it_has_numbers_for(demo_folder: Path) -> None:
    assert list(made(demo_folder)) == [
        "zero_shot",
        "predicted_shares",
        "zero_shot_parts",
        "curve_summary_age_comparison",
        "curve_medals",
        "learning_curve",
        "inoculation",
    ]


def test_every_row_is_as_long_as_its_heading(demo_folder: Path) -> None:
    for table in made(demo_folder).values():
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_zero_shot_row_by_hand(demo_folder: Path) -> None:
    table = made(demo_folder)["zero_shot"]
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
    table = made(tmp_path)["zero_shot"]
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
    assert "m1: ties %" not in labels(made(tmp_path)["zero_shot"])
    found = rows.zero_shot("q", 5, 10, 2, model="m1")
    write_run(tmp_path, "b", [*found, {**found[1], "metric": "tied_share", "value": 0.3}])
    table = made(tmp_path)["zero_shot"]
    assert labels(table)[3:] == [
        "m1: accuracy %", "m1: macro %", "m1: n", "m1: against chance", "m1: ties %"
    ]  # fmt: skip
    assert [row[-1].text for row in table.rows] == ["0.0", "30.0"]
    assert [record["tied_share"] for record in table.records] == [0.0, 0.3]


def test_other_ways_of_scoring_are_named(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("p", 5, 10, 5)
    write_run(tmp_path, "a", [{**row, "mode": "pseudo_log_likelihood"} for row in found])
    assert made(tmp_path)["zero_shot"].rows[0][0] == Cell("p", "dev, pseudo log likelihood")


def test_predicted_shares(demo_folder: Path) -> None:
    table = made(demo_folder)["predicted_shares"]
    shares = [row for row in table.rows if row[0].text == "always_never"]
    assert [row[2].text for row in shares] == ["50.0", "12.5", "12.5", "12.5", "12.5"]


def test_curve_row_by_hand(demo_folder: Path) -> None:
    table = made(demo_folder)["learning_curve"]
    row = dict(zip(labels(table), table.rows[1], strict=True))
    assert row["N"] == Cell("62")
    assert row["trained"] == Cell("mlp", "rate 0.001")
    # (262 + 281) / 1000; seeds 52.4 and 56.2
    assert row["standard: accuracy %"].text == "54.3"
    assert row["standard: over seeds"] == Cell("52.4–56.2")
    assert row["standard: seeds"] == Cell("2")
    assert row["no language: accuracy %"].text == "51.1"
    assert row["no language: standard − control"] == Cell("+3.2", "+2.6 to +3.8")
    untrained = dict(zip(labels(table), table.rows[0], strict=True))
    assert untrained["standard: over seeds"] == Cell("–")
    assert untrained["no language: standard − control"] == Cell("−1.4", "one seed")


def test_inoculation_row_by_hand(demo_folder: Path) -> None:
    table = made(demo_folder)["inoculation"]
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
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for seed in (1, 2):
        found = rows.inoculation(
            dose=100,
            seed=seed,
            probe_correct=(200, 300),
            original_correct=(100, 98),
            selection=[(0.2, 0.2), (0.3, 0.2)],
            epoch=1,
            datasets={"easy": (300, 60, 60), "hard": (200, 40, 38)},
        )
        write_run(tmp_path, f"s{seed}", found, cost_interpretable=False)
    found_tables = made(tmp_path)
    for name in ("inoculation", "inoculation_seeds", "inoculation_parts"):
        table = found_tables[name]
        (place,) = (
            place
            for place, column in enumerate(table.columns)
            if "cost, points" in (column.label, column.group) and column.label != "over seeds"
        )
        assert {row[place] for row in table.rows} == {Cell("not interpretable")}, name


def test_seeds_and_unchosen_rates(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for seed, after in ((1, 300), (2, 400)):
        for rate, score in ((1e-5, 0.4), (5e-5, 0.3)):
            found = rows.inoculation(
                dose=100,
                seed=seed,
                learning_rate=rate,
                probe_correct=(200, after),
                original_correct=(300, 290),
                selection=[(0.2, 0.6), (score, 0.5)],
                epoch=1,
            )
            write_run(tmp_path, f"{seed}-{rate}", found)
    found_tables = made(tmp_path)
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
        found = rows.inoculation(
            dose=dose,
            seed=seed,
            probe_correct=(200, 300),
            original_correct=(300, 290),
            selection=[(0.2, 0.6), (0.3, 0.6)],
            epoch=1,
        )
        part = {**found[-1], "subset": "group not in train", "split": "report"}
        if untouched is not None:
            found += [
                rows.accuracy(10, 100, **{**part, "metric": "probe_accuracy_before"}),
                rows.accuracy(untouched, 100, **{**part, "metric": "probe_accuracy"}),
            ]
        write_run(tmp_path, f"{dose}-{seed}", found)
    table = made(tmp_path)["inoculation_seeds"]
    group = "probe, group not in train %"
    assert [c.label for c in table.columns if c.group == group] == ["before", "after"]
    assert "no relative in the train file" in table.note
    first, second = table.rows
    assert first[-2:] == (Cell("10.0"), Cell("25.0"))
    assert second[-2:] == (Cell("–"), Cell("–"))
    assert table.records[0]["probe_accuracy_group_not_in_train"] == pytest.approx(0.25)
    assert "probe_accuracy_group_not_in_train" not in table.records[1]


def test_parts_of_an_inoculation(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.inoculation(
        dose=100,
        probe_correct=(200, 300),
        original_correct=(300, 290),
        selection=[(0.2, 0.6), (0.3, 0.6)],
        epoch=1,
        datasets={"easy": (300, 150, 120)},
    )
    clean = {**found[-1], "subset": "group not in train", "split": "report"}
    found += [
        rows.accuracy(10, 100, **{**clean, "metric": "probe_accuracy_before"}),
        rows.accuracy(20, 100, **{**clean, "metric": "probe_accuracy"}),
    ]
    write_run(tmp_path, "a", found)
    table = made(tmp_path)["inoculation_parts"]
    texts = [[cell.text for cell in row[3:]] for row in table.rows]
    assert texts == [
        ["original task", "easy", "50.0", "40.0", "300", "+10.0"],
        ["probe", "group not in train", "10.0", "20.0", "100", "–"],
    ]


def test_large_clusters_are_one_row_of_the_parts(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    found = rows.inoculation(
        dose=100,
        probe_correct=(200, 300),
        original_correct=(300, 290),
        selection=[(0.2, 0.6), (0.3, 0.6)],
        epoch=1,
    )
    report = {**found[-1], "split": "report"}
    for size, before, after, number in ((4, 8, 16, 40), (5, 3, 4, 12), (7, 0, 2, 5), (12, 0, 0, 3)):
        own = {**report, "subset": f"clusters of {size}"}
        found += [
            rows.accuracy(before, number, **{**own, "metric": "strict_cluster_accuracy_before"}),
            rows.accuracy(after, number, **{**own, "metric": "strict_cluster_accuracy"}),
        ]
    facts = {"original_task": "definitions", "selection": "paper", "report_split": "dev"}
    write_run(tmp_path, "a", found, **facts)
    table = made(tmp_path)["inoculation_parts"]
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
    found = rows.inoculation(
        dose=100,
        probe_correct=(200, 300),
        original_correct=(300, 290),
        selection=[(0.2, 0.6), (0.3, 0.6)],
        epoch=1,
        datasets={"easy": (300, 150, 120), "hard": (200, 50, 40), "plain": (100, 20, 10)},
    )
    report = {**found[-1], "split": "report", "metric": "chance_original"}
    # 50% and 25% before; of "plain" no chance was written, and the whole task was above its own.
    found += [{**report, "subset": name, "value": 0.25} for name in ("easy", "hard")]
    write_run(tmp_path, "a", found, cost_interpretable=True)
    table = made(tmp_path)["inoculation_parts"]
    costs = {row[4].text: row[-1].text for row in table.rows}
    assert costs == {"easy": "+10.0", "hard": "not interpretable", "plain": "+10.0"}
    flags = {record["part"]: record["cost_interpretable"] for record in table.records}
    assert flags == {"easy": True, "hard": False, "plain": True}


def test_original_task_reports_its_report_split(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    common = {"protocol": "original", "model": "m", "probe": "science", "epoch": 2, "seed": 1}
    found = [
        rows.accuracy(40, 100, **common, split="selection"),
        rows.accuracy(45, 100, **common, split="report"),
    ]
    write_run(tmp_path, "a", found)
    (row,) = made(tmp_path)["original_task"].rows
    assert row[0] == Cell("science", "report")
    assert row[3].text == "45.0"
