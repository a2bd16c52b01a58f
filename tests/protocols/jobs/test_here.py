"""A plan in this process: its order, what is left out, and what fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.protocols.jobs.job import Job
from probelight.protocols.jobs.run import in_order, run_here
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
    shown: list[Job] = []

    def progress(jobs: Any) -> Any:
        shown.extend(jobs)
        return jobs

    made = run_here(plan[:2], folder, RunContext(), progress)
    assert [run.key for run in made] == [job.key for job in plan[:2]] == [j.key for j in shown]
    made = run_here(plan, folder, RunContext())
    assert [run.key for run in made] == [plan[2].key]
    assert log_lines(folder.path) == [job.key for job in plan]


def test_a_job_that_fails_ends_the_plan_and_the_next_start_goes_on(folder: CommandFolder) -> None:
    first, last = cells(2)
    [once] = cells(1, failing_once=True)
    plan = [first, once, replace(last, needs=(once.key,))]
    with pytest.raises(ValueError, match="not at the first try"):
        run_here(plan, folder, RunContext())
    assert log_lines(folder.path) == [first.key]
    assert [run.key for run in run_here(plan, folder, RunContext())] == [once.key, last.key]


def nothing(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> None:
    """Leaves no result."""
    run.write("threads.json", context.trainer.threads)


def test_what_the_key_was_made_with_holds_and_a_job_without_a_result_is_said(
    folder: CommandFolder,
) -> None:
    job = Job("empty", {"threads": 3}, "tests.protocols.jobs.test_here:nothing")
    with pytest.raises(RuntimeError, match=r"test_here:nothing ended without .*result\.json"):
        run_here([job], folder, RunContext(TrainerSettings(threads=1)))
    assert folder.run(job.name, job.config).read("threads.json") == 3
