"""The one call by which every command has the runs of its plan made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rich.progress import track

from jobs.context import RunContext
from jobs.here import run_here
from jobs.job import Job
from results.run_folder import CommandFolder, RunFolder


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
    """
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


def unfinished(jobs: Iterable[Job], folder: CommandFolder) -> list[Job]:
    """Those of some jobs that have no result yet; looks alone, and makes nothing."""
    return [job for job in jobs if folder.result(job.key) is None]
