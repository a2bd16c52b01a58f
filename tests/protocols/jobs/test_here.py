"""A plan in this process: its order, what is left out, and what fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.protocols.jobs.job import Job
from probelight.protocols.jobs.run import in_order, run_jobs
from probelight.results.record import RunRecord
from probelight.results.run_folder import CommandFolder, RunFolder
from tests.protocols.jobs.harness import log_lines
from tests.protocols.jobs.trivial import RUNNER, cells


@pytest.fixture
def folder(tmp_path: Path) -> CommandFolder:
    return CommandFolder(tmp_path, {"command": "test"})


def test_what_others_wait_for_comes_before_them_and_all_else_as_planned() -> None:
    one, two, three = cells(3)
    last = Job("last", {"number": 9}, RUNNER, needs=(three.key, one.key, "elsewhere"))
    assert in_order([last, one, two, three, one]) == [three, one, last, two]
    behind = replace(last, needs=(three.key,), follows=(two.key, "elsewhere"))
    assert in_order([one, behind, two, three]) == [one, three, two, behind]


def test_a_plan_is_worked_off_and_nothing_is_done_twice(folder: CommandFolder) -> None:
    plan = cells(3)
    made = run_jobs(plan[:2], folder, RunContext())
    assert [run.key for run in made] == [job.key for job in plan[:2]]
    made = run_jobs(plan, folder, RunContext())
    assert [run.key for run in made] == [plan[2].key]
    assert log_lines(folder.path) == [job.key for job in plan]


def test_a_job_that_fails_ends_the_plan_and_the_next_start_goes_on(folder: CommandFolder) -> None:
    first, last = cells(2)
    [once] = cells(1, failing_once=True)
    plan = [first, once, replace(last, needs=(once.key,))]
    with pytest.raises(ValueError, match="not at the first try"):
        run_jobs(plan, folder, RunContext())
    assert log_lines(folder.path) == [first.key]
    assert [run.key for run in run_jobs(plan, folder, RunContext())] == [once.key, last.key]


def threads(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    return RunRecord(protocol="threads", counts={"threads": context.trainer.threads or 0})


def test_what_the_key_was_made_with_holds_and_a_run_is_timed(folder: CommandFolder) -> None:
    job = Job("threads", {"threads": 3}, threads)
    [run] = run_jobs([job], folder, RunContext(TrainerSettings(threads=1)))
    record = run.result()
    assert record is not None
    assert record.counts == {"threads": 3}
    assert record.seconds is not None
    assert 0 <= record.seconds < 60
