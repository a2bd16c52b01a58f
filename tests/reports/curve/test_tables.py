from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probelight.reports.curve.findings import learned
from probelight.reports.curve.parts import curve_parts_table
from probelight.reports.curve.tables import curve_against_table, curve_table
from probelight.reports.kit.table import Cell
from probelight.results.load import load_results
from tests.fixtures.curves import shares
from tests.fixtures.report import labels, named, tables

Write = Callable[..., None]
WriteRun = Callable[..., Path]


def test_what_pre_training_gave(tmp_path: Path, write_curve_runs: Write) -> None:
    write_curve_runs(tmp_path, shares, sizes=(0, 62, 125))
    lower = {"sizes": (0, 62), "controls": ["standard"]}
    random = "embedded (random weights)"
    write_curve_runs(tmp_path, lambda *place: shares(*place) - 0.2, model=random, **lower)
    write_curve_runs(tmp_path, shares, model="MLM-baseline (word_vectors)", sizes=(0, 62, 125))
    table = curve_against_table(load_results(tmp_path))
    assert table is not None
    first, second = named(table, 0), named(table, 1)
    assert first["against"] == Cell("embedded (random weights)")
    assert first["points"] == Cell("62")
    assert first["zero-shot: difference"].text == "+20.0"
    assert first["WS: difference"].text == "+20.0"
    # The model's WS is of two points, the other's of one: they do not stand side by side.
    assert first["WS: model %"] == Cell("–")
    assert second["against"] == Cell("MLM-baseline (word_vectors)")
    assert second["WS: difference"] == Cell("0.0", "−3.2 to +3.2")
    assert second["WS: other %"].text == "90.0"
    assert table.records[0]["weighted_sum_difference"] == pytest.approx(0.2)


def test_nothing_to_hold_against_is_no_table(tmp_path: Path, write_curve_runs: Write) -> None:
    write_curve_runs(tmp_path, shares, sizes=(62,))
    assert curve_against_table(load_results(tmp_path)) is None
    assert curve_parts_table(load_results(tmp_path)) is None


def test_points_with_medians_and_stuck_runs(tmp_path: Path, write_curve_runs: Write) -> None:
    write_curve_runs(tmp_path, shares, mode="full", sizes=(62, 125), train_accuracy=0.58)
    table = curve_table(load_results(tmp_path))
    assert table is not None
    row = named(table, 0)
    assert row["standard: accuracy %"].text == "90.0"
    assert row["standard: median"] == Cell("90.0")
    assert row["standard: over seeds"] == Cell("85.0–95.0")
    # 36 of 62 right: Wilson's interval reaches down to 0.457, so chance is in it; 72 of 125
    # (0.489) as well.
    assert row["standard: at chance"] == Cell("3 of 3")
    assert row["no language: standard − control"].text == "+40.0"
    assert row["no language: standard − control"].detail.count("to") == 1
    record = table.records[0]
    assert record["num_at_chance"] == 3
    assert record["seed_sd"] == pytest.approx(0.05)


def test_training_that_worked_is_not_stuck(tmp_path: Path, write_curve_runs: Write) -> None:
    write_curve_runs(tmp_path, shares, mode="full", sizes=(62,), train_accuracy=0.9)
    table = curve_table(load_results(tmp_path))
    assert table is not None
    assert named(table, 0)["standard: at chance"] == Cell("0 of 3")


def test_curve_row_by_hand(demo_folder: Path) -> None:
    table = tables(demo_folder)["learning_curve"]
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


def test_chance_is_given_with_and_without_the_empty_choices_of_a_model(
    tmp_path: Path, write_curve_runs: Write, write_run: WriteRun
) -> None:
    """Five are scored, of which four are real."""
    write_curve_runs(tmp_path, shares, sizes=(62,), chance=0.2)
    place = {"protocol": "zero_shot", "model": "m", "probe": "age_comparison", "split": "dev"}
    alone = curve_table(load_results(tmp_path))
    assert alone is not None
    assert named(alone, 0)["chance"].text == "20.0"
    assert "chance, empty choices too" not in named(alone, 0)
    write_run(tmp_path, "padded", [{**place, "metric": "floor", "value": 0.25}])
    results = load_results(tmp_path)
    table = curve_table(results)
    assert table is not None
    assert named(table, 0)["chance"].text == "25.0"
    assert named(table, 0)["chance, empty choices too"].text == "20.0"
    said = "chance 25.0% among the real choices, 20.0% among those scored"
    assert said in " ".join(learned(results))
