from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probelight.protocols import cli
from probelight.reports.kit.published_files import PUBLISHED_DIR
from probelight.reports.papers.ettinger import diagnostic_rows
from probelight.results.load import load_results
from probelight.results.record import DataUse
from tests.fixtures import subsets
from tests.fixtures.diagnostics import results_of, share

WriteRun = Callable[..., Path]
BERT: dict[str, Any] = {"model": "bert-base-uncased"}


def test_table_4_with_a_model_of_ours(tmp_path: Path, write_run: WriteRun) -> None:
    shuffled = {**BERT, "perturbation": "shuffled"}
    rows = [
        share(9, 34, **BERT),
        share(5, 34, **shuffled) | {"value": 0.15, "ci_low": None, "ci_high": None},
        share(5, 34, "accuracy@1_sd", **shuffled) | {"value": 0.03},
    ]
    found = diagnostic_rows(results_of(tmp_path, write_run, rows), 4)
    assert len(found) == 24
    beside = {row.name: row for row in found if row.ours is not None}
    assert list(beside) == [
        "k = 1, %",
        "1st sentence shuffled, k = 1, %",
        "1st sentence shuffled, k = 1, sd over shuffles, points",
    ]
    gaps = [row.difference for row in beside.values()]
    assert [gap.value for gap in gaps if gap] == pytest.approx([9 / 34 - 0.235, 0.009, -0.001])
    # The paper says 34 contexts; of a mean over shuffles it gives no such number.
    assert [gap.ci_low is None for gap in gaps if gap] == [False, True, True]
    assert {row.model for row in found} == {"BERT-B", "BERT-L"}


def test_statements_of_table_12_are_told_apart(tmp_path: Path, write_run: WriteRun) -> None:
    own = {**BERT, "probe": "neg_simp"}
    rows = [
        share(18, 36, "sensitivity", **own),
        share(17, 18, "sensitivity", **own, subset=subsets.statements("affirmative")),
    ]
    found = diagnostic_rows(results_of(tmp_path, write_run, rows), 12)
    [row] = [row for row in found if row.ours is not None]
    assert (row.name, row.paper) == ("affirmative, prefers the good one, %", 1.0)


def test_another_set_of_that_name_has_no_table(tmp_path: Path, write_run: WriteRun) -> None:
    other = [DataUse(path="CPRAG-102.tsv", sha256="0" * 64)]
    write_run(tmp_path, "a", [share(9, 34, **BERT)], data=other)
    assert diagnostic_rows(load_results(tmp_path), 4) == []


def test_a_recording_is_not_known_by_its_name(tmp_path: Path, write_run: WriteRun) -> None:
    rows = [{**share(9, 34, **BERT), "role": "model", "kind": "recorded"}]
    found = diagnostic_rows(results_of(tmp_path, write_run, rows), 4)
    assert [row.printed for row in found if row.ours is not None] == [None]


@pytest.mark.paper_data
def test_released_recordings_give_the_published_numbers(tmp_path: Path, data_mirror: Path) -> None:
    recorded = data_mirror / "lm-diagnostics/recorded"
    folder = tmp_path / "out"
    command = ["diagnose", f"--recorded={recorded}", f"--mirror={data_mirror}"]
    assert cli.main([*command, f"--output_dir={folder}"]) == 0
    results = load_results(folder)
    with (PUBLISHED_DIR / "ettinger2020_diagnostics.csv").open(encoding="utf-8") as file:
        printed = [row for row in csv.DictReader(file) if row["model"] == BERT["model"]]
    for table in (4, 5, 11, 12):
        found = [row for row in diagnostic_rows(results, table) if row.ours is not None]
        wanted = [
            float(row["share"])
            for row in printed
            if row["table"] == str(table) and not row["perturbation"]
        ]
        assert [round(100 * row.measured.value, 1) for row in found if row.measured] == wanted
        assert {row.lies for row in found} == {"in our interval"}
        assert all(row.difference and abs(row.difference.value) < 0.0005 for row in found)
    assert [len(diagnostic_rows(results, table)) for table in (7, 8, 9, 14)] == [0] * 4
