"""One `sweep run` a folder: a lock on this machine, and a number that everything it starts carries.

OUTPUT_DIR/driver.json    who drives the sweep, or drove it last; its number only grows
OUTPUT_DIR/.driver.lock   held for as long as the driver lives
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from probelight.io.atomic import write_text_atomic
from probelight.io.errors import UsageError
from probelight.io.files import read_json
from probelight.io.host import Process, host_id, this_process

DRIVER = "driver.json"


class DriverLostError(RuntimeError):
    """Another driver has taken the sweep over."""


@dataclass(frozen=True)
class Driver:
    """Who puts the cells of a folder on Ray.

    Attributes:
        number: Greater than that of any driver before.
        process: Its process.
        since: When it began, in seconds since 1970.
        ended: When it ended by itself; None if it is at work or was killed.
    """

    number: int
    process: Process
    since: float
    ended: float | None = None

    @property
    def is_gone(self) -> bool:
        """Whether it has certainly ended; of one on another host that was killed nobody knows."""
        return self.ended is not None or self.process.known_dead()


def last_driver(folder: Path) -> Driver | None:
    """The newest driver of a folder; None if there was none.

    Raises:
        UsageError: If its file is damaged.
    """
    path = folder / DRIVER
    try:
        found = read_json(path)
        return Driver(**{**found, "process": Process(**found["process"])})
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{path} is damaged ({error}); remove it if nothing runs in {folder}"
        ) from error


def check_driver(folder: Path, number: int) -> None:
    """Raises DriverLostError unless the driver of this number is the newest."""
    newest = last_driver(folder)
    if newest is None or newest.number != number:
        who = f"by {newest.process}" if newest else "away"
        raise DriverLostError(f"{folder}: driver {number} was lost, the folder was taken {who}")


@contextmanager
def without_driver(folder: Path, take_over: bool) -> Iterator[Driver | None]:
    """Keeps a folder free of drivers for the block; yields the last one.

    Args:
        folder: Folder of the sweep.
        take_over: Take it from a driver on another host of which nothing is known here.

    Raises:
        UsageError: If a driver has it, with who that is.
    """
    with (folder / ".driver.lock").open("a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(_busy(folder, last_driver(folder))) from None
        except OSError:
            pass  # no locks on this file system: driver.json alone has to tell
        before = last_driver(folder)
        if before is not None and not before.is_gone and not take_over:
            how = "take the folder over with --engine.take_over true"
            raise UsageError(_busy(folder, before, how))
        yield before


@contextmanager
def drive_alone(folder: Path, take_over: bool) -> Iterator[int]:
    """Makes this process the driver of a folder for the block; yields its number.

    Args:
        folder: As in `without_driver`.
        take_over: As there.

    Raises:
        UsageError: If another driver has it, with who that is.
    """
    with without_driver(folder, take_over) as before:
        number = 1 if before is None else before.number + 1
        driver = Driver(number, this_process(), time.time())
        _write(folder, driver)
        try:
            yield number
        finally:
            with suppress(OSError, UsageError):  # a full disk; that it is dead is seen anyway
                if folder.is_dir() and last_driver(folder) == driver:
                    _write(folder, replace(driver, ended=time.time()))


def refuse_driven(folder: Path) -> None:
    """Refuses to work in a folder whose cells another process has put on Ray.

    Raises:
        UsageError: If there is one that may still be at work, with who that is.
    """
    driver = last_driver(folder)
    if driver is not None and not driver.is_gone:
        here = driver.process.host == host_id()
        raise UsageError(_busy(folder, driver, "" if here else f"remove {folder / DRIVER}"))


def _busy(folder: Path, driver: Driver | None, if_lost: str = "") -> str:
    """Who has a folder, and what to do; `if_lost`, where nobody here knows whether it is."""
    if driver is None or driver.is_gone:  # it plans, or has not yet said who it is
        return f"{folder}: another process is just beginning there; try again in a moment"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(driver.since))
    text = f"{folder}: {driver.process} is already at work on it, since {since}"
    if if_lost:
        return f"{text}, as far as can be told from here. If it is lost, {if_lost}"
    return f"{text}; wait for it, or stop it first (Ctrl-C, or SIGTERM to it)"


def _write(folder: Path, driver: Driver) -> None:
    write_text_atomic(folder / DRIVER, json.dumps(asdict(driver)) + "\n")
