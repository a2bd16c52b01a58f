"""Progress of a sweep, as `sweep status` and a run show it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from rich import progress as rich_progress
from rich.console import Console, Group
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from probelight.io.escaping import brief, visible
from probelight.io.package import program
from probelight.io.progress import MINUTE, counted, duration
from probelight.results.run_folder import METRICS_FILE, read_metrics
from probelight.runs.fencing import last_driver
from probelight.runs.plan import (
    Failure,
    JobStatus,
    PlannedJob,
    Schedule,
    State,
    blocked,
    status_of,
    statuses,
)


def last_line(text: str) -> str:
    """Return the last line that is not empty: the error itself at the end of a traceback."""
    return brief(next((s for line in reversed(text.splitlines()) if (s := line.strip())), ""))


class Progress:
    """Statuses of jobs by state, and estimates of the time left.

    `blocked` are those of the waiting jobs that will never start, as one that they need has failed.
    """

    def __init__(self, statuses: Iterable[JobStatus]) -> None:
        self.statuses = tuple(statuses)
        self.done, self.running, self.waiting, self.failed = (
            [status for status in self.statuses if status.state is state]
            for state in (State.DONE, State.RUNNING, State.WAITING, State.FAILED)
        )
        failed = {status.job.key for status in self.failed}
        never = blocked([status.job for status in self.waiting], failed)
        self.blocked = [status for status in self.waiting if status.job.key in never]
        self.waiting = [status for status in self.waiting if status.job.key not in never]

    def seconds_left(self, at_once: int | None = None) -> float | None:
        """Return the seconds until the last job is done, `at_once` at a time; None if unknown."""
        steps = [status.job.num_steps for status in (*self.running, *self.waiting)]
        seconds = self.seconds_of(steps)
        if seconds is None or not steps:
            return seconds
        return seconds / max(1, min(at_once or len(self.running), len(steps)))

    def seconds_of(self, steps: Sequence[int]) -> float | None:
        """Return the seconds that jobs of so many steps take one after the other; None if unknown.

        A job with steps takes the mean seconds per step of the finished ones; a job without steps
        the mean seconds of those without.
        """
        timed = [(s.job.num_steps, s.seconds) for s in self.done if s.seconds is not None]
        if not timed:
            return None
        stepped = [(n, seconds) for n, seconds in timed if n]
        plain = [seconds for n, seconds in timed if not n]
        typical = fmean(plain or [seconds for _, seconds in timed])
        rate = None
        if stepped:
            rate = sum(seconds for _, seconds in stepped) / sum(n for n, _ in stepped)
        return sum(n * rate if n and rate is not None else typical for n in steps)


class RunView:
    """The terminal of a run: a line for each job that ended, and a bar with the time left below."""

    def __init__(self, bar: bool = True, console: Console | None = None) -> None:
        self.console = console or Console(soft_wrap=True, highlight=False)
        self.at_once = 1
        self._bar = rich_progress.Progress(
            rich_progress.TextColumn("runs"),
            rich_progress.BarColumn(),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TimeElapsedColumn(),
            rich_progress.TextColumn("{task.description}"),
            console=self.console,
            disable=not bar or not self.console.is_terminal,
        )
        self._has_lines = bar and not self.console.is_terminal
        self._left: float | None = None
        self._left_at = self._said_at = time.monotonic()

    @contextmanager
    def following(self, schedule: Schedule) -> Iterator[None]:
        """Show the progress of a schedule's jobs until the block ends."""
        job_statuses = statuses(schedule.runs_dir.parent, schedule.jobs.values())
        self._runs_dir = schedule.runs_dir
        self._statuses: dict[str, JobStatus] = {status.job.key: status for status in job_statuses}
        num_done, num_jobs = len(schedule.done), len(schedule.jobs)
        self.say(f"{num_done} of {num_jobs} runs are finished")
        with self._bar:
            self._task = self._bar.add_task("", total=num_jobs, completed=num_done)
            yield

    def say(self, line: str) -> None:
        """Print a line."""
        self.console.print(visible(line), markup=False)
        self._said_at = time.monotonic()

    def tick(self) -> None:
        """Count down the time left, without a terminal by a line for each quiet minute."""
        seconds = None if self._left is None else self._left - (time.monotonic() - self._left_at)
        text = "" if seconds is None else f"about {duration(max(0.0, seconds))} left"
        self._bar.update(self._task, description=text)
        if self._has_lines and time.monotonic() - self._said_at >= MINUTE:
            progress = Progress(self._statuses.values())
            done = f"{len(progress.done)} of {len(progress.statuses)} runs done"
            self.say(f"{done}, {text}" if text else done)

    def finished(self, key: str) -> None:
        """Report that a job has its result, and what is left."""
        current = status_of(self._runs_dir, self._statuses[key].job, driver=None)
        status = replace(current, state=State.DONE, failure=None)
        progress = self._note(status)
        took = "" if status.seconds is None else f" in {duration(status.seconds)}"
        failed = f", {len(progress.failed)} failed" if progress.failed else ""
        time_left = f", about {duration(self._left)} left" if self._left else ""
        done = f"{len(progress.done)} of {len(progress.statuses)} done"
        self.say(f"{key}: finished{took}. {done}{failed}{time_left}")
        self._bar.advance(self._task)

    def failed(self, key: str, failure: Failure) -> None:
        """Report that a job has failed."""
        state = State.FAILED if failure.is_final else State.WAITING
        self._note(replace(self._statuses[key], state=state, failure=failure))
        end = "for good" if failure.is_final else f"{failure.times} of {failure.tries} times"
        self.say(f"{key}: failed {end}: {last_line(failure.error)}")

    def _note(self, status: JobStatus) -> Progress:
        self._statuses[status.job.key] = status
        progress = Progress(self._statuses.values())
        self._left, self._left_at = progress.seconds_left(self.at_once), time.monotonic()
        return progress


