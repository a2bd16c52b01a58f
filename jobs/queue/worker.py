"""A worker: takes cells from the queue, runs each in a process of its own, until none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import yaml

from jobs.job import DRAWN_NAME
from jobs.needs import Needs, is_finished
from jobs.process import ERROR_NAME, ORDERS_VARIABLE, Orders
from jobs.progress import Progress, last_line, line_of
from jobs.queue.entry import COMPLETE, FAIL, Entry
from jobs.queue.lease import LEASE_LOST, RESULT, LeaseLostError, grant_lease
from jobs.queue.patience import STORAGE_ERRORS, Patience
from jobs.queue.queue import Queue
from jobs.queue.storage import cause_of
from jobs.search import draw, objectives_of
from jobs.settings import EngineSettings
from results.provenance import ROOT
from results.run_folder import RunFolder
from storage.files import write_text_atomic

TERMINATED, INTERRUPTED, FAILED = 143, 130, 1
LOG_NAME = "log.txt"
_LOG_TAIL = 2000  # characters of the log that stand for a traceback where there is none


class Worker:
    """Takes cells until none is left.

    Args:
        output_dir: Folder of the sweep.
        queue: Its queue.
        engine: Retries and times.
        orders: What each cell's process is told, besides its lease.
        wait: Wait while other workers run cells that others need or that may yet be lost.
        say: Prints a line.
    """

    def __init__(
        self,
        output_dir: Path,
        queue: Queue,
        engine: EngineSettings,
        orders: Orders,
        wait: bool = True,
        say: Callable[[str], None] = print,
    ) -> None:
        self.runs_dir = output_dir / "runs"
        self.queue = queue
        self.engine = engine
        self.orders = replace(orders, parent=os.getpid(), watch_seconds=engine.heartbeat_seconds)
        self.wait = wait
        self.say = say
        self._stop = threading.Event()
        self._stop_code = 0
        self._patiently = Patience(queue.url, engine, self._stop, say)
        self._process: subprocess.Popen[bytes] | None = None

    def run(self) -> int:
        """Works; returns the exit code.

        0 when nothing is left, 1 if cells have failed for good or wait in vain, 143 after SIGTERM.
        """
        with self._signals():
            try:
                self._work()
                return self._stop_code or self._failed()
            except STORAGE_ERRORS as error:
                if not self._stop.is_set():
                    raise
                self.say(f"stopped while the storage does not answer: {cause_of(error)}")
                return self._stop_code

    def _work(self) -> None:
        while not self._stop.is_set():
            take_back = partial(self.queue.take_back, self.engine.grace_seconds)
            for lost in self._patiently(take_back):
                self.say(f"{lost.key}: {lost.owner} is gone, the cell waits again")
            needs = Needs(self.runs_dir, self._patiently(self.queue.entries))
            entry = self._patiently(partial(self.queue.claim, needs.are_met))
            if entry is not None:
                self._run(entry)
            # What may start without being claimed another worker has just given back or taken.
            elif self.wait if needs.any_runs() else needs.any_may_start():
                self._stop.wait(self.engine.poll_seconds)
            else:
                break

    def _failed(self) -> int:
        entries = self._patiently(self.queue.entries)
        failed = [entry for entry in entries if entry.state is FAIL]
        for entry in failed:
            self.say(f"failed: {entry.key}: {last_line(entry.error)}")
        in_vain = Needs(self.runs_dir, entries).in_vain()
        for line in in_vain:
            self.say(line)
        return FAILED if failed or in_vain else 0

    def _run(self, entry: Entry) -> None:
        """Runs a claimed cell to whatever end it has, and tells the queue."""
        folder = self.runs_dir / entry.key
        try:
            if not is_finished(self.runs_dir, entry.key):
                grant_lease(folder, entry.token)
                if entry.search:
                    before = [self.runs_dir / key for key in entry.needs]
                    trials = [one for one in before if (one / DRAWN_NAME).exists()]
                    draw(entry.key, RunFolder.at(folder).config, folder, trials)
                self.say(f"{entry.key}: {'going on' if entry.interruptions else 'started'}")
                code = self._process_of(entry, folder)
                if code is None or code == LEASE_LOST:
                    self.say(f"{entry.key}: another worker has taken it over")
                    return
                if not is_finished(self.runs_dir, entry.key):
                    self._not_finished(entry, folder, code)
                    return
            objectives = objectives_of(folder / RESULT) if entry.search else ()
            if self._patiently(lambda: self.queue.complete(entry, objectives)):
                self._say_progress(entry)
        except LeaseLostError as error:
            self.say(str(error))
        except STORAGE_ERRORS:
            raise
        except Exception:
            # A damaged file, a folder that is gone, a full disk: the cell's trouble. A worker that
            # died of it would leave the cell to the next one, which would die of it too.
            trace = traceback.format_exc()
            if folder.is_dir():
                with suppress(OSError):
                    write_text_atomic(folder / ERROR_NAME, trace)
            self._note_failure(entry, trace)

    def _process_of(self, entry: Entry, folder: Path) -> int | None:
        """Exit code of the cell's process; None if the lease was lost and it was killed."""
        (folder / ERROR_NAME).unlink(missing_ok=True)
        with (folder / "config.yaml").open("rb") as file:
            config = yaml.safe_load(file)  # of a stream: its errors name the file
        environment = dict(os.environ)
        orders = replace(self.orders, token=entry.token, runner=entry.runner)
        environment[ORDERS_VARIABLE] = orders.dump()
        threads = config.get("threads") or self.orders.context.trainer.threads
        if threads is not None:
            environment |= {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        with (folder / LOG_NAME).open("ab") as log:
            self._process = process = _start(folder, environment, log)
        try:
            if self._stop.is_set():
                self._pass_on(signal.SIGTERM)
            return self._watched(entry, process)
        finally:
            # Also what the process has started itself: further processes of DDP, loaders.
            self._pass_on(signal.SIGKILL)
            process.communicate()
            self._process = None

    def _watched(self, entry: Entry, process: subprocess.Popen[bytes]) -> int | None:
        stopping = 0.0
        while True:
            try:
                return process.wait(self.engine.heartbeat_seconds)
            except subprocess.TimeoutExpired:
                pass
            try:
                if not self.queue.beat(entry):
                    return None
            except STORAGE_ERRORS as error:
                self.say(f"the storage does not answer, {entry.key} goes on: {cause_of(error)}")
            if self._stop.is_set():
                stopping = stopping or time.monotonic()
                if time.monotonic() - stopping > self.engine.stop_seconds:
                    return -signal.SIGKILL

    def _not_finished(self, entry: Entry, folder: Path, code: int) -> None:
        if self._stop.is_set() or code == TERMINATED:
            self._patiently(lambda: self.queue.release(entry))
            self.say(f"{entry.key}: interrupted, the cell waits again")
            return
        path = folder / ERROR_NAME
        error = (
            path.read_text(encoding="utf-8") if path.exists() else _without_traceback(folder, code)
        )
        self._note_failure(entry, error)

    def _note_failure(self, entry: Entry, error: str) -> None:
        limit = self.engine.max_retries
        state = self._patiently(lambda: self.queue.fail(entry, error, limit))
        if state is not None:
            end = "for good" if state is FAIL else f"{entry.failures + 1} of {limit + 1} times"
            self.say(f"{entry.key}: failed {end}: {last_line(error)}")

    def _say_progress(self, entry: Entry) -> None:
        entries = self._patiently(self.queue.entries)
        done = next((e for e in entries if e.key == entry.key and e.state is COMPLETE), entry)
        self.say(f"{entry.key}: finished. {line_of(Progress(entries), done)}")

    def _pass_on(self, signum: int) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signum)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGTERM and Ctrl-C let the cell save its state before the worker ends."""

        def stop(signum: int, frame: object) -> None:
            self._stop_code = TERMINATED if signum == signal.SIGTERM else INTERRUPTED
            self._stop.set()
            self._pass_on(signal.SIGTERM)

        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _start(folder: Path, environment: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    command: list[Any] = [sys.executable, ROOT / "train.py", "sweep", "cell", folder]
    return subprocess.Popen(
        list(map(str, command)),
        stdin=subprocess.PIPE,  # closes when the worker ends, however it ends
        stdout=log,
        stderr=log,
        env=environment,
        process_group=0,
    )


def _without_traceback(folder: Path, code: int) -> str:
    cause = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
    log = (folder / LOG_NAME).read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:]
    text = f"{log}\nthe cell's process left no traceback: {cause}"
    (folder / ERROR_NAME).write_text(text + "\n", encoding="utf-8")
    return text
