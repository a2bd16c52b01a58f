"""How far a sweep is, and when it will be done."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from protocols.sweep.queue import COMPLETE, FAIL, RUNNING, WAITING, Entry

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

    def seconds_left(self) -> float | None:
        """Seconds until the last cell is done by the workers there are; None if nothing is known.

        A cell takes the finished ones' mean seconds a step for its steps; one without steps, the
        mean seconds of those without.
        """
        seconds = {entry.key: _seconds(entry) for entry in self.done}
        if not seconds:
            return None
        stepped = [entry for entry in self.done if entry.num_steps]
        steps = sum(entry.num_steps for entry in stepped)
        rate = sum(seconds[entry.key] for entry in stepped) / steps if steps else None
        other = [seconds[entry.key] for entry in self.done if not entry.num_steps]
        typical = fmean(other) if other else fmean(seconds.values())

        def expected(entry: Entry) -> float:
            return entry.num_steps * rate if entry.num_steps and rate is not None else typical

        left = sum(map(expected, (*self.running, *self.waiting)))
        return left / max(1, len(self.running))


def line_of(progress: Progress, entry: Entry) -> str:
    """One line for a worker that has finished a cell."""
    done = f"{len(progress.done)} of {len(progress.entries)} done in {duration(_seconds(entry))}"
    failed = f", {len(progress.failed)} failed" if progress.failed else ""
    left = progress.seconds_left()
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


def _seconds(entry: Entry) -> float:
    if entry.started is None or entry.ended is None:
        return 0.0
    return (entry.ended - entry.started).total_seconds()
