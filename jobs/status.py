"""What is done, running, waiting and failed, as a table on the terminal."""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jobs.progress import Progress, duration, last_line
from jobs.queue.entry import Entry
from jobs.queue.queue import Queue

_MOST_FAILED = 20  # rows; `error.txt` in the run folders has them all


def show_status(output_dir: Path, queue: Queue, watch: bool, seconds: float) -> None:
    """Prints the status once, or again and again until the last cell has ended."""
    console = Console()
    if not watch:
        console.print(status_view(output_dir, Progress(queue.entries())))
        return
    with Live(console=console, auto_refresh=False) as live:
        while True:
            progress = Progress(queue.entries())
            live.update(status_view(output_dir, progress), refresh=True)
            if not progress.running and not progress.waiting:
                return
            time.sleep(seconds)


def status_view(output_dir: Path, progress: Progress) -> Group:
    """The whole status: one line of numbers, the cells that run, the cells that failed."""
    left = progress.seconds_left()
    numbers = (
        f"{len(progress.done)} done, {len(progress.running)} running, "
        f"{len(progress.waiting)} waiting, {len(progress.failed)} failed "
        f"of {len(progress.entries)}"
    )
    time_left = f"; about {duration(left)} left" if left else ""
    parts: list[Text | Table] = [Text(numbers + time_left)]
    if progress.running:
        rows = [_running_row(output_dir, entry) for entry in progress.running]
        parts.append(_table("running", ("cell", "worker", "last seen", "how far"), rows))
    troubled = [entry for entry in progress.waiting if entry.failures]
    if troubled:
        rows = [(e.key, str(e.failures), last_line(e.error)) for e in troubled]
        parts.append(_table("failed and waiting to be tried again", _FAILED_COLUMNS, rows))
    if progress.failed:
        rows = [(e.key, str(e.failures), last_line(e.error)) for e in progress.failed]
        parts.append(_table("failed for good", _FAILED_COLUMNS, rows[:_MOST_FAILED]))
        hidden = len(rows) - _MOST_FAILED
        more = f"and {hidden} more; " if hidden > 0 else ""
        parts.append(Text(f"{more}tracebacks: {output_dir}/runs/<cell>/error.txt", style="dim"))
    return Group(*parts)


_FAILED_COLUMNS = ("cell", "times", "error")


def how_far(run_dir: Path, num_steps: int) -> str:
    """Step and epoch that metrics.csv of a run has reached, as of its last saved state."""
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


def _running_row(output_dir: Path, entry: Entry) -> tuple[str, ...]:
    return (
        entry.key,
        str(entry.owner or ""),
        f"{duration(entry.silent)} ago",
        how_far(output_dir / "runs" / entry.key, entry.num_steps),
    )


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table
