from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.io.wandb import WandbSettings
from probelight.results import run_folder
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.fencing import begin_attempt, drive_alone, end_attempt
from probelight.runs.plan import (
    FAILED,
    Failure,
    JobStatus,
    PlannedJob,
    Schedule,
    State,
    StoredPlan,
    plan_jobs,
    statuses,
    wandb_group,
)
from probelight.runs.settings import RaySettings, TrainerSettings
from tests.runs.trivial import cells

PLAN = StoredPlan(
    RunContext(
        TrainerSettings(accelerator="cpu", threads=1, checkpoint_every=20),
        WandbSettings(project="probes", tags=("a", "b")),
        "file:///mirror",
    ),
    RaySettings(max_retries=5),
    (
        PlannedJob("original-a", "module:original", num_steps=7),
        PlannedJob("trial-b", "module:trial", ("original-a",), ("trial-a",), 3),
    ),
)


def test_a_plan_is_read_as_it_was_and_its_folder_keeps_its_id(tmp_path: Path) -> None:
    PLAN.keep(tmp_path)
    assert StoredPlan.read(tmp_path) == PLAN
    assert wandb_group(tmp_path, WandbSettings()) == f"{tmp_path.name}-{PLAN.id}"
    assert wandb_group(tmp_path, WandbSettings(group="mine")) == "mine"
    again = StoredPlan(RunContext(), RaySettings(take_over=True, max_retries=1))
    assert again.id != PLAN.id
    again.keep(tmp_path)
    plan = StoredPlan.read(tmp_path)  # never from whom the folder was taken
    assert (plan.id, plan.engine) == (PLAN.id, RaySettings(max_retries=1))


def test_options_of_a_run_come_before_those_of_the_plan() -> None:
    assert PLAN.under(RunContext(), RaySettings()) == PLAN
    context = RunContext(TrainerSettings(threads=2), mirror="elsewhere")
    trainer = TrainerSettings(accelerator="cpu", threads=2, checkpoint_every=20)
    user = RaySettings(max_retries=0, take_over=True)
    merged = RunContext(trainer, PLAN.context.wandb, "elsewhere")
    assert PLAN.under(context, user) == replace(PLAN, context=merged, engine=user)


@pytest.mark.parametrize("text", ["", "{", "{}", '{"trainer": {"theads": 1}}', "[]"])
def test_a_damaged_plan_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / run_folder.PLANNED).write_text(text)
    with pytest.raises(UsageError, match=r"rerun `train\.py sweep plan`"):
        StoredPlan.read(tmp_path)


RUNNER = "module:run"
A, B = PlannedJob("a", RUNNER), PlannedJob("b", RUNNER, needs=("a",))


def states(folder: Path, *jobs: PlannedJob) -> list[str]:
    return [status.state.value for status in statuses(folder, jobs)]


def test_the_status_of_a_job_is_in_its_files(tmp_path: Path) -> None:
    jobs = cells(1)
    [job], run = plan_jobs(tmp_path, jobs), RunFolder.at(tmp_path / "runs" / jobs[0].key)
    assert states(tmp_path, job) == ["waiting"]
    with drive_alone(tmp_path, take_over=False) as driver:
        attempt = begin_attempt(run.path, driver)
        assert states(tmp_path, job) == ["running"]
        Failure(1, 3, "once").keep(run.path)
        [running] = statuses(tmp_path, [job])
        assert running == JobStatus(job, State.RUNNING, attempt, Failure(1, 3, "once"))
        end_attempt(run.path, attempt, 1.0)
        assert states(tmp_path, job) == ["waiting"]
        attempt = begin_attempt(run.path, driver)
        Failure(3, 3, "for good").keep(run.path)
        assert states(tmp_path, job) == ["failed"]
        (run.path / FAILED).unlink()
        assert states(tmp_path, job) == ["running"]
    assert states(tmp_path, job) == ["waiting"]  # who ran it has ended
    with drive_alone(tmp_path, take_over=False):
        assert states(tmp_path, job) == ["waiting"]  # another one runs, not this job
        (run.path / FAILED).write_text("{}")
        assert states(tmp_path, job) == ["failed"]
        run.finish(RunRecord(protocol="test"))
        assert states(tmp_path, job, PlannedJob("never-planned", RUNNER)) == ["done", "waiting"]


def finished(runs_dir: Path, key: str, text: str = "") -> None:
    path = runs_dir / key / "result.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or '{"format": 5, "protocol": "test", "rows": []}')


def ready(schedule: Schedule) -> list[str]:
    return [job.key for job in schedule.ready()]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"rows": [' + "9" * 6_000, " ", '{"rows": []}'])
def test_a_damaged_result_fails_its_job_by_name(text: str, tmp_path: Path) -> None:
    finished(tmp_path, "a", text)
    schedule = Schedule(tmp_path, [A, B], 0)
    assert ready(schedule) == []
    assert schedule.failed["a"].error.startswith(f"{tmp_path}/a/result.json: ")
    advice = f"; or remove only {tmp_path}/a/result.json, and `sweep run` computes the run again"
    assert schedule.failed["a"].error.endswith(advice)
    assert (tmp_path / "a" / "result.json").read_text() == text
    assert Failure.read(tmp_path / "a") == schedule.failed["a"]
    assert schedule.blocked() == {"b": ("a",)}


def finish(schedule: Schedule, key: str) -> None:
    finished(schedule.runs_dir, key)
    schedule.finish(key)


def test_what_needs_a_failed_or_unplanned_job_is_blocked(tmp_path: Path) -> None:
    finished(tmp_path, "earlier")
    good = PlannedJob("good", RUNNER, needs=("earlier",))
    stuck = PlannedJob("stuck", RUNNER, needs=("earlier", "gone"))
    follower_of_b = PlannedJob("behind", RUNNER, needs=("good", "b"))
    follower = PlannedJob("follower", RUNNER, follows=("b",))
    lonely = PlannedJob("lonely", RUNNER, follows=("a", "gone"))
    schedule = Schedule(tmp_path, [follower_of_b, A, B, follower, lonely, good, stuck], 0)
    schedule.fail("a", "no")
    assert ready(schedule) == ["good"]
    assert not schedule.is_over
    assert schedule.blocked() == {
        "b": ("a",),
        "behind": ("b",),
        "follower": ("b",),
        "lonely": ("gone",),
        "stuck": ("gone",),
    }
    finish(schedule, "good")
    assert schedule.is_over


def test_a_job_starts_behind_those_that_it_follows_however_they_ended(tmp_path: Path) -> None:
    finished(tmp_path, "earlier")
    follower = PlannedJob("follower", RUNNER, follows=("a", "c", "earlier"))
    schedule = Schedule(tmp_path, [follower, A, PlannedJob("c", RUNNER)], 1)
    schedule.started.add("a")
    finish(schedule, "c")
    schedule.fail("a", "once")  # it is tried again, so it has not ended
    assert ready(schedule) == ["a"]
    schedule.fail("a", "twice")
    assert ready(schedule) == ["follower"]
    assert schedule.blocked() == {}
