"""How far a phase of a command is: a bar on a terminal, or lines that stay in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task, TaskID

from probelight.io.errors import FROM_PYTHON
from probelight.io.escaping import visible
from probelight.io.process import is_first_process

MINUTE, HOUR, DAY = 60, 3600, 86400


def duration(seconds: float) -> str:
    """Return seconds as text: 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if seconds < MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    total = round(seconds)
    if total < HOUR:
        return f"{total // MINUTE} min {total % MINUTE} s"
    if total < DAY:
        return f"{total // HOUR} h {total % HOUR // MINUTE} min"
    return f"{total // DAY} d {total % DAY // HOUR} h"


def has_bars(console: Console) -> bool:
    """Return whether bars are seen on a console, which colours forced in a log do not say."""
    return console.is_jupyter or (console.is_interactive and console.file.isatty())


def progress_of(
    *columns: ProgressColumn, shown: bool = True, console: Console | None = None
) -> Progress:
    """Return what shows how far tasks are: bars on a console that has them, else `LogLines`.

    Args:
        *columns: Of the bars; by default rich's own.
        shown: Whether anything is shown; nothing is in a call from Python.
        console: Where the bars are; by default standard output.
    """
    console = console or Console()
    is_shown = shown and not FROM_PYTHON.get() and is_first_process() and parent_process() is None
    if not is_shown or has_bars(console):
        return Progress(*columns, console=console, transient=True, disable=not is_shown)
    return LogLines()


@contextmanager
def watched_file(path: Path, title: str = "") -> Iterator[IO[bytes]]:
    """Open a file, showing on stderr how much of it was read."""
    with (
        path.open("rb") as raw,
        progress_of(console=Console(stderr=True)) as bar,
        bar.wrap_file(raw, path.stat().st_size, description=title or path.name) as stream,
    ):
        yield stream


class LogLines(Progress):
    """Rich's progress for a log: a line when a task begins, and one every minute until it ends.

    They go to stderr: stdout is for what a command answers. A task may have the fields `title`, for
    its lines, `unit`, and, where its total is of something else, such as batches, `num_units`, and
    `num_done` of these.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(disable=True, auto_refresh=False, get_time=clock)
        self._stopped = threading.Event()

    def start(self) -> None:
        """Print a line every minute from now on."""
        threading.Thread(target=self._say_each_minute, name="progress", daemon=True).start()

    def stop(self) -> None:
        """Print nothing more."""
        self._stopped.set()

    def add_task(
        self,
        description: str,
        start: bool = True,
        total: float | None = 100.0,
        completed: int = 0,
        visible: bool = True,
        **fields: Any,
    ) -> TaskID:
        """Add a task, and print its first line."""
        fields |= {"before": completed}
        task_id = super().add_task(description, start, total, completed, visible, **fields)
        task = self._tasks[task_id]
        with suppress(OSError):
            sys.stdout.flush()  # so that a log of both has what was printed before
        has_unit = total and "unit" in fields
        self._say(f"{_title(task)}: {_num_units(task)}" if has_unit else _title(task))
        return task_id

    def line(self, task: Task) -> str:
        """Return how far a task is, and how much time is left."""
        seconds, text = task.elapsed or 0.0, _title(task)
        if not task.total:
            return f"{text}: {duration(seconds)} so far"
        num_done = task.fields.get("num_done", task.completed)
        share = num_done / task.fields.get("num_units", task.total)
        if "unit" in task.fields:
            text += f": {num_done:,.0f} of {_num_units(task)}"
        text += f" ({share:.0%})"
        done_since = task.completed - task.fields["before"]
        if done_since <= 0:
            return f"{text}, {duration(seconds)} so far"
        seconds_left = seconds * max(0.0, task.total - task.completed) / done_since
        return f"{text}, about {duration(seconds_left)} left"

    def _say_each_minute(self) -> None:
        while not self._stopped.wait(MINUTE):
            for task in self.tasks:
                if not task.finished:
                    self._say(self.line(task))

    def _say(self, line: str) -> None:
        with suppress(OSError, ValueError):  # of a terminal that was closed
            print(visible(line), file=sys.stderr, flush=True)


def _title(task: Task) -> str:
    return str(task.fields.get("title", task.description))


def _num_units(task: Task) -> str:
    number, unit = task.fields.get("num_units", task.total), task.fields["unit"]
    return f"{number:,.0f} {unit.removesuffix('s') if number == 1 else unit}"
