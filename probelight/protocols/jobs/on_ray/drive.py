"""SIGTERM and Ctrl-C as a driver hears them: noted, so that its cells can save their state."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from probelight.io.atomic import write_text_atomic
from probelight.io.documents import read_yaml
from probelight.io.errors import UsageError
from probelight.io.process import INTERRUPTED, TERMINATED
from probelight.protocols.jobs.cell_process import ERROR_NAME
from probelight.protocols.jobs.cells import Cell, Failure, Schedule, is_finished
from probelight.protocols.jobs.fencing import (
    check_driver,
    check_folder,
    drive_alone,
    newest_attempt,
)
from probelight.protocols.jobs.job import EngineSettings
from probelight.protocols.jobs.on_ray.cluster import Cluster, RayLostError, Ref
from probelight.protocols.jobs.on_ray.resources import Need
from probelight.protocols.jobs.on_ray.watch import End, Order
from probelight.protocols.jobs.outlook import counted, last_line
from probelight.protocols.jobs.plan import Plan
from probelight.protocols.jobs.search import draw
from probelight.protocols.jobs.status import RunView
from probelight.results.run_folder import CONFIG


class Stop:
    """What a driver was told.

    Attributes:
        code: Exit code that the first signal asks for; 0 as long as there was none.
        times: How many signals there were.
    """

    def __init__(self) -> None:
        self.code = self.times = 0

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Notes signals from here to the end of the block."""
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.getsignal(number) for number in numbers}
        try:
            self._listen()
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _listen(self) -> None:
        signal.signal(signal.SIGTERM, self._note)
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as of a job in the background
            signal.signal(signal.SIGINT, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.times += 1
        self.code = self.code or (TERMINATED if number == signal.SIGTERM else INTERRUPTED)


_LOOK_SECONDS = 1.0
_PAUSE_SECONDS = 2.0  # before a cell that was lost is put on Ray again
_NODES_SECONDS = 10.0  # between two looks for lost nodes; by the second one Ray has had its time
_GRACE_SECONDS = 10.0  # beyond what cells have to save their state
_PATIENCE_SECONDS = 600.0  # for a cluster that is gone to come back
_TRIES = 3  # at starting Ray, or a Ray that lives on until a cell has ended
_SOON_SECONDS = 60.0  # a local Ray that is lost sooner, with no cell ended, has not really started
_LOG = "ray.log"
# What people set for the programs that cells use, wherever a cell runs.
_PASSED_ON = ("WANDB_", "HF_", "HUGGINGFACE_", "HUGGING_FACE_", "TRANSFORMERS_", "TOKENIZERS_")


def drive(folder: Path, planned: Plan, view: RunView) -> int:
    """Run the cells of a folder that have no result.

    Args:
        folder: Folder of the command; its run folders hold the configs.
        planned: The cells, what they run under, and where.
        view: Is told what happens.

    Returns:
        The exit code: 0 when all are finished, 1 if some have failed for good or wait in vain, 130
        and 143 after Ctrl-C and SIGTERM.

    Raises:
        RayLostError: If Ray does not start, three times one after the other.
        UsageError: If another driver has the folder, Ray is missing, or no node has what a cell
            needs or sees the folder.
        DriverLostError: If another one has taken the folder over meanwhile.
    """
    folder = folder.resolve()  # the same on every node
    with drive_alone(folder, planned.engine.take_over) as number:
        schedule = Schedule(folder / "runs", planned.cells, planned.engine.max_retries)
        with view.shown(schedule):
            for key, failure in schedule.failed.items():
                _keep(schedule.runs_dir / key, failure)
                view.failed(key, failure)
            if schedule.is_over:
                return _ended(schedule, view)
            cluster = Cluster(planned.engine.address, folder / _LOG, view.say)
            try:
                return _Drive(folder, number, planned, schedule, cluster, view).run()
            finally:
                cluster.close()


class _Drive:
    """One run of `drive`; `run` says all there is to it."""

    def __init__(
        self,
        folder: Path,
        number: int,
        planned: Plan,
        schedule: Schedule,
        cluster: Cluster,
        view: RunView,
    ) -> None:
        self.folder, self.number = folder, number
        self.engine, self.context = planned.engine, planned.context
        self.schedule, self.cluster, self.view = schedule, cluster, view
        self._refs: dict[Ref, str] = {}
        self._pauses: dict[str, float] = {}
        self._stop = Stop()
        self._stranded: set[Ref] = set()
        self._left_behind: dict[str, int] = {}
        self._next_look = 0.0
        self._failed_starts, self._opened = 0, 0.0

    def run(self) -> int:
        """Stays until all cells have ended, or it is told to stop."""
        with self._stop.heard():
            self._open()
            while not self.schedule.is_over and not self._stop.code:
                self._put_ready()
                self._take_ended()
                with suppress(OSError):  # a shared file system that is away for a moment
                    check_driver(self.folder, self.number)
                if not self._stop.code and not self.cluster.is_alive():
                    self._open_again()
                elif time.monotonic() > self._next_look:
                    self._leave_lost_nodes()
            if self._stop.code:
                self._stop_cells()
                return self._stop.code
        return _ended(self.schedule, self.view)

    def _open(self) -> None:
        """Start Ray, or connect to it; what a failed start has left is cleaned up."""
        while not self._stop.code:
            try:
                self.cluster.open(lambda: bool(self._stop.code))
                if self._stop.code:
                    return
                self._need = Need.of(self.engine, self.context.trainer, self.cluster.has_gpus())
                self.view.at_once = self.cluster.check(self._need, self.folder, self.number)
            except RayLostError as error:
                self.cluster.close()
                self._note_failed_start(str(error))
                continue
            cells = counted(self.view.at_once, "cell")
            self.view.say(f"room for {cells} at once, each with {self._need}")
            self._opened = time.monotonic()
            return

    def _note_failed_start(self, reason: str) -> None:
        self._failed_starts += 1
        if self._failed_starts < _TRIES:
            number = self._failed_starts + 1
            self.view.say(f"Ray did not start ({reason}); trying again, {number} of {_TRIES} times")
            return
        go_on = "give the command again when the machine is less busy"
        if isinstance(self.engine, EngineSettings):
            go_on += ", or without --engine.kind ray, which needs no Ray"
        log = self.folder / _LOG
        see = f"; its last lines are in {log}" if log.exists() else ""
        raise RayLostError(f"Ray did not start, {_TRIES} times ({reason}){see}; {go_on}")

    def _open_again(self) -> None:
        """Start or find Ray anew; what its workers ran ends with them, and is put there again."""
        self.view.say("Ray does not answer any more; its cells wait until it does")
        for key in self._refs.values():
            self.schedule.give_back(key)
        self._refs.clear()
        self.cluster.close()
        lived = time.monotonic() - self._opened
        if lived > _SOON_SECONDS:
            self._failed_starts = 0
        elif self.engine.address is None:
            self._note_failed_start(f"it was lost {lived:.0f} s after it had started")
        end = time.monotonic() + _PATIENCE_SECONDS
        while not self._stop.code:
            try:
                return self._open()
            except (RayLostError, UsageError):
                if self.engine.address is None or time.monotonic() > end:
                    raise
                time.sleep(_LOOK_SECONDS)

    def _put_ready(self) -> None:
        now = time.monotonic()
        for cell in self.schedule.ready():
            if self._pauses.get(cell.key, 0.0) > now or self._stop.code:
                continue
            try:
                order = self._order(cell)
            except Exception:  # a damaged file, a space that nothing can be drawn from
                self._fail(cell.key, traceback.format_exc())
                continue
            self._refs[self.cluster.put(order, self._need)] = cell.key
            self.schedule.start(cell.key)

    def _order(self, cell: Cell) -> Order:
        folder = self.folder / "runs" / cell.key
        check_folder(folder)
        config = read_yaml(folder / CONFIG)
        if cell.is_drawn:
            earlier = [folder.parent / key for key in cell.follows]
            draw(cell.key, config, folder, earlier)
        threads = config.get("threads") or self.context.trainer.threads or self._need.threads
        passed_on = {k: v for k, v in os.environ.items() if k.startswith(_PASSED_ON)}
        return Order(
            folder=str(folder),
            driver=self.number,
            runner=cell.runner,
            context=self.context.to_json(),
            threads=threads,
            directory=str(Path.cwd()),
            environment=passed_on,
            stop_seconds=self.engine.stop_seconds,
        )

    def _take_ended(self) -> None:
        """Wait a moment, and note what has ended."""
        if not self._refs:  # all that may start was lost a moment ago
            time.sleep(_LOOK_SECONDS)
            return
        for ref in self.cluster.ended(list(self._refs), _LOOK_SECONDS):
            self._take(self._refs.pop(ref), *self.cluster.end_of(ref))
        self.view.tick()

    def _take(self, key: str, end: str, text: str) -> None:
        if end in (End.FINISHED, End.FAILED):
            self._failed_starts = 0
        if end == End.FINISHED or is_finished(self.schedule.runs_dir, key):
            self.schedule.finish(key)
            self.view.finished(key)
        elif end == End.FAILED and not self._stop.code:
            self._fail(key, text)
        else:
            self.schedule.give_back(key)
            self._pauses[key] = time.monotonic() + _PAUSE_SECONDS
            why = f"{end} ({text.splitlines()[0]})" if text else end
            why = End.INTERRUPTED if self._stop.code else why  # whatever Ray makes of it
            self.view.say(f"{key}: {why}, the cell waits again")

    def _leave_lost_nodes(self) -> None:
        """Put the cells of lost nodes on others, where Ray does not do so by itself.

        It goes by the connection, which a node that is frozen or cut off keeps for minutes.
        """
        self._next_look = time.monotonic() + _NODES_SECONDS
        lost, before, self._stranded = self.cluster.lost_nodes(), self._stranded, set()
        for ref, key in list(self._refs.items()) if lost else ():
            number = self._attempt_on(lost, key)
            if number <= self._left_behind.get(key, 0):
                continue
            if ref not in before:
                self._stranded.add(ref)
                continue
            self._left_behind[key] = number
            self.cluster.cancel(ref)  # or Ray would try it again some day
            self._take(self._refs.pop(ref), End.LOST, "Ray does not reach its node")

    def _attempt_on(self, nodes: Container[str], key: str) -> int:
        """Number of the attempt at a cell that runs on one of some nodes; 0 if none does."""
        with suppress(OSError, ValueError):  # a damaged file is for the next attempt to say
            attempt = newest_attempt(self.schedule.runs_dir / key)
            if attempt is not None and attempt.driver == self.number and attempt.left is None:
                return attempt.number if attempt.node in nodes else 0
        return 0

    def _fail(self, key: str, error: str) -> None:
        failure = self.schedule.fail(key, error)
        _keep(self.schedule.runs_dir / key, failure)
        self.view.failed(key, failure)

    def _stop_cells(self) -> None:
        """Let the cells that run save their state. A second signal ends them at once."""
        if self._refs:
            seconds = f"{self.engine.stop_seconds:g} s"
            self.view.say(f"stopping: cells have {seconds} to save their state")
        end, told = time.monotonic() + self.engine.stop_seconds + _GRACE_SECONDS, 0
        while self._refs and time.monotonic() < end and self.cluster.is_alive():
            if told < min(self._stop.times, 2):
                told += 1
                for ref in self._refs:
                    self.cluster.cancel(ref)
            self._take_ended()


def _keep(folder: Path, failure: Failure) -> None:
    with suppress(OSError):  # a full disk: it is still said, and tried again
        if folder.is_dir():
            failure.keep(folder)
            write_text_atomic(folder / ERROR_NAME, failure.error)


def _ended(schedule: Schedule, view: RunView) -> int:
    for key, failure in schedule.failed.items():
        view.say(f"failed: {key}: {last_line(failure.error)}")
    blocked = schedule.blocked()
    for cell, missing in blocked:
        view.say(f"not started: {cell.key}: it needs {', '.join(missing)}")
    return 1 if schedule.failed or blocked else 0
