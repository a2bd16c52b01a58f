"""Results of an earlier plan of a sweep."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from probelight.reports.inoculation.facts import inoculations
from probelight.results.load import load_results
from probelight.results.run_status import PLANNED_FILE, planned_cells, unfinished_notices

WriteRun = Callable[..., Path]


def write_two(folder: Path, write_run: WriteRun, rows: SimpleNamespace, **facts: str) -> None:
    """Two runs of the same names, dose and seed; the second is the better one."""
    for name, right in (("first", 440), ("second", 500)):
        selection = [(0.2, 0.6), (right / 1000, 0.58)]
        found = rows.inoculation(probe_correct=(200, right), selection=selection)
        own = {key: f"{value}-{name}" for key, value in facts.items()}
        write_run(folder, name, found, original_task="definitions", **own)


def test_what_the_last_plan_does_not_hold_is_left_out_and_said(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_two(tmp_path, write_run, rows)
    [first] = (tmp_path / "runs").glob("first*")
    (tmp_path / PLANNED_FILE).write_text(json.dumps({"cells": [{"key": first.name}]}))
    results = load_results(tmp_path)
    assert [run.path for run in results.runs] == [f"runs/{first.name}"]
    assert any("second" in line and "earlier plan" in line for line in results.left_out)


@pytest.mark.parametrize("text", ["", "[]", '{"trainer": {}}'])
def test_a_plan_that_cannot_be_read_hides_nothing(tmp_path: Path, text: str) -> None:
    assert planned_cells(tmp_path) is None
    (tmp_path / PLANNED_FILE).write_text(text)
    assert planned_cells(tmp_path) is None


def test_runs_that_begin_or_report_differently_are_not_settings_of_one_choice(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_two(tmp_path / "same", write_run, rows)
    same = inoculations(load_results(tmp_path / "same"))
    assert [(cell.chosen, cell.series.setup) for cell in same] == [(False, ""), (True, "")]
    write_two(tmp_path / "other", write_run, rows, setup="a")
    other = inoculations(load_results(tmp_path / "other"))
    assert [(c.chosen, c.series.setup) for c in other] == [(True, "a-first"), (True, "a-second")]
    assert "setup a-second" in other[1].series.remarks


def planned(root: Path, name: str, *files: str) -> None:
    folder = root / "runs" / name
    folder.mkdir(parents=True)
    for file in ("config.yaml", *files):
        text = "Traceback ...\nValueError: too few examples\n" if file == "error.txt" else "{}"
        (folder / file).write_text(text, encoding="utf-8")


def test_failed_and_unfinished_runs_are_named(tmp_path: Path) -> None:
    planned(tmp_path, "a", "result.json")
    planned(tmp_path, "b", "error.txt")
    planned(tmp_path, "c")
    # Failed once, finished when it was tried again.
    planned(tmp_path, "d", "error.txt", "result.json")
    assert unfinished_notices([tmp_path], tmp_path) == [
        "runs/b: failed, so not in this report (ValueError: too few examples)",
        "runs/c: not finished yet, so not in this report",
    ]


def test_many_are_counted(tmp_path: Path) -> None:
    for number in range(20):
        planned(tmp_path, f"f{number:02}", "error.txt")
        planned(tmp_path, f"w{number:02}")
    said = unfinished_notices([tmp_path], tmp_path)
    assert len(said) == 14
    assert said[12] == "8 more runs failed; each has its error.txt"
    assert said[13].startswith("20 runs are not finished yet: runs/w00, runs/w01,")
    assert said[13].endswith("runs/w11, ...")


def test_a_commands_folder_in_a_folder_named_runs_is_not_a_run(tmp_path: Path) -> None:
    command = tmp_path / "runs" / "curve"
    for folder in (command, command / "runs" / "a"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text("{}")
    assert unfinished_notices([command], command) == [
        "runs/a: not finished yet, so not in this report"
    ]
    said = unfinished_notices([tmp_path], tmp_path)
    assert said == ["runs/curve/runs/a: not finished yet, so not in this report"]