_MOST_FAILED = 20  # rows; `error.txt` in the run folders has them all
_WATCH_SECONDS = 2.0  # between two looks


def show_status(output_dir: Path, jobs: Sequence[PlannedJob], watch: bool) -> None:
    """Print the status once, or with `watch` again and again until the last job has ended."""
    console = Console()
    if not watch:
        view = status_view(output_dir, Progress(statuses(output_dir, jobs)))
        console.print(view, soft_wrap=True)  # a path that is broken cannot be copied
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            progress = Progress(statuses(output_dir, jobs))
            live.update(status_view(output_dir, progress), refresh=True)
            if not progress.running and not progress.waiting:
                return
            time.sleep(_WATCH_SECONDS)


def status_view(output_dir: Path, progress: Progress) -> Group:
    """Return the whole status: numbers, the driver, the jobs that run, those that failed."""
    running = [
        {
            "run": s.job.key,
            "process": str(s.attempt.owner),
            "since": f"{_ago(s.attempt.since)} ago",
            "how far": how_far(output_dir / "runs" / s.job.key, s.job.num_steps),
        }
        for s in progress.running
        if s.attempt is not None
    ]
    tried_again, failed = (
        [
            {"run": s.job.key, "times": str(s.failure.times), "error": last_line(s.failure.error)}
            for s in progress.statuses
            if s.failure is not None and s.failure.is_final == is_final
        ]
        for is_final in (False, True)
    )
    tables = {
        "running": running,
        "failed, to be tried again": tried_again,
        "failed for good": failed[:_MOST_FAILED],
    }
    lines = _numbers_line(progress), _driver_line(output_dir, progress)
    sections: list[Text | Table] = [Text(line) for line in lines]
    for title, rows in tables.items():
        if rows:
            columns = [Column(name, overflow="fold") for name in rows[0]]
            table = Table(*columns, title=title, title_justify="left", title_style="bold")
            for row in rows:
                table.add_row(*map(Text, row.values()))
            sections.append(table)
    if failed:
        more = f"and {len(failed) - _MOST_FAILED} more; " if failed[_MOST_FAILED:] else ""
        sections.append(Text(f"{more}tracebacks: {output_dir}/runs/<run>/error.txt", style="dim"))
    return Group(*sections)


def _numbers_line(progress: Progress) -> str:
    numbers = (
        f"{counted(len(progress.statuses), 'run')}: {len(progress.done)} done, "
        f"{len(progress.running)} running, {len(progress.waiting)} waiting, "
        f"{len(progress.failed)} failed"
    )
    if progress.blocked:
        numbers += f", {len(progress.blocked)} not started because they need a failed one"
    if seconds := progress.seconds_left():
        numbers += f"; about {duration(seconds)} left"
    return numbers


def _driver_line(output_dir: Path, progress: Progress) -> str:
    command = f"{program()} sweep run --output_dir {shlex.quote(str(output_dir))}"
    driver = last_driver(output_dir)
    if driver is None:
        return f"not started yet; to start: {command}"
    if not driver.is_gone:
        return f"{driver.process} has been working on it for {_ago(driver.since)}"
    ended = "was killed" if driver.ended is None else f"ended {_ago(driver.ended)} ago"
    again = "" if len(progress.done) == len(progress.statuses) else f"; to resume: {command}"
    return f"no process is working on it; {driver.process} {ended}{again}"


def _ago(moment: float) -> str:
    return duration(max(0.0, time.time() - moment))


def how_far(run_dir: Path, num_steps: int) -> str:
    """Return the last step and epoch in the metrics.csv of a run."""
    try:
        rows = read_metrics(run_dir / METRICS_FILE)
        epochs = [int(epoch) for _, epoch, *_ in rows if epoch]
    except (OSError, ValueError):  # not there yet, or damaged
        rows = []
    if not rows:
        return "started"
    step = max(step for step, *_ in rows) + 1
    epoch = f", epoch {max(epochs) + 1}" if epochs else ""
    return f"step {step}" + (f" of {num_steps}" if num_steps else "") + epoch
