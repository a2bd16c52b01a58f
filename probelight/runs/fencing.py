"""Let one driver per folder and one attempt per job write: local locks, and numbers that only grow.

OUTPUT_DIR/driver.json        who drives the sweep, or drove it last
OUTPUT_DIR/.driver.lock       held for as long as the driver lives
OUTPUT_DIR/runs/<key>/attempt.json   who makes the run, or made it last
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from probelight.io.atomic import temporary_path, write_text_atomic
from probelight.io.documents import read_json
from probelight.io.errors import ProbelightError, UsageError
from probelight.io.escaping import json_text
from probelight.io.process import Process, host_id, is_first_process, this_process
from probelight.io.settings import STRICT, typed
from probelight.results.record import RESULT
from probelight.results.run_folder import CONFIG, RunFolder

DRIVER = "driver.json"
T = TypeVar("T")


class DriverLostError(ProbelightError, RuntimeError):
    """Another driver has taken the sweep over."""


@dataclass(frozen=True)
class Driver:
    """The process that puts the jobs of a folder on Ray; a later driver has a greater number."""

    __pydantic_config__: ClassVar = STRICT

    number: int
    process: Process
    since: float  # seconds since 1970
    ended: float | None = None  # None if it is at work or was killed

    @property
    def is_gone(self) -> bool:
        """Whether it has certainly ended; nobody knows whether one on another host was killed."""
        return self.ended is not None or self.process.known_dead()


def read_if_there(kind: type[T], path: Path) -> T | None:
    """Read a dataclass from a file; None if there is none, ValueError if it is damaged."""
    try:
        return typed(kind, read_json(path), "it")
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error})") from error


def last_driver(folder: Path) -> Driver | None:
    """Return the newest driver of a folder; None if there was none, UsageError if damaged."""
    try:
        return read_if_there(Driver, folder / DRIVER)
    except ValueError as error:
        raise UsageError(f"{error}; remove it if nothing runs in {folder}") from error


def check_driver(folder: Path, number: int) -> None:
    """Raise DriverLostError unless the driver of this number is the newest."""
    newest = last_driver(folder)
    if newest is None or newest.number != number:
        who = f"by {newest.process}" if newest else "away"
        raise DriverLostError(
            f"{folder}: the folder was taken {who}, so this command (driver {number}) stops"
        )


@contextmanager
def without_driver(folder: Path, take_over: bool) -> Iterator[Driver | None]:
    """Keep a folder free of drivers for the block and yield the last one; UsageError if it has one.

    `take_over` takes the folder from a driver on another host, whose fate is not known here.
    """
    with (folder / ".driver.lock").open("a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(_busy(folder, last_driver(folder))) from None
        except OSError:
            pass  # no locks on this file system: driver.json alone has to tell
        last = last_driver(folder)
        if last is not None and not last.is_gone and not take_over:
            how = "take over the folder with --engine.take_over true"
            raise UsageError(_busy(folder, last, how))
        yield last


@contextmanager
def drive_alone(folder: Path, take_over: bool) -> Iterator[int]:
    """Make this process the driver of a folder for the block; yield its number."""
    with without_driver(folder, take_over) as last:
        number = 1 if last is None else last.number + 1
        driver, path = Driver(number, this_process(), time.time()), folder / DRIVER
        write_text_atomic(path, json.dumps(asdict(driver)) + "\n")
        try:
            yield number
        finally:
            with suppress(OSError, UsageError):  # a full disk; that it is dead is seen anyway
                if folder.is_dir() and last_driver(folder) == driver:
                    ended = replace(driver, ended=time.time())
                    write_text_atomic(path, json.dumps(asdict(ended)) + "\n")


def refuse_driven(folder: Path) -> None:
    """Raise UsageError if another process may still be running the folder's jobs on Ray."""
    driver = last_driver(folder)
    if driver is not None and not driver.is_gone:
        is_local = driver.process.host == host_id()
        raise UsageError(_busy(folder, driver, "" if is_local else f"remove {folder / DRIVER}"))


def _busy(folder: Path, driver: Driver | None, if_lost: str = "") -> str:
    """Say who has a folder and what to do: `if_lost` where nobody here knows whether it lives."""
    if driver is None or driver.is_gone:  # it plans, or has not yet said who it is
        return f"{folder}: another process is just starting there; try again in a moment"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(driver.since))
    text = f"{folder}: {driver.process} has been working on it since {since}"
    if if_lost:
        return f"{text}, as far as this machine can see. If it has ended, {if_lost}"
    return f"{text}; wait for it, or stop it first (Ctrl-C, or SIGTERM to it)"


LOST = 75  # exit code of an attempt's process that is no longer in charge
ATTEMPT = "attempt.json"


class AttemptLostError(RuntimeError):
    """Another attempt at the job is in charge."""


