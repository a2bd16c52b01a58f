"""Run a command's jobs: its folder, the runs that are missing, results.csv, the printed table.

A protocol expands its settings to jobs and makes the run of one job; all the rest is here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from probelight.io.errors import FROM_PYTHON
from probelight.io.process import is_first_process
from probelight.results.record import RESULT, FromFiles
from probelight.results.row import Row
from probelight.results.run_folder import CommandFolder, RunFolder
from probelight.runs.context import RunContext
from probelight.runs.execution import make_run, record_pending
from probelight.runs.fencing import DRIVER, refuse_driven
from probelight.runs.spec import Job


def run_command(
    output_dir: str | Path,
    config: Mapping[str, Any],
    jobs: Sequence[Job],
    context: RunContext,
    *,
    files: Iterable[FromFiles] = (),
    table: str,
) -> list[Row]:
    """Make the runs that a command's folder lacks, print their table, and return all rows.

    Args:
        output_dir: Folder of the command; given again, it goes on where it stopped.
        config: The command's resolved config; a folder made with another one is refused.
        jobs: All jobs of the command.
        context: What every job runs under.
        files: Files that the command reads; a folder made from other data is refused by name.
        table: Name of the report's section whose tables are printed.

    Raises:
        UsageError: If the folder was made with another config, or a run on Ray is at work in it.
        SystemExit: If the jobs ran on Ray and were stopped, or some failed.
    """
    check_jobs(jobs, Path(output_dir), context)
    folder = CommandFolder(Path(output_dir), config, files)
    for job in jobs:
        if folder.result(job.key):
            context.say(f"{job.title or job.key}: complete")
    run_jobs(jobs, folder, context)
    if is_first_process():
        # Only now: it imports pandas and matplotlib.
        from probelight.reports.formats import print_tables
        from probelight.reports.overview.story import print_story

        print_story(print_tables(folder.path, table))
    return folder.rows()


def check_jobs(jobs: Iterable[Job], output_dir: Path, context: RunContext) -> None:
    """Refuse what would fail after hours, in the jobs that a command's folder has no result of."""
    for job in jobs:
        if not (output_dir / "runs" / job.key / RESULT).exists():
            job.spec.check(context)


def unfinished(jobs: Iterable[Job], folder: CommandFolder) -> list[Job]:
    """Return the jobs that have no result yet."""
    return [job for job in jobs if folder.result(job.key) is None]


def run_jobs(jobs: Sequence[Job], folder: CommandFolder, context: RunContext) -> list[RunFolder]:
    """Make the runs that are not finished, write results.csv, and return the runs made now.

    Interrupted runs go on where they stopped. A job that fails ends the command; on Ray the others
    go on, each end is printed, and the command ends with SystemExit.
    """
    missing = unfinished(jobs, folder)
    if context.engine.kind == "ray" and missing:
        # Only now: it needs Ray, which is not installed with all else.
        from probelight.runs.on_ray.drive import run_plan
        from probelight.runs.plan import StoredPlan, plan_jobs

        if code := run_plan(
            folder, StoredPlan(context, context.engine, plan_jobs(folder.path, jobs))
        ):
            sys.exit(code)
        return [folder.run(job.spec.name, job.spec.to_config()) for job in missing]
    # Not above: --help of all commands is quick.
    from tqdm.auto import tqdm

    from probelight.io.progress import progress_of

    if (folder.path / DRIVER).exists():  # it has been driven by Ray
        refuse_driven(folder.path)
    quiet = replace(context, trainer=replace(context.trainer, progress_bar=False))
    record_pending(folder.runs_dir, context.wandb)
    new_runs: list[RunFolder] = []
    ordered = in_order(jobs)
    runs = {job.key: folder.run(job.spec.name, job.spec.to_config()) for job in ordered}
    # On a terminal's error stream, or in a notebook.
    total = tqdm(total=len(missing), unit="run", leave=False, disable=not FROM_PYTHON.get())
    for bar, neighbours in groupby(ordered, key=lambda job: job.bar):
        missing = unfinished(neighbours, folder)
        with progress_of(enabled=context.trainer.progress_bar and bool(bar and missing)) as shared:
            task = shared.add_task(bar, total=len(missing), unit="run")
            for job in missing:
                make_run(job.spec, runs[job.key], quiet if bar else context)
                new_runs.append(runs[job.key])
                shared.advance(task)
                total.update()
                if not bar:
                    folder.write_results()
        if bar and missing:
            folder.write_results()
    total.close()
    if not new_runs:
        folder.write_results()  # a command that was stopped before it wrote them
    return new_runs


def in_order(jobs: Iterable[Job]) -> list[Job]:
    """Return each job once, after those that it waits for, otherwise in the given order."""
    by_key = {job.key: job for job in jobs}
    ordered: dict[str, Job] = {}

    def add(job: Job) -> None:
        for key in (*job.needs, *job.follows):
            if key in by_key and key not in ordered:
                add(by_key[key])
        ordered.setdefault(job.key, job)

    for job in by_key.values():
        add(job)
    return list(ordered.values())
