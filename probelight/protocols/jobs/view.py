"""What `sweep run` shows: a line for each cell that ended, under them how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich import progress as rich_progress
from rich.console import Console

from probelight.io.escaping import visible
from probelight.protocols.jobs.cells.standing import Failure, Standing, State, standing, standings
from probelight.protocols.jobs.progress import Progress, duration, last_line
from probelight.protocols.jobs.schedule import Schedule


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
        found = standings(schedule.runs_dir.parent, schedule.cells.values())
        self._runs_dir = schedule.runs_dir
        self._standings: dict[str, Standing] = {one.cell.key: one for one in found}
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
        """Counts the time left down."""
        left = None if self._left is None else self._left - (time.monotonic() - self._said)
        text = "" if left is None else f"about {duration(max(0.0, left))} left"
        self._bar.update(self._task, description=text)

    def finished(self, key: str) -> None:
        """A cell has its result."""
        now = standing(self._runs_dir, self._standings[key].cell, driver=None)
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

    def _note(self, one: Standing) -> str:
        self._standings[one.cell.key] = one
        progress = Progress(self._standings.values())
        self._left, self._said = progress.seconds_left(self.at_once), time.monotonic()
        failed = f", {len(progress.failed)} failed" if progress.failed else ""
        left = f", about {duration(self._left)} left" if self._left else ""
        return f"{len(progress.done)} of {len(progress.standings)} done{failed}{left}"
