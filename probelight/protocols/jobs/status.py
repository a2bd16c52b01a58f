"""What is done, running, waiting and failed, as a table on the terminal; from the folder alone."""

from __future__ import annotations

import csv
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from probelight.io.package import program
from probelight.protocols.jobs.cells.driver_claim import last_driver
from probelight.protocols.jobs.cells.standing import Cell, Standing, standings
from probelight.protocols.jobs.progress import Progress, counted, duration, last_line

_MOST_FAILED = 20  # rows; `error.txt` in the run folders has them all
_WATCH_SECONDS = 2.0  # between two looks


def show_status(output_dir: Path, cells: Sequence[Cell], watch: bool) -> None:
    """Prints the status once, or again and again until the last cell has ended."""
    console = Console()
    if not watch:
        view = status_view(output_dir, Progress(standings(output_dir, cells)))
        console.print(view, soft_wrap=True)  # a path that is broken cannot be copied
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            progress = Progress(standings(output_dir, cells))
            live.update(status_view(output_dir, progress), refresh=True)
            if not progress.running and not progress.waiting:
                return
            time.sleep(_WATCH_SECONDS)


def status_view(output_dir: Path, progress: Progress) -> Group:
    """The whole status: a line of numbers, who drives, the cells that run, those that failed."""
    left = progress.seconds_left()
    numbers = (
        f"{counted(len(progress.standings), 'cell')}: {len(progress.done)} done, "
        f"{len(progress.running)} running, {len(progress.waiting)} waiting, "
        f"{len(progress.failed)} failed"
    )
    in_vain = len(progress.in_vain)
    behind = f", {in_vain} not started behind a failed one" if in_vain else ""
    time_left = f"; about {duration(left)} left" if left else ""
    driver = _driver_line(output_dir, progress)
    parts: list[Text | Table] = [Text(numbers + behind + time_left), Text(driver)]
    if progress.running:
        rows = [_running_row(output_dir, one) for one in progress.running]
        parts.append(_table("running", ("cell", "process", "since", "how far"), rows))
    troubled = [one for one in progress.standings if one.failure and not one.failure.is_final]
    if troubled:
        title = "failed, and tried again"
        parts.append(_table(title, _FAILED_COLUMNS, list(map(_failed_row, troubled))))
    if progress.failed:
        rows = list(map(_failed_row, progress.failed))
        parts.append(_table("failed for good", _FAILED_COLUMNS, rows[:_MOST_FAILED]))
        hidden = len(rows) - _MOST_FAILED
        more = f"and {hidden} more; " if hidden > 0 else ""
        parts.append(Text(f"{more}tracebacks: {output_dir}/runs/<cell>/error.txt", style="dim"))
    return Group(*parts)


_FAILED_COLUMNS = ("cell", "times", "error")


def _driver_line(output_dir: Path, progress: Progress) -> str:
    command = f"{program()} sweep run --output_dir {shlex.quote(str(output_dir))}"
    driver = last_driver(output_dir)
    if driver is None:
        return f"not started yet: {command}"
    if not driver.is_gone:
        return f"{driver.process} has been at work on it for {_ago(driver.since)}"
    ended = "was killed" if driver.ended is None else f"ended {_ago(driver.ended)} ago"
    again = "" if len(progress.done) == len(progress.standings) else f"; to go on: {command}"
    return f"nobody is at work on it, {driver.process} {ended}{again}"


def _ago(moment: float) -> str:
    return duration(max(0.0, time.time() - moment))


def how_far(run_dir: Path, num_steps: int) -> str:
    """Step and epoch that metrics.csv of a run has reached, as of the last time it was written."""
    path = run_dir / "metrics.csv"
    if not path.exists():
        return "started"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        return "started"
    step = max(int(row["step"]) for row in rows) + 1
    epochs = [int(row["epoch"]) for row in rows if row["epoch"]]
    epoch = f", epoch {max(epochs) + 1}" if epochs else ""
    return f"step {step}" + (f" of {num_steps}" if num_steps else "") + epoch


def _running_row(output_dir: Path, one: Standing) -> tuple[str, ...]:
    assert one.attempt is not None  # or it would not run
    return (
        one.cell.key,
        str(one.attempt.owner),
        f"{_ago(one.attempt.since)} ago",
        how_far(output_dir / "runs" / one.cell.key, one.cell.num_steps),
    )


def _failed_row(one: Standing) -> tuple[str, ...]:
    assert one.failure is not None  # or it would not be listed
    return one.cell.key, str(one.failure.times), last_line(one.failure.error)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
