"""How far a phase of a command is: a bar on a terminal, or lines that stay in a log."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import parent_process
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from rich.console import Console
from rich.progress import Progress, ProgressColumn, Task, TaskID

from probelight.io.errors import FROM_PYTHON
from probelight.io.escaping import visible
from probelight.io.files import BLOCK
from probelight.io.process import is_first_process

MINUTE, HOUR, DAY = 60, 3600, 86400
MANY = 10_000  # items that may take seconds
T = TypeVar("T")


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


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 run, 2 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def has_bars(console: Console) -> bool:
    """Return whether bars are seen on a console, which colours forced in a log do not say."""
    return console.is_jupyter or (console.is_interactive and console.file.isatty())


def progress_of(
    *columns: ProgressColumn, enabled: bool = True, console: Console | None = None
) -> Progress:
    """Return what shows how far tasks are: bars on a console (stdout) that has them, else lines.

    Nothing is shown if that is not wanted, in a call from Python, and by further processes.
    """
    console = console or Console()
    enabled &= not FROM_PYTHON.get() and is_first_process() and parent_process() is None
    if not enabled or has_bars(console):
        return Progress(*columns, console=console, transient=True, disable=not enabled)
    return LogLines()


@contextmanager
def watched_file(path: Path, title: str = "") -> Iterator[IO[bytes]]:
    """Open a file, showing on stderr how much of it was read."""
    with (
        path.open("rb") as raw,
        progress_of(console=Console(stderr=True)) as bar,
        bar.wrap_file(raw, path.stat().st_size, description=title or path.name) as stream,
    ):
        yield io.BufferedReader(  # to note each line takes longer than to read it
            cast(io.RawIOBase, stream), BLOCK
        )


def tracked_items(items: Iterable[T], num_items: int, title: str) -> Iterator[T]:
    """Yield items, showing on stderr how many there were if there are many."""
    if num_items < MANY:
        yield from items
        return
    with progress_of(console=Console(stderr=True)) as bar:
        task_id = bar.add_task(title, total=num_items, unit="item")
        for number, item in enumerate(items):
            if number % 1000 == 0:  # each time would take longer than most items do
                bar.update(task_id, completed=number)
            yield item


class LogLines(Progress):
    """Rich's progress for a log: a line when a task begins, and one every minute until it ends.

    They go to stderr: stdout is for what a command answers. A task may have a `title` for its
    lines and the `unit` of its total; where that counts something else, such as batches, also
    `num_units`, and `num_done` of them.
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

    def add_task(self, description: str, *options: Any, **fields: Any) -> TaskID:
        """Add a task, and print its first line."""
        fields = {"title": description, "num_before": fields.get("completed", 0), **fields}
        task_id = super().add_task(description, *options, **fields)
        task = self._tasks[task_id]
        with suppress(OSError):
            sys.stdout.flush()  # so that a log of both has what was printed before
        number = f": {_num_units(task)}" if task.total and "unit" in task.fields else ""
        self._say(f"{task.fields['title']}{number}")
        return task_id

    def line(self, task: Task) -> str:
        """Return how far a task is, and how much time is left."""
        seconds, text = task.elapsed or 0.0, str(task.fields["title"])
        if not task.total:
            return f"{text}: {duration(seconds)} so far"
        num_done = task.fields.get("num_done", task.completed)
        if "unit" in task.fields:
            text += f": {num_done:,} of {_num_units(task)}"
        text += f" ({num_done / task.fields.get('num_units', task.total):.0%})"
        if not (num_timed := task.completed - task.fields["num_before"]):
            return f"{text}, {duration(seconds)} so far"
        return f"{text}, about {duration(seconds * (task.remaining or 0.0) / num_timed)} left"

    def _say_each_minute(self) -> None:
        while not self._stopped.wait(MINUTE):
            for task in self.tasks:
                if not task.finished:
                    self._say(self.line(task))

    def _say(self, line: str) -> None:
        with suppress(OSError, ValueError):  # of a terminal that was closed
            print(visible(line), file=sys.stderr, flush=True)


def _num_units(task: Task) -> str:
    return counted(int(task.fields.get("num_units") or task.total or 0), task.fields["unit"])
