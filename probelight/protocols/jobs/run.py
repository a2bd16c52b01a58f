"""The executor `here`: the jobs of a plan one after the other, in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from probelight.protocols.jobs.context import RunContext
from probelight.protocols.jobs.fencing import refuse_driven
from probelight.protocols.jobs.job import Job, make_run, record_pending
from probelight.results.run_folder import CommandFolder, RunFolder

Progress = Callable[[Sequence[Job]], Iterable[Job]]


def run_here(
    plan: Iterable[Job], folder: CommandFolder, context: RunContext, progress: Progress = iter
) -> list[RunFolder]:
    """Makes the runs of a plan that are not finished, those that others need before them.

    Whatever was interrupted goes on where it stopped; a job that fails ends the plan.

    Args:
        plan: The jobs.
        folder: The command's folder.
        context: What every job is given.
        progress: Is given the jobs that are missing and gives them out again, as
            `rich.progress.track` does.

    Returns:
        The runs that were made now.

    Raises:
        RuntimeError: If a job ends without a result.
    """
    jobs = in_order(plan)
    runs = {job.key: folder.run(job.name, job.config) for job in jobs}
    missing = [job for job in jobs if runs[job.key].result() is None]
    for job in progress(missing):
        run = runs[job.key]
        make_run(job.runner, run, job.config, context)
        if run.result() is None:
            raise RuntimeError(f"{job.runner} ended without {run.result_path}")
    return [runs[job.key] for job in missing]


def in_order(plan: Iterable[Job]) -> list[Job]:
    """The jobs, each once, behind those of the plan that it waits for; else in the order given."""
    jobs = {job.key: job for job in plan}
    found: dict[str, Job] = {}

    def add(job: Job) -> None:
        for key in (*job.needs, *job.follows):
            if key in jobs and key not in found:
                add(jobs[key])
        found.setdefault(job.key, job)

    for job in jobs.values():
        add(job)
    return list(found.values())


@dataclass(frozen=True)
class Part:
    """Jobs of a plan behind which results.csv is rewritten.

    Args:
        jobs: The jobs.
        bar: What one progress bar over them says, in place of one for each of their steps.
    """

    jobs: Sequence[Job]
    bar: str = ""


def run_jobs(plan: Sequence[Part], folder: CommandFolder, context: RunContext) -> list[RunFolder]:
    """Makes the runs of a plan that are not finished, and leaves all their rows in results.csv.

    Args:
        plan: The jobs, part by part.
        folder: The command's folder.
        context: What every job is given.

    Returns:
        The runs that were made now.

    Raises:
        UsageError: If a run on Ray is at work in the folder.
        SystemExit: If the jobs ran on Ray and were stopped, or some failed; what became of each
            was said.
    """
    from rich.progress import track  # not above: --help of all commands is quick

    if context.engine.kind == "ray":
        return _on_ray([job for part in plan for job in part.jobs], folder, context)
    refuse_driven(folder.path)
    record_pending(folder.runs_dir, context.wandb)
    quiet = replace(context, trainer=replace(context.trainer, progress_bar=False))
    shown = context.trainer.progress_bar
    made: list[RunFolder] = []
    for part in plan:
        if not part.bar:
            now = run_here(part.jobs, folder, context)
        else:
            bar = partial(track, description=part.bar, transient=True, disable=not shown)
            now = run_here(part.jobs, folder, quiet, bar)
        if now or part is plan[-1]:
            folder.write_results()
        made += now
    return made


def _on_ray(jobs: Sequence[Job], folder: CommandFolder, context: RunContext) -> list[RunFolder]:
    # Only now: it needs Ray, which is not installed with all else.
    from probelight.protocols.jobs.on_ray.drive import drive
    from probelight.protocols.jobs.plan import Planned, plan_jobs
    from probelight.protocols.jobs.status import RunView

    missing = unfinished(jobs, folder)
    plan = plan_jobs(folder.path, jobs)
    quiet = replace(context, trainer=replace(context.trainer, progress_bar=False))
    view = RunView(context.trainer.progress_bar)
    code = drive(folder.path, Planned(quiet, context.engine, plan.cells), view) if missing else 0
    if code in (0, 1):  # else it was stopped, and time is short
        record_pending(folder.runs_dir, context.wandb)
    folder.write_results()
    if code:
        sys.exit(code)
    return [folder.run(job.name, job.config) for job in missing]


def unfinished(jobs: Iterable[Job], folder: CommandFolder) -> list[Job]:
    """Those of some jobs that have no result yet; looks alone, and makes nothing."""
    return [job for job in jobs if folder.result(job.key) is None]
