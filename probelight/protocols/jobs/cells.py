"""The cells of a plan as other processes know them, and how each one is as its folder says.

runs/<key>/result.json    it is finished
runs/<key>/attempt.json   who runs it, or did last: attempt.py
runs/<key>/failed.json    how often it has failed since the sweep was last started, and of what
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from probelight.io.atomic import write_text_atomic
from probelight.io.documents import read_json
from probelight.protocols.jobs.fencing import Attempt, last_driver, newest_attempt
from probelight.protocols.jobs.job import Job
from probelight.results.record import RESULT, RunRecord

FAILED = "failed.json"


@dataclass(frozen=True)
class Cell:
    """A job without its config, which is in its run folder.

    Attributes:
        key: Name of the run folder.
        runner: "module:function" that runs it.
        needs: Keys of the cells that must be finished before it.
        follows: Keys of the cells that must have ended before it, well or not.
        num_steps: Optimiser steps, for the estimate of time.
        is_drawn: Whether its setting is drawn when it is started (`search: tpe`).
    """

    key: str
    runner: str
    needs: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    num_steps: int = 0
    is_drawn: bool = False

    @staticmethod
    def of(job: Job) -> Cell:
        """The cell of a job."""
        drawn = bool(job.search)
        return Cell(job.key, job.runner_name, job.needs, job.follows, job.num_steps, drawn)


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result.

    Attributes:
        times: How often it has failed.
        tries: How often it may.
        error: The traceback, or what stands for it.
    """

    times: int
    tries: int
    error: str

    @property
    def is_final(self) -> bool:
        """Whether it is not tried again before the next `sweep run`."""
        return self.times >= self.tries

    @staticmethod
    def read(folder: Path) -> Failure | None:
        """What a run folder says; None if its cell has not failed.

        Raises:
            ValueError: If its file is damaged.
        """
        path = folder / FAILED
        try:
            return Failure(**read_json(path))
        except FileNotFoundError:
            return None
        except TypeError as error:
            raise ValueError(f"{path} is damaged ({error}); remove it") from error

    def keep(self, folder: Path) -> None:
        """Write it into a run folder."""
        write_text_atomic(folder / FAILED, json.dumps(asdict(self)) + "\n")


class State(StrEnum):
    """How a cell is."""

    DONE = "done"
    RUNNING = "running"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(frozen=True)
class CellStatus:
    """A cell and how it is.

    Attributes:
        cell: The cell.
        state: Its state.
        attempt: The newest attempt at it.
        failure: How it has failed, if it has since the sweep was last started.
    """

    cell: Cell
    state: State
    attempt: Attempt | None = None
    failure: Failure | None = None

    @property
    def seconds(self) -> float | None:
        """What the attempt that finished it took; None where that is not known."""
        if self.state is not State.DONE or self.attempt is None or self.attempt.left is None:
            return None
        return self.attempt.left - self.attempt.since


def blocked(
    waiting: Iterable[Cell],
    failed: Container[str],
    is_nowhere: Callable[[str], bool] = lambda key: False,
) -> dict[str, tuple[str, ...]]:
    """The cells that will never start, with what each waits for: a failed cell behind all of it.

    Args:
        waiting: Cells that are not started.
        failed: Keys of those that have failed for good.
        is_nowhere: Whether a key is neither finished nor that of a cell of the plan.
    """
    lost: dict[str, tuple[str, ...]] = {}
    cells, before = list(waiting), -1
    while len(lost) > before:  # what waits for one of them does so in vain too
        before = len(lost)
        for cell in [cell for cell in cells if cell.key not in lost]:
            awaited = [key for key in cell.needs if key in failed]
            either = (*cell.needs, *cell.follows)
            awaited += [key for key in either if key in lost or is_nowhere(key)]
            if awaited:
                lost[cell.key] = tuple(awaited)
    return lost


def is_finished(runs_dir: Path, key: str) -> bool:
    """Whether a cell has a result."""
    return (runs_dir / key / RESULT).exists()


def damage(runs_dir: Path, key: str) -> str:
    """What is wrong with a cell's result, and what to do; empty if nothing is."""
    path = runs_dir / key / RESULT
    try:
        RunRecord.read(path)
    except (ValueError, OSError) as error:
        return f"{error}; or remove {path} alone, and `sweep run` makes the cell anew"
    return ""


def statuses(output_dir: Path, cells: Iterable[Cell]) -> list[CellStatus]:
    """How each cell of a folder is, from its files alone."""
    driver = last_driver(output_dir)
    number = None if driver is None or driver.is_gone else driver.number
    return [status_of(output_dir / "runs", cell, number) for cell in cells]


def status_of(runs_dir: Path, cell: Cell, driver: int | None) -> CellStatus:
    """How a cell is; one with a damaged file counts as failed of it.

    Args:
        runs_dir: Folder of the run folders.
        cell: The cell.
        driver: Number of the driver that is at work, if one is.
    """
    folder = runs_dir / cell.key
    try:
        attempt, failure = newest_attempt(folder), Failure.read(folder)
    except ValueError as error:
        if is_finished(runs_dir, cell.key):
            return CellStatus(cell, State.DONE)
        attempt, failure = None, Failure(1, 1, str(error))
    if failure is not None and failure.is_final:  # of a damaged result too
        return CellStatus(cell, State.FAILED, attempt, failure)
    if is_finished(runs_dir, cell.key):
        return CellStatus(cell, State.DONE, attempt)
    runs = attempt is not None and attempt.left is None and attempt.driver == driver
    return CellStatus(cell, State.RUNNING if runs else State.WAITING, attempt, failure)


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

    def blocked(self) -> list[tuple[Cell, tuple[str, ...]]]:
        """Cells that will never start, with what they wait for."""
        lost = blocked(self._open(), self.failed, self._is_nowhere)
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
