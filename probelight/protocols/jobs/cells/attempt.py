"""The right to write in a run folder: a numbered attempt, and a lock while a process is in it.

    runs/<key>/attempt.json   the newest attempt at the cell; its number only grows
    runs/<key>/.lock          held by the process that runs the cell, from its start to its end

Ray starts a cell anew where it lost sight of a worker or a node. One that was only suspended and
wakes up holds an old number: its cell's process can neither enter the folder nor leave a result.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from probelight.io.artifacts import RESULT
from probelight.io.atomic import part_of, write_text_atomic
from probelight.io.escaping import json_text
from probelight.io.files import read_json
from probelight.io.host import Process, this_process
from probelight.io.stop_signals import is_first_process
from probelight.protocols.jobs.cells.driver_claim import check_driver
from probelight.results.run_folder import CONFIG, RunFolder

LOST = 75  # exit code of a cell's process that is no longer in charge
ATTEMPT = "attempt.json"


class AttemptLostError(RuntimeError):
    """Another attempt at the cell is in charge."""


@dataclass(frozen=True)
class Attempt:
    """One start of a cell.

    Attributes:
        number: Greater than that of any attempt before.
        driver: Number of the `sweep run` that it was made for.
        owner: The Ray worker that watches the cell's process.
        since: When it began, in seconds since 1970 by its own node's clock.
        left: When it ended, by the same clock; None as long as it has not, or was killed.
        node: What Ray calls its node.
    """

    number: int
    driver: int
    owner: Process
    since: float
    left: float | None = None
    node: str = ""


def begin_attempt(folder: Path, driver: int, node: str = "") -> Attempt:
    """A new attempt at the cell of a folder, which ends the right of all earlier ones.

    Raises:
        DriverLostError: If another `sweep run` has taken the sweep over.
        FileNotFoundError: If the folder is gone.
    """
    with _locked(folder / ".attempt.lock"):
        check_driver(folder.parent.parent, driver)
        before = newest_attempt(folder)
        number = 1 if before is None else before.number + 1
        attempt = Attempt(number, driver, this_process(), time.time(), node=node)
        _write(folder, attempt)
    return attempt


def end_attempt(folder: Path, attempt: Attempt) -> None:
    """Notes that the process of an attempt has ended; a newer attempt is left alone."""
    with _locked(folder / ".attempt.lock"):
        if newest_attempt(folder) == attempt:
            _write(folder, replace(attempt, left=time.time()))


def newest_attempt(folder: Path) -> Attempt | None:
    """The newest attempt at a cell; None if there was none.

    Raises:
        ValueError: If its file is damaged.
    """
    path = folder / ATTEMPT
    try:
        found = read_json(path)
        return Attempt(**{**found, "owner": Process(**found["owner"])})
    except FileNotFoundError:
        return None
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is damaged ({error}); remove {folder}, the cell begins anew"
        ) from error


def check_folder(folder: Path) -> None:
    """Raises FileNotFoundError if a run folder, or the config in it, is gone."""
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(f"{folder} is gone; `train.py sweep plan` makes it again")


def check_attempt(folder: Path, number: int) -> None:
    """Raises AttemptLostError unless the attempt of this number is the newest."""
    newest = newest_attempt(folder)
    if newest is None or newest.number != number:
        found = "none" if newest is None else f"attempt {newest.number}"
        raise AttemptLostError(f"{folder.name}: attempt {number} was lost, {found} is in charge")


def watch_attempt(folder: Path, number: int, seconds: float) -> None:
    """Ends this process soon after the attempt was lost, whatever it is doing."""

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
    """A run folder that only the newest attempt leaves a result in.

    Args:
        path: The folder, whose `config.yaml` is frozen.
        config: Its config.
        number: The attempt's.

    Raises:
        ValueError: If the config is not the one that the folder is named after.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], number: int) -> None:
        super().__init__(path.parent, path.name.rsplit("-", 1)[0], config)
        if self.path != path:
            raise ValueError(
                f"{path / 'config.yaml'} was changed after the cell was planned: its hash is "
                f"{self.key.rsplit('-', 1)[1]}. Remove the folder and plan again"
            )
        self.number = number

    def write(self, name: str, value: Any) -> None:
        """Writes a JSON file; `result.json` at most once, and only for the newest attempt.

        Of a DDP cell's processes the first one writes.

        Raises:
            AttemptLostError: If another attempt has the cell or has finished it.
        """
        if not is_first_process():
            return
        check_attempt(self.path, self.number)
        if name != RESULT:
            super().write(name, value)
            return
        part = part_of(self.result_path)
        write_text_atomic(part, json_text(value, indent=1) + "\n")
        try:
            check_attempt(self.path, self.number)
            # Unlike a rename, a link never replaces what another process left.
            self.result_path.hardlink_to(part)
        except FileExistsError:
            raise AttemptLostError(f"{self.result_path}: another attempt finished it") from None
        finally:
            part.unlink()


@contextmanager
def inside(folder: Path, number: int, say: Callable[[str], None]) -> Iterator[None]:
    """Enters a run folder alone and leaves it when the process ends or the block does.

    A process of an older attempt that is still inside is killed when it is on this host. One of
    another host sees in attempt.json that it has to go.

    Raises:
        AttemptLostError: If the attempt was lost while waiting.
    """
    path = folder / ".lock"
    # Not inherited by other programs, which would hold it longer than this process lives.
    with path.open("a+", encoding="utf-8") as file:
        told = False
        while not _try_lock(file.fileno()):
            check_attempt(folder, number)
            file.seek(0)
            holder = _process(file.read())
            if not told:
                say(f"waiting until {holder or 'another process'} has left {folder.name}")
                told = True
            if holder is not None:
                holder.kill()
            time.sleep(0.05)
        check_attempt(folder, number)
        file.truncate(0)
        file.write(json.dumps(asdict(this_process())))
        file.flush()
        yield


def _write(folder: Path, attempt: Attempt) -> None:
    check_folder(folder)
    write_text_atomic(folder / ATTEMPT, json.dumps(asdict(attempt)) + "\n")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _process(text: str) -> Process | None:
    try:
        return Process(**json.loads(text))
    except (ValueError, TypeError):
        return None  # it has not yet said who it is
