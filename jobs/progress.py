"""How far a sweep is, and when it will be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from jobs.queue.entry import COMPLETE, FAIL, RUNNING, WAITING, Entry

MINUTE, HOUR, DAY = 60, 3600, 86400


class Progress:
    """Numbers of cells and the time left.

    Args:
        entries: The newest entry of each cell.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)
        self.done, self.running, self.waiting, self.failed = (
            [entry for entry in entries if entry.state is state]
            for state in (COMPLETE, RUNNING, WAITING, FAIL)
        )

    def seconds_left(self, between: int = 0) -> float | None:
        """Seconds until the last cell is done by the workers there are; None if unknown.

        Args:
            between: Workers that are about to take a cell, besides those that run one.
        """
        left = {entry.key: entry.num_steps for entry in (*self.running, *self.waiting)}
        seconds = self.seconds_of(left)
        return None if seconds is None else seconds / max(1, len(self.running) + between)

    def seconds_of(self, steps: Mapping[str, int]) -> float | None:
        """Seconds that one worker takes for cells with so many steps; None if nothing is known.

        A cell with steps takes the finished ones' mean seconds a step; one without, the mean
        seconds of those without.
        """
        if not self.done:
            return None
        stepped = [entry for entry in self.done if entry.num_steps]
        plain = [_seconds(entry) for entry in self.done if not entry.num_steps]
        typical = fmean(plain or map(_seconds, self.done))
        rate = None
        if stepped:
            rate = sum(map(_seconds, stepped)) / sum(entry.num_steps for entry in stepped)
        return sum(n * rate if n and rate is not None else typical for n in steps.values())


def line_of(progress: Progress, entry: Entry) -> str:
    """One line for a worker that has finished a cell."""
    done = f"{len(progress.done)} of {len(progress.entries)} done in {duration(_seconds(entry))}"
    failed = f", {len(progress.failed)} failed" if progress.failed else ""
    left = progress.seconds_left(between=1)  # the one that says this
    return f"{done}{failed}" + (f", about {duration(left)} left" if left else "")


def duration(seconds: float) -> str:
    """Seconds as people say them: 12 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    if seconds < MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE} s"
    if whole < DAY:
        return f"{whole // HOUR} h {whole % HOUR // MINUTE} min"
    return f"{whole // DAY} d {whole % DAY // HOUR} h"


def last_line(text: str) -> str:
    """The last line with something on it: of a traceback, the error itself."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _seconds(entry: Entry) -> float:
    if entry.started is None or entry.ended is None:
        return 0.0
    return (entry.ended - entry.started).total_seconds()
