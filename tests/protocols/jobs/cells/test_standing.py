"""How cells are, as the files of their folders say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from probelight.io.process import this_process
from probelight.protocols.jobs.cells import (
    FAILED,
    Cell,
    CellStatus,
    Failure,
    State,
    is_finished,
    statuses,
)
from probelight.protocols.jobs.fencing import Attempt, begin_attempt, drive_alone, end_attempt
from probelight.protocols.jobs.job import Job
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from tests.protocols.jobs.trivial import cells


def stand(folder: Path, *chosen: Cell) -> list[str]:
    return [one.state.value for one in statuses(folder, chosen)]


def test_a_cell_is_its_job_without_the_config() -> None:
    job = Job("a", {"x": 1}, "module:run", ("b",), 7, 100, {"rate": {"choices": [1]}}, ("c",))
    assert Cell.of(job) == Cell(job.key, "module:run", ("b",), ("c",), 7, is_drawn=True)
    assert not Cell.of(replace(job, search={})).is_drawn


def test_how_a_cell_stands_is_told_by_its_files(tmp_path: Path) -> None:
    [job] = cells(1)
    [cell], run = [Cell.of(job)], RunFolder(tmp_path / "runs", job.name, job.config)
    assert stand(tmp_path, cell) == ["waiting"]
    with drive_alone(tmp_path, take_over=False) as driver:
        attempt = begin_attempt(run.path, driver)
        assert stand(tmp_path, cell) == ["running"]
        Failure(1, 3, "once").keep(run.path)
        [running] = statuses(tmp_path, [cell])
        assert running == CellStatus(cell, State.RUNNING, attempt, Failure(1, 3, "once"))
        end_attempt(run.path, attempt)
        assert stand(tmp_path, cell) == ["waiting"]
        attempt = begin_attempt(run.path, driver)
        Failure(3, 3, "for good").keep(run.path)
        assert stand(tmp_path, cell) == ["failed"]
        (run.path / FAILED).unlink()
        assert stand(tmp_path, cell) == ["running"]
    assert stand(tmp_path, cell) == ["waiting"]  # who ran it has ended
    with drive_alone(tmp_path, take_over=False):
        assert stand(tmp_path, cell) == ["waiting"]  # another one runs, not this cell
        run.finish(RunRecord(protocol="test"))
        assert stand(tmp_path, cell) == ["done"]
    assert is_finished(tmp_path / "runs", job.key)
    assert stand(tmp_path, cell, Cell("never-planned", "module:run")) == ["done", "waiting"]


def test_how_long_a_cell_took_is_known_of_the_attempt_that_finished_it() -> None:
    cell = Cell("a", "module:run")
    ended = Attempt(2, 1, this_process(), since=100.0, left=112.5)
    assert CellStatus(cell, State.DONE, ended).seconds == pytest.approx(12.5)
    assert CellStatus(cell, State.FAILED, ended).seconds is None
    assert CellStatus(cell, State.DONE, replace(ended, left=None)).seconds is None
    assert CellStatus(cell, State.DONE).seconds is None


def test_a_failure_is_final_when_all_tries_are_used_up(tmp_path: Path) -> None:
    assert [Failure(times, 3, "").is_final for times in (1, 2, 3, 4)] == [False, False, True, True]
    assert Failure(1, 1, "").is_final
    assert Failure.read(tmp_path) is None
    Failure(2, 3, 'Traceback\nValueError: "ü"\n').keep(tmp_path)
    assert Failure.read(tmp_path) == Failure(2, 3, 'Traceback\nValueError: "ü"\n')
