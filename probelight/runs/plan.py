"""The plan of a sweep, the status of its jobs in their run folders, and which jobs may start next.

OUTPUT_DIR/planned.json   the last plan; running it needs no config
runs/<key>/result.json    the job is finished
runs/<key>/attempt.json   who runs it, or did last: fencing.py
runs/<key>/failed.json    how often it has failed since the sweep was last started, and the error
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Container, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from probelight.io.atomic import write_text_atomic
from probelight.io.documents import read_json
from probelight.io.errors import UsageError
from probelight.io.settings import typed
from probelight.io.wandb import WandbSettings
from probelight.results.record import RESULT, RunRecord
from probelight.results.run_folder import PLANNED, RunFolder, check_format
from probelight.runs.context import RunContext
from probelight.runs.fencing import Attempt, last_driver, newest_attempt, read_if_there
from probelight.runs.settings import RaySettings, TrainerSettings
from probelight.runs.spec import Job, spec_type

Settings = TypeVar("Settings", TrainerSettings, WandbSettings, RaySettings)

FAILED = "failed.json"
ERROR_NAME = "error.txt"


@dataclass(frozen=True)
class PlannedJob:
    """A job as planned.json keeps it: a `Job` without its spec, which is in its run folder."""

    key: str
    spec_type: str  # the class that reads the run's config.yaml
    needs: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    num_steps: int = 0

    @staticmethod
    def of(job: Job) -> PlannedJob:
        """Return the part of a job that a plan keeps."""
        return PlannedJob(job.key, spec_type(job.spec), job.needs, job.follows, job.num_steps)


@dataclass(frozen=True)
class StoredPlan:
    """The jobs of a plan and the settings to run them with."""

    context: RunContext
    engine: RaySettings
    jobs: tuple[PlannedJob, ...] = ()  # reports leave out what an earlier plan left in the folder
    id: str = field(default_factory=lambda: secrets.token_hex(8))  # group of its runs in W&B

    def keep(self, folder: Path) -> None:
        """Write the plan into the folder of the sweep, under the id that the folder has."""
        earlier = StoredPlan.read(folder) if (folder / PLANNED).exists() else None
        engine = replace(self.engine, take_over=False)  # of one run, never of a plan
        content = {
            "id": earlier.id if earlier else self.id,
            "engine": asdict(engine),
            **self.context.to_json(),
            "runs": [asdict(job) for job in self.jobs],
        }
        write_text_atomic(folder / PLANNED, json.dumps(content, indent=1) + "\n")

    @staticmethod
    def read(folder: Path) -> StoredPlan:
        """Read the last plan of a folder; UsageError if there is none or it is damaged."""
        check_format(folder)
        path = folder / PLANNED
        try:
            content = read_json(path)
            jobs = [typed(PlannedJob, job, "runs") for job in content["runs"]]
            engine = RaySettings(**content["engine"])
            return StoredPlan(RunContext.from_json(content), engine, tuple(jobs), content["id"])
        except FileNotFoundError:
            raise UsageError(
                f"{folder} has no plan; make one with `train.py sweep plan --config ... "
                f"--output_dir {folder}`"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"{path} is damaged ({error}); remove it and rerun `train.py sweep plan`"
            ) from error

    def under(self, context: RunContext, engine: RaySettings) -> StoredPlan:
        """Return the plan with the user's settings where those are not the default."""

        def merged(planned: Settings, user: Settings) -> Settings:
            default = type(user)()
            values = {item.name: getattr(user, item.name) for item in fields(user)}
            changed = {n: v for n, v in values.items() if v != getattr(default, n)}
            return replace(planned, **changed)

        changed = RunContext(
            merged(self.context.trainer, context.trainer),
            merged(self.context.wandb, context.wandb),
            self.context.mirror if context.mirror is None else context.mirror,
            force=self.context.force or context.force,
        )
        return replace(self, context=changed, engine=merged(self.engine, engine))


def plan_jobs(output_dir: Path, jobs: Iterable[Job]) -> tuple[PlannedJob, ...]:
    """Make the run folders of jobs, with their configs, and return the planned jobs."""
    planned = []
    for job in jobs:
        RunFolder(output_dir / "runs", job.spec.name, job.spec.to_config())
        planned.append(PlannedJob.of(job))
    return tuple(planned)


def wandb_group(folder: Path, wandb: WandbSettings) -> str:
    """Return the group in W&B of all runs of a sweep and of its report."""
    return wandb.group or f"{folder.resolve().name}-{StoredPlan.read(folder).id}"


@dataclass(frozen=True)
class Failure:
    """Why a job has no result."""

    times: int
    tries: int  # how often it may fail
    error: str  # the traceback, or what replaces it

    @property
    def is_final(self) -> bool:
        """Whether the job is not tried again before the next `sweep run`."""
        return self.times >= self.tries

    @staticmethod
    def read(folder: Path) -> Failure | None:
        """Read the failure in a run folder; None if there is none, ValueError if damaged."""
        try:
            return read_if_there(Failure, folder / FAILED)
        except ValueError as error:
            raise ValueError(f"{error}; remove it") from error

    def keep(self, folder: Path) -> None:
        """Write it into a run folder, if the folder is there and the disk has room."""
        with suppress(OSError):  # a full disk: it is still said, and tried again
            if folder.is_dir():
                write_text_atomic(folder / FAILED, json.dumps(asdict(self)) + "\n")
                write_text_atomic(folder / ERROR_NAME, self.error)


class State(StrEnum):
    """State of a job."""

    DONE = "done"
    RUNNING = "running"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True)
