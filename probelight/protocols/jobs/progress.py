"""How far a sweep is, and when it will be done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean

from probelight.protocols.jobs.cells.standing import Standing, State, in_vain

MINUTE, HOUR, DAY = 60, 3600, 86400


class Progress:
    """Numbers of cells and the time left.

    Args:
        standings: How each cell stands.

    Attributes:
        in_vain: Cells that are not started, as something that they need has failed for good.
    """

    def __init__(self, standings: Iterable[Standing]) -> None:
        self.standings = tuple(standings)
        self.done, self.running, self.waiting, self.failed = (
            [one for one in self.standings if one.state is state]
            for state in (State.DONE, State.RUNNING, State.WAITING, State.FAILED)
        )
        lost = in_vain([one.cell for one in self.waiting], {one.cell.key for one in self.failed})
        self.in_vain = [one for one in self.waiting if one.cell.key in lost]
        self.waiting = [one for one in self.waiting if one.cell.key not in lost]

    def seconds_left(self, at_once: int | None = None) -> float | None:
        """Seconds until the last cell is done; None if nothing is known.

        Args:
            at_once: Cells that run at once; as many as run now when left out.
        """
        left = {one.cell.key: one.cell.num_steps for one in (*self.running, *self.waiting)}
        seconds = self.seconds_of(left)
        if seconds is None or not left:
            return seconds
        return seconds / max(1, min(at_once or len(self.running), len(left)))

    def seconds_of(self, steps: Mapping[str, int]) -> float | None:
        """Seconds that cells with so many steps take one by one; None if nothing is known.

        A cell with steps takes the finished ones' mean seconds a step; one without, the mean
        seconds of those without.
        """
        known = [(one.cell.num_steps, one.seconds) for one in self.done if one.seconds is not None]
        if not known:
            return None
        stepped = [(n, seconds) for n, seconds in known if n]
        plain = [seconds for n, seconds in known if not n]
        typical = fmean(plain or [seconds for _, seconds in known])
        rate = None
        if stepped:
            rate = sum(seconds for _, seconds in stepped) / sum(n for n, _ in stepped)
        return sum(n * rate if n and rate is not None else typical for n in steps.values())


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


def counted(number: int, noun: str) -> str:
    """1 cell, 2 cells."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def last_line(text: str) -> str:
    """The last line with something on it: of a traceback, the error itself."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