@dataclass(frozen=True)
class Attempt:
    """One start of a job; a later attempt has a greater number."""

    __pydantic_config__: ClassVar = STRICT

    number: int
    driver: int  # number of the `sweep run` that made it
    owner: Process  # the Ray worker that watches the job's process
    since: float  # seconds since 1970 by its node's clock
    left: float | None = None  # its end, had nobody set the clock; None if it runs or was killed
    node: str = ""  # Ray's name of its node


def begin_attempt(folder: Path, driver: int, node: str = "") -> Attempt:
    """Begin a new attempt at a job; all earlier ones lose the right to write.

    Raises:
        DriverLostError: If another `sweep run` has taken the sweep over.
        FileNotFoundError: If the run folder is gone.
    """
    with (folder / ".attempt.lock").open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        check_driver(folder.parent.parent, driver)
        newest = newest_attempt(folder)
        number = 1 if newest is None else newest.number + 1
        attempt = Attempt(number, driver, this_process(), time.time(), node=node)
        check_folder(folder)
        write_text_atomic(folder / ATTEMPT, json.dumps(asdict(attempt)) + "\n")
    return attempt


def end_attempt(folder: Path, attempt: Attempt, seconds: float) -> None:
    """Record that the process of an attempt ended after so long; a newer attempt is left alone."""
    with (folder / ".attempt.lock").open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if newest_attempt(folder) == attempt:
            ended = replace(attempt, left=attempt.since + seconds)
            write_text_atomic(folder / ATTEMPT, json.dumps(asdict(ended)) + "\n")


def newest_attempt(folder: Path) -> Attempt | None:
    """Return the newest attempt at a job; None if there was none, ValueError if damaged."""
    try:
        return read_if_there(Attempt, folder / ATTEMPT)
    except ValueError as error:
        raise ValueError(f"{error}; remove {folder} to start the run again") from error


def check_folder(folder: Path) -> None:
    """Raise FileNotFoundError if a run folder or its config is gone."""
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(f"{folder} is missing; `train.py sweep plan` makes it again")


def check_attempt(folder: Path, number: int) -> None:
    """Raise AttemptLostError unless the attempt of this number is the newest."""
    newest = newest_attempt(folder)
    if newest is None or newest.number != number:
        why = f"attempt {newest.number} replaced it" if newest else f"{ATTEMPT} is missing"
        raise AttemptLostError(f"{folder.name}: attempt {number} stops, because {why}")


def end_when_lost(folder: Path, number: int, seconds: float) -> None:
    """End this process, whatever it is doing, at most `seconds` after its attempt was lost."""

    def watch() -> None:
        while True:
            time.sleep(seconds)
            try:
                check_attempt(folder, number)
            except AttemptLostError:
                os._exit(LOST)
            except (OSError, ValueError):
                continue  # a shared file system that is away for a moment

    threading.Thread(target=watch, name="attempt", daemon=True).start()


class FencedRunFolder(RunFolder):
    """A run folder in which only the newest attempt leaves a result.

    The config must be the one that the folder is named after: ValueError otherwise.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], number: int) -> None:
        super().__init__(path.parent, path.name.rsplit("-", 1)[0], config)
        if self.path != path:
            raise ValueError(
                f"{path / 'config.yaml'} was changed after the run was planned (its hash is now "
                f"{self.key.rsplit('-', 1)[1]}); remove the folder and plan again"
            )
        self.number = number

    def write(self, name: str, value: Any) -> None:
        """Write a JSON file from the first process of DDP; `result.json` at most once.

        AttemptLostError if another attempt has the job or has finished it.
        """
        if not is_first_process():
            return
        check_attempt(self.path, self.number)
        if name != RESULT:
            super().write(name, value)
            return
        draft = temporary_path(self.result_path)
        write_text_atomic(draft, json_text(value, indent=1) + "\n")
        try:
            check_attempt(self.path, self.number)
            # Unlike a rename, a link never replaces what another process left.
            self.result_path.hardlink_to(draft)
        except FileExistsError:
            raise AttemptLostError(f"{self.result_path}: another attempt finished it") from None
        finally:
            draft.unlink()


@contextmanager
def inside(folder: Path, number: int, say: Callable[[str], None]) -> Iterator[None]:
    """Hold a run folder alone for the block; AttemptLostError if the attempt is lost meanwhile.

    A process of an older attempt that is still inside is killed if it is on this host. On another
    host it sees in attempt.json that it has to go.
    """
    path, has_said = folder / ".lock", False
    # Not inherited by other programs, which would hold it longer than this process lives.
    with path.open("a+", encoding="utf-8") as file:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            check_attempt(folder, number)
            file.seek(0)
            holder = None
            with suppress(ValueError, TypeError):  # it has not yet said who it is
                holder = Process(**json.loads(file.read()))
            if not has_said:
                say(f"waiting for {holder or 'another process'} to leave {folder.name}")
                has_said = True
            if holder is not None:
                holder.kill()
            time.sleep(0.05)
        check_attempt(folder, number)
        file.truncate(0)
        file.write(json.dumps(asdict(this_process())))
        file.flush()
        yield
