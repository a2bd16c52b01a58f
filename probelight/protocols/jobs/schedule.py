"""Which cells may start, which are tried again, and which wait in vain: no process, no Ray."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from probelight.protocols.jobs.cells.standing import (
    FAILED,
    Cell,
    Failure,
    damage,
    in_vain,
    is_finished,
)


class Schedule:
    """The cells of a folder that are to be run, each until it has a result or has failed for good.

    What failed in an earlier run is tried again: its `failed.json` goes. A cell whose result is
    damaged has failed for good: its file may be of use, and is not for us to remove.

    Args:
        runs_dir: Folder of the run folders.
        cells: All cells.
        max_retries: How often a cell that failed is tried again.

    Attributes:
        started: Keys of the cells that are under way.
        done: Keys of those that are finished.
        failed: Those that have failed for good, by key.
    """

    def __init__(self, runs_dir: Path, cells: Iterable[Cell], max_retries: int) -> None:
        self.runs_dir = runs_dir
        self.cells = {cell.key: cell for cell in cells}
        self.max_retries = max_retries
        self.started: set[str] = set()
        self.done: set[str] = set()
        self.failed: dict[str, Failure] = {}
        self._times: dict[str, int] = {}
        for key in self.cells:
            (runs_dir / key / FAILED).unlink(missing_ok=True)
            if not is_finished(runs_dir, key):
                continue
            if error := damage(runs_dir, key):
                self.failed[key] = Failure(1, 1, error)
            else:
                self.done.add(key)

    def ready(self) -> list[Cell]:
        """The cells that may start now, in the order of the plan."""
        return [cell for cell in self._open() if self._may_start(cell)]

    def in_vain(self) -> list[tuple[Cell, tuple[str, ...]]]:
        """Cells that will never start, with what they wait for."""
        lost = in_vain(self._open(), self.failed, self._is_nowhere)
        return [(self.cells[key], awaited) for key, awaited in lost.items()]

    def start(self, key: str) -> None:
        """A cell is under way."""
        self.started.add(key)

    def finish(self, key: str) -> None:
        """A cell has its result."""
        self.started.discard(key)
        self.done.add(key)

    def give_back(self, key: str) -> None:
        """A cell ended without a result through no fault of its own, and may start again."""
        self.started.discard(key)

    def fail(self, key: str, error: str) -> Failure:
        """A cell has failed; it may start again unless it has done so too often."""
        self.started.discard(key)
        self._times[key] = self._times.get(key, 0) + 1
        failure = Failure(self._times[key], self.max_retries + 1, error)
        if failure.is_final:
            self.failed[key] = failure
        return failure

    @property
    def is_over(self) -> bool:
        """Whether nothing is under way and nothing may start."""
        return not self.started and not self.ready()

    def _open(self) -> list[Cell]:
        closed = self.done | self.started | self.failed.keys()
        return [cell for key, cell in self.cells.items() if key not in closed]

    def _may_start(self, cell: Cell) -> bool:
        return all(map(self._is_done, cell.needs)) and all(map(self._has_ended, cell.follows))

    def _is_done(self, key: str) -> bool:
        return key in self.done or (key not in self.cells and is_finished(self.runs_dir, key))

    def _is_nowhere(self, key: str) -> bool:
        return key not in self.cells and not self._is_done(key)

    def _has_ended(self, key: str) -> bool:
        return key in self.failed or self._is_done(key)
