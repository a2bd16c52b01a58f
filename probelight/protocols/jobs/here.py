"""The executor `here`: the jobs of a plan one after the other, in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from probelight.protocols.jobs.context import RunContext
from probelight.protocols.jobs.job import Job, make_run
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