class JobStatus:
    """State of a job, its newest attempt, and how it failed since the sweep was last started."""

    job: PlannedJob
    state: State
    attempt: Attempt | None = None
    failure: Failure | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds of the attempt that finished it; None if they are not known."""
        if self.state is not State.DONE or self.attempt is None or self.attempt.left is None:
            return None
        return self.attempt.left - self.attempt.since


def is_finished(runs_dir: Path, key: str) -> bool:
    """Return whether a job has a result."""
    return (runs_dir / key / RESULT).exists()


def statuses(output_dir: Path, jobs: Iterable[PlannedJob]) -> list[JobStatus]:
    """Return the status of each job of a folder, from its files alone."""
    driver = last_driver(output_dir)
    number = None if driver is None or driver.is_gone else driver.number
    return [status_of(output_dir / "runs", job, number) for job in jobs]


def status_of(runs_dir: Path, job: PlannedJob, driver: int | None) -> JobStatus:
    """Return a job's status while this driver is at work; one with a damaged file has failed."""
    folder, finished = runs_dir / job.key, is_finished(runs_dir, job.key)
    try:
        attempt, failure = newest_attempt(folder), Failure.read(folder)
    except ValueError as error:
        attempt, failure = None, None if finished else Failure(1, 1, str(error))
    if failure is not None and failure.is_final:  # of a damaged result too
        return JobStatus(job, State.FAILED, attempt, failure)
    if finished:
        return JobStatus(job, State.DONE, attempt)
    runs = attempt is not None and attempt.left is None and attempt.driver == driver
    return JobStatus(job, State.RUNNING if runs else State.WAITING, attempt, failure)


def blocked(
    waiting: Iterable[PlannedJob], failed: Container[str], missing: Container[str] = ()
) -> dict[str, tuple[str, ...]]:
    """Return the waiting jobs that will never start, by key, each with the keys that it waits for.

    These have failed for good, are `missing` (neither planned nor finished), or are blocked too.
    """
    awaited_by_key: dict[str, tuple[str, ...]] = {}
    jobs, num_blocked = list(waiting), -1
    while len(awaited_by_key) > num_blocked:  # what waits for a blocked job is blocked too
        num_blocked = len(awaited_by_key)
        for job in [job for job in jobs if job.key not in awaited_by_key]:
            awaited = [key for key in job.needs if key in failed]
            earlier_keys = (*job.needs, *job.follows)
            awaited += [key for key in earlier_keys if key in awaited_by_key or key in missing]
            if awaited:
                awaited_by_key[job.key] = tuple(awaited)
    return awaited_by_key


class Schedule:
    """The jobs of a folder that are to be run, each until it has a result or has failed for good.

    What failed in an earlier run is tried again: its `failed.json` goes. A job whose result is
    damaged has failed for good: the file may be of use to the user, so it stays.
    """

    def __init__(self, runs_dir: Path, jobs: Iterable[PlannedJob], max_retries: int) -> None:
        self.runs_dir, self.max_retries = runs_dir, max_retries
        self.jobs = {job.key: job for job in jobs}
        self.started: set[str] = set()
        self.done: set[str] = set()
        self.failed: dict[str, Failure] = {}
        self._times: dict[str, int] = {}
        for key in self.jobs:
            (runs_dir / key / FAILED).unlink(missing_ok=True)
            path = runs_dir / key / RESULT
            if not path.exists():
                continue
            try:
                RunRecord.read(path)
                self.done.add(key)
            except (ValueError, OSError) as error:
                advice = f"or remove only {path}, and `sweep run` computes the run again"
                self.failed[key] = Failure(1, 1, f"{error}; {advice}")
                self.failed[key].keep(path.parent)
        awaited = {key for job in self.jobs.values() for key in (*job.needs, *job.follows)}
        unplanned = awaited - self.jobs.keys()
        self._finished_earlier = {key for key in unplanned if is_finished(runs_dir, key)}
        self._missing = unplanned - self._finished_earlier

    def ready(self) -> list[PlannedJob]:
        """Return the jobs that may start now, in the order of the plan."""
        finished = self.done | self._finished_earlier
        ended = finished | self.failed.keys()
        return [
            job
            for job in self._open()
            if finished.issuperset(job.needs) and ended.issuperset(job.follows)
        ]

    def blocked(self) -> dict[str, tuple[str, ...]]:
        """Return the jobs that will never start, by key, each with the keys that it waits for."""
        return blocked(self._open(), self.failed, self._missing)

    def finish(self, key: str) -> None:
        """Note that a job has its result."""
        self.started.discard(key)
        self.done.add(key)

    def fail(self, key: str, error: str, *, is_final: bool = False) -> Failure:
        """Note that a job has failed; if not `is_final` it may, but for too often, start again."""
        self.started.discard(key)
        self._forget_removed()  # it may have needed one of them
        self._times[key] = self._times.get(key, 0) + 1
        tries = self._times[key] if is_final else self.max_retries + 1
        failure = Failure(self._times[key], tries, error)
        if failure.is_final:
            self.failed[key] = failure
        failure.keep(self.runs_dir / key)
        return failure

    @property
    def is_over(self) -> bool:
        """Whether nothing is under way and nothing may start."""
        if self.started or self.ready():
            return False
        self._forget_removed()
        return not self.ready()

    def _forget_removed(self) -> None:
        """Open the jobs again whose result somebody has removed meanwhile."""
        self.done = {key for key in self.done if is_finished(self.runs_dir, key)}

    def _open(self) -> list[PlannedJob]:
        closed = self.done | self.started | self.failed.keys()
        return [job for key, job in self.jobs.items() if key not in closed]
