"""Which cells a sweep has, in what order, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.io.errors import UsageError
from probelight.io.ranges import RangeError
from probelight.protocols.inoculation.settings import CELL
from probelight.protocols.inoculation.sweep import (
    DEFAULT_DOSES,
    DEFAULT_EXTRAS,
    SweepGrid,
    sweep_jobs,
)
from tests.fixtures.checkout import ROOT
from tests.protocols.inoculation.conftest import kinds, under, with_a_line_less

BATCHES = ("trials_at_once", "num_trials")


def test_a_grid_is_its_settings_and_what_they_share(grid: SweepGrid, mirror: str) -> None:
    cells = sweep_jobs(grid, under(mirror))
    # One original task, one scoring before, then 2 rates x 2 extras and one choice for each dose.
    settings = ["inoculation_cell"] * 4 + ["inoculation"]
    assert kinds(cells) == ["original", "before", *settings, *settings]
    keys = [cell.key for cell in cells]
    assert len(set(keys)) == len(keys)
    assert all(
        {*cell.needs, *cell.follows} <= set(keys[:place]) for place, cell in enumerate(cells)
    )
    # The choice is made among those that are finished: one that failed does not stop it.
    assert (list(cells[6].needs), cells[6].follows) == (keys[2:6], ())
    # 8 examples are one step of 8, balanced with as many two; 12 are two steps, balanced three.
    assert [cell.num_steps for cell in cells[2:6]] == [1, 1, 2, 2]
    assert [cell.num_steps for cell in cells[7:11]] == [2, 2, 3, 3]


def test_a_second_row_shares_the_original_task(grid: SweepGrid, mirror: str) -> None:
    [row] = grid.rows
    more = replace(grid, rows=[row, replace(row, doses=[8, 16])])
    alone, both = (sweep_jobs(g, under(mirror)) for g in (grid, more))
    assert [c.key for c in both[: len(alone)]] == [c.key for c in alone]
    assert kinds(both[len(alone) :]) == ["inoculation_cell"] * 4 + ["inoculation"]


def test_another_data_file_makes_other_cells(grid: SweepGrid, mirror: str, tmp_path: Path) -> None:
    copy = tmp_path / "mirror"
    with_a_line_less(mirror, copy, "second")
    before, after = (
        {c.name: c.key for c in sweep_jobs(grid, under(m))} for m in (mirror, str(copy))
    )
    changed = {name.split("-")[0] for name in before if before[name] != after[name]}
    assert changed == {"before", "inoculate", "chosen"}  # the original task reads another file


def test_tpe_draws_its_settings_before_a_cell_is_started(grid: SweepGrid, mirror: str) -> None:
    cells = sweep_jobs(replace(grid, search="tpe", num_trials=3), under(mirror))
    [trial, *_] = [cell for cell in cells if cell.search]
    assert kinds(cells).count("inoculation_cell") == 2 * 3
    assert trial.search["learning_rate"] == {"low": 1e-4, "high": 1e-3, "log": True}
    assert trial.search["extra"] == {"choices": ["none", "x1"]}
    assert "learning_rate" not in trial.config["setting"]


def test_trials_follow_all_earlier_batches_of_their_dose_and_seed(
    grid: SweepGrid, mirror: str
) -> None:
    tpe = replace(grid, search="tpe", num_trials=7, trials_at_once=3)
    cells = sweep_jobs(tpe, under(mirror))
    for dose in (8, 12):
        own = [c for c in cells if c.search and c.config["setting"]["dose"] == dose]
        keys = tuple(cell.key for cell in own)
        assert [cell.follows for cell in own] == [(), (), (), *[keys[:3]] * 3, keys[:6]]
        assert {cell.needs for cell in own} == {(own[0].config["before_run"],)}
    # What a trial is drawn in view of is a part of it; how many there are after it is not.
    others = [sweep_jobs(replace(tpe, **{name: 5}), under(mirror)) for name in BATCHES]
    trials = [{cell.key for cell in plan if cell.search} for plan in (cells, *others)]
    assert [len(keys) for keys in trials] == [14, 14, 10]
    assert not trials[0] & trials[1]
    assert trials[2] < trials[0]


def test_another_search_space_makes_other_trials(grid: SweepGrid, mirror: str) -> None:
    [row] = grid.rows
    tpe = replace(grid, search="tpe", num_trials=2)
    rows = [row, replace(row, learning_rates=[1e-3, 1e-5]), replace(row, extras=["none"])]
    plans = [sweep_jobs(replace(tpe, rows=[row]), under(mirror)) for row in rows]
    keys = [{cell.key for cell in plan if cell.search} for plan in plans]
    assert [len(found) for found in keys] == [4, 4, 4]
    assert len(set.union(*keys)) == 12
    chosen = [{c.key for c in plan if c.config["protocol"] == "inoculation"} for plan in plans]
    assert len(set.union(*chosen)) == 6


@pytest.mark.parametrize("empty", ["learning_rates", "extras", "doses", "seeds"])
def test_a_row_without_settings_is_refused(grid: SweepGrid, empty: str) -> None:
    with pytest.raises(RangeError, match=rf"SweepRow\.{empty} \[\]: give at least one"):
        replace(grid.rows[0], **{empty: []})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "huge"}, "rows: number 1: model is 'huge'; there are tiny"),
        ({"doses": [61]}, "rows: number 1: --dose 61: only 60"),
    ],
)
def test_unknown_names_and_too_many_examples_are_said(
    grid: SweepGrid, mirror: str, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        sweep_jobs(replace(grid, rows=[replace(grid.rows[0], **change)]), under(mirror))


def test_default_doses_and_extras_are_those_that_there_are_items_for(
    grid: SweepGrid, mirror: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task = replace(grid.originals["colours"], reserved_share=0.1)  # 8 of 80 items
    [row] = grid.rows
    given = {"doses": DEFAULT_DOSES, "extras": DEFAULT_EXTRAS, "learning_rates": [1e-5]}
    own = replace(grid, originals={"colours": task}, rows=[replace(row, seeds=[0], **given)])
    jobs = sweep_jobs(own, under(mirror))
    settings = [job.config["setting"] for job in jobs if job.config["protocol"] == CELL]
    assert [(one["dose"], one["extra"]) for one in settings] == [(60, "none")]
    assert [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines()] == [
        "number 1: doses [60], as 60 probe examples are left for doses",
        "number 1: dose 60 without extra x1, x2, as 8 original-task examples are reserved",
    ]
    own = replace(own, rows=[replace(own.rows[0], extras=["x1"], doses=[8, 9])])
    with pytest.raises(UsageError, match=r"extra x1 with dose 9 .*there are 8; give .*dose of 8"):
        sweep_jobs(own, under(mirror))


def test_planning_imports_neither_lightning_nor_optuna() -> None:
    code = (
        "import sys, probelight.protocols.inoculation.sweep, probelight.protocols.jobs.search; "
        "sys.exit(not {'torch', 'optuna'}.isdisjoint(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
