from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probelight.reports.papers.beside import Beside
from probelight.reports.papers.talmor import curve_rows, people
from probelight.results.load import load_results
from probelight.results.record import DataUse
from tests.fixtures.curves import shares

Write = Callable[..., None]
AGES: dict[str, Any] = {"model": "roberta-large", "train": "train of age_comparison"}


def by_number(rows: list[Beside], model: str = "RoBERTa-L") -> dict[str, Beside]:
    return {row.name: row for row in rows if row.model == model}


def test_people_of_table_1() -> None:
    assert len(people()) == 8
    assert (people()["always_never"], people()["multihop_composition"]) == (0.91, 1.0)


def test_a_curve_stands_beside_table_2(tmp_path: Path, write_curve_runs: Write) -> None:
    write_curve_runs(tmp_path, shares, **AGES)
    table = list(curve_rows(load_results(tmp_path), 2))
    # Five models of seven numbers, the baseline of five: it has no linear head.
    assert len(table) == 5 * 7 + 5
    assert {row.people for row in table} == {1.0}
    found = by_number(table)
    assert {name: row.ours is not None for name, row in found.items()} == {
        "zero-shot, %": True,
        "MLP WS, %": True,
        "MLP MAX, %": True,
        "linear WS, %": False,
        "linear MAX, %": False,
        "LangSense pert, points": True,
        "LangSense nolang, points": True,
    }
    gaps = {name: row.difference.value for name, row in found.items() if row.difference}
    assert gaps == pytest.approx(
        {
            "zero-shot, %": 0.5 - 0.98,
            "MLP WS, %": 0.9 - 0.98,
            "MLP MAX, %": 0.9 - 1.0,
            "LangSense pert, points": 0.0 - 0.31,  # 0.9 against 0.95, clipped
            "LangSense nolang, points": 0.4 - 0.51,
        }
    )
    assert found["zero-shot, %"].lies == "above it"
    assert found["zero-shot, %"].num_items == 120
    assert found["MLP WS, %"].about == "rate 0.001"
    # They lead to the runs: three seeds at seven sizes, of LangSense with and without language.
    rows = {name: row.ours.rows for name, row in found.items() if row.ours is not None}
    counts = {name: len(own) for name, own in rows.items()}
    assert (counts["zero-shot, %"], counts["MLP WS, %"]) == (1, 21)
    assert counts["LangSense nolang, points"] == 42
    assert {row.num_train for row in rows["zero-shot, %"]} == {0}
    assert by_number(table, "BERT-B")["linear WS, %"].paper == 0.5


def test_another_model_stands_alone_whatever_it_is_called(
    tmp_path: Path, write_curve_runs: Write
) -> None:
    write_curve_runs(tmp_path, shares, **AGES, hub_id=None)
    rows = list(curve_rows(load_results(tmp_path), 2))
    assert len(rows) == 5 * 7 + 5 + 5
    assert all(row.printed is None for row in rows if row.ours is not None)


def test_sums_over_fewer_points_stand_beside_nothing(
    tmp_path: Path, write_curve_runs: Write
) -> None:
    write_curve_runs(tmp_path, shares, **AGES, sizes=(0, 62, 125))
    rows = list(curve_rows(load_results(tmp_path), 2))
    assert [row.name for row in rows if row.ours is not None] == ["zero-shot, %"]


@pytest.mark.parametrize(
    "other",
    [
        {"data": [DataUse(path="age_comparison_dev.jsonl.gz", sha256="0" * 64)]},
        {"split": "test"},
        {"probe": "age_small"},
        {"model": "roberta-large (random weights)"},
    ],
)
def test_other_items_and_random_weights_have_no_table(
    other: dict[str, Any], tmp_path: Path, write_curve_runs: Write
) -> None:
    write_curve_runs(tmp_path, shares, **{**AGES, **other})
    assert list(curve_rows(load_results(tmp_path), 2)) == []


def test_baselines_with_other_vectors_have_no_difference(
    tmp_path: Path, write_curve_runs: Write
) -> None:
    for vectors in ("glove.6B.50d", "word_vectors"):
        own = {**AGES, "model": f"MLM-baseline ({vectors})"}
        write_curve_runs(tmp_path, shares, **own)
    rows = list(curve_rows(load_results(tmp_path), 2))
    known = by_number(rows, "MLM-baseline")["MLP WS, %"]
    assert known.difference is not None
    assert known.difference.value == pytest.approx(0.9 - 0.58)
    other = by_number(rows, "MLM-baseline (word_vectors)")["MLP WS, %"]
    assert (other.measured is None, other.paper) == (False, None)


def test_zero_shot_needs_no_curve(
    tmp_path: Path, write_run: Callable[..., Path], rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("always_never", 28, 280, 5, model="bert-base-uncased")
    write_run(tmp_path, "a", found)
    [row] = [row for row in curve_rows(load_results(tmp_path), 5) if row.ours is not None]
    assert (row.name, row.paper, row.people) == ("zero-shot, %", 0.11, 0.91)
    assert row.difference is not None
    assert row.difference.value == pytest.approx(-0.01)
    assert row.lies == "in our interval"


def test_a_part_of_the_released_items_is_not_the_papers(
    tmp_path: Path, write_run: Callable[..., Path], rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("always_never", 10, 100, 5, model="bert-base-uncased")
    sha256 = "189176c7b103b6ed535e1c13af95accc480456263dc3b3817711eab2839d5379"
    data = [DataUse(path="dev.jsonl", sha256=sha256, num_items=280)]
    write_run(tmp_path, "a", found, data=data, counts={"items": 280, "scored": 100})
    assert list(curve_rows(load_results(tmp_path), 5)) == []


def test_other_scores_than_at_the_mask_stand_alone(
    tmp_path: Path, write_run: Callable[..., Path], rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("always_never", 28, 280, 5, model="bert-base-uncased")
    write_run(tmp_path, "a", [{**row, "mode": "pseudo_log_likelihood"} for row in found])
    [row] = [row for row in curve_rows(load_results(tmp_path), 5) if row.ours is not None]
    assert (row.printed, row.model) == (None, "bert-base-uncased")
    assert row.about == "by pseudo log likelihood"


def test_a_file_that_was_read_beside_does_not_make_a_part_the_whole(
    tmp_path: Path, write_run: Callable[..., Path], rows: SimpleNamespace
) -> None:
    found = rows.zero_shot("multihop_composition", 30, 100, 3)
    sha256 = "0e7d785b4a6092cb2b74f88ca93c99cc6ff145b4771fce16806722ffd619c812"
    released = DataUse(path="dev.jsonl.gz", sha256=sha256, num_items=500)
    data = [released, DataUse(path="imported.csv", sha256="0" * 64, num_items=100)]
    write_run(tmp_path, "a", found, data=data, counts={"items": 100, "scored": 100})
    assert list(curve_rows(load_results(tmp_path), 11)) == []
