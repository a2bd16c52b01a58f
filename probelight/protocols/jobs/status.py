"""What `sweep run` shows: a line for each cell that ended, under them how far it is."""

from __future__ import annotations

import csv
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich import progress as rich_progress
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from probelight.io.escaping import visible
from probelight.io.package import program
from probelight.protocols.jobs.cells import (
    Cell,
    CellStatus,
    Failure,
    Schedule,
    State,
    status_of,
    statuses,
)
from probelight.protocols.jobs.fencing import last_driver
from probelight.protocols.jobs.outlook import Progress, counted, duration, last_line


class RunView:
    """The terminal of a run.

    Args:
        bar: Show a bar with the time left; only on a terminal.
        console: Where to.

    Attributes:
        at_once: Cells that run at once.
    """

    def __init__(self, bar: bool = True, console: Console | None = None) -> None:
        self.console = console or Console(soft_wrap=True, highlight=False)
        self.at_once = 1
        self._bar = rich_progress.Progress(
            rich_progress.TextColumn("cells"),
            rich_progress.BarColumn(),
            rich_progress.MofNCompleteColumn(),
            rich_progress.TimeElapsedColumn(),
            rich_progress.TextColumn("{task.description}"),
            console=self.console,
            disable=not bar or not self.console.is_terminal,
        )
        self._left: float | None = None
        self._said = time.monotonic()

    @contextmanager
    def shown(self, schedule: Schedule) -> Iterator[None]:
        """Shows how far the cells of a schedule are, until the block ends."""
        found = statuses(schedule.runs_dir.parent, schedule.cells.values())
        self._runs_dir = schedule.runs_dir
        self._standings: dict[str, CellStatus] = {one.cell.key: one for one in found}
        self.say(f"{len(schedule.done)} of {len(schedule.cells)} cells are finished")
        with self._bar:
            self._task = self._bar.add_task(
                "", total=len(schedule.cells), completed=len(schedule.done)
            )
            yield

    def say(self, line: str) -> None:
        """Prints a line."""
        self.console.print(visible(line), markup=False)

    def tick(self) -> None:
        """Count the time left down."""
        left = None if self._left is None else self._left - (time.monotonic() - self._said)
        text = "" if left is None else f"about {duration(max(0.0, left))} left"
        self._bar.update(self._task, description=text)

    def finished(self, key: str) -> None:
        """A cell has its result."""
        now = status_of(self._runs_dir, self._standings[key].cell, driver=None)
        one = replace(now, state=State.DONE, failure=None)
        line = self._note(one)
        took = "" if one.seconds is None else f" in {duration(one.seconds)}"
        self.say(f"{key}: finished{took}. {line}")
        self._bar.advance(self._task)

    def failed(self, key: str, failure: Failure) -> None:
        """A cell has failed."""
        state = State.FAILED if failure.is_final else State.WAITING
        self._note(replace(self._standings[key], state=state, failure=failure))
        end = "for good" if failure.is_final else f"{failure.times} of {failure.tries} times"
        self.say(f"{key}: failed {end}: {last_line(failure.error)}")

    def _note(self, one: CellStatus) -> str:
        self._standings[one.cell.key] = one
        progress = Progress(self._standings.values())
        self._left, self._said = progress.seconds_left(self.at_once), time.monotonic()
        failed = f", {len(progress.failed)} failed" if progress.failed else ""
        left = f", about {duration(self._left)} left" if self._left else ""
        return f"{len(progress.done)} of {len(progress.statuses)} done{failed}{left}"


_MOST_FAILED = 20  # rows; `error.txt` in the run folders has them all
_WATCH_SECONDS = 2.0  # between two looks


def show_status(output_dir: Path, cells: Sequence[Cell], watch: bool) -> None:
    """Prints the status once, or again and again until the last cell has ended."""
    console = Console()
    if not watch:
        view = status_view(output_dir, Progress(statuses(output_dir, cells)))
        console.print(view, soft_wrap=True)  # a path that is broken cannot be copied
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            progress = Progress(statuses(output_dir, cells))
            live.update(status_view(output_dir, progress), refresh=True)
            if not progress.running and not progress.waiting:
                return
            time.sleep(_WATCH_SECONDS)


def status_view(output_dir: Path, progress: Progress) -> Group:
    """The whole status: a line of numbers, who drives, the cells that run, those that failed."""
    left = progress.seconds_left()
    numbers = (
        f"{counted(len(progress.statuses), 'cell')}: {len(progress.done)} done, "
        f"{len(progress.running)} running, {len(progress.waiting)} waiting, "
        f"{len(progress.failed)} failed"
    )
    blocked = len(progress.blocked)
    behind = f", {blocked} not started behind a failed one" if blocked else ""
    time_left = f"; about {duration(left)} left" if left else ""
    driver = _driver_line(output_dir, progress)
    parts: list[Text | Table] = [Text(numbers + behind + time_left), Text(driver)]
    if progress.running:
        rows = [_running_row(output_dir, one) for one in progress.running]
        parts.append(_table("running", ("cell", "process", "since", "how far"), rows))
    troubled = [one for one in progress.statuses if one.failure and not one.failure.is_final]
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
    again = "" if len(progress.done) == len(progress.statuses) else f"; to go on: {command}"
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


def _running_row(output_dir: Path, one: CellStatus) -> tuple[str, ...]:
    assert one.attempt is not None  # or it would not run
    return (
        one.cell.key,
        str(one.attempt.owner),
        f"{_ago(one.attempt.since)} ago",
        how_far(output_dir / "runs" / one.cell.key, one.cell.num_steps),
    )


def _failed_row(one: CellStatus) -> tuple[str, ...]:
    assert one.failure is not None  # or it would not be listed
    return one.cell.key, str(one.failure.times), last_line(one.failure.error)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
