"""The right to write in a run folder: a lease with a number, and a lock while a process is in it.

    runs/<key>/lease.json   the newest lease; its number only grows
    runs/<key>/.lock        held by the process that runs the cell, from its start to its end

A worker that was stopped and wakes up after its cell was taken over holds an old number. Its cell's
process can neither enter the folder nor leave a result there.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from results.run_folder import RunFolder
from storage.files import read_json, write_text_atomic
from storage.host import Process, this_process
from storage.leftovers import part_of

LEASE_LOST = 75  # exit code of a cell's process that is no longer in charge
RESULT = "result.json"


class LeaseLostError(RuntimeError):
    """Another worker has taken the cell over."""


class LeasedRunFolder(RunFolder):
    """A run folder that only the holder of the newest lease leaves a result in.

    Args:
        path: The folder, whose `config.yaml` is frozen.
        config: Its config.
        token: The lease.

    Raises:
        ValueError: If the config is not the one that the folder is named after.
    """

    def __init__(self, path: Path, config: Mapping[str, Any], token: int) -> None:
        super().__init__(path.parent, path.name.rsplit("-", 1)[0], config)
        if self.path != path:
            raise ValueError(
                f"{path / 'config.yaml'} was changed after the cell was planned: its hash is "
                f"{self.key.rsplit('-', 1)[1]}. Remove the folder and plan again"
            )
        self.token = token

    def write(self, name: str, value: Any) -> None:
        """Writes a JSON file; `result.json` at most once, and only under the newest lease.

        Of a DDP cell's processes the first one writes.

        Raises:
            LeaseLostError: If another worker has the cell or has finished it.
        """
        if local_rank() != 0:
            return
        check_lease(self.path, self.token)
        if name != RESULT:
            super().write(name, value)
            return
        part = part_of(self.result_path)
        write_text_atomic(part, json.dumps(value, indent=1, ensure_ascii=False) + "\n")
        try:
            check_lease(self.path, self.token)
            # Unlike a rename, a link never replaces what another process left.
            self.result_path.hardlink_to(part)
        except FileExistsError:
            raise LeaseLostError(f"{self.result_path}: another worker has finished it") from None
        finally:
            part.unlink()


def local_rank() -> int:
    """Place of this process among those of a DDP cell on this machine; 0 without DDP."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def grant_lease(folder: Path, token: int) -> None:
    """Makes `token` the lease of a folder.

    Raises:
        LeaseLostError: If the folder has a newer one.
    """
    with _locked(folder / ".lease.lock"):
        if (current_lease(folder) or 0) > token:
            raise LeaseLostError(f"{folder.name}: another worker has a newer lease")
        said = {"token": token, **asdict(this_process())}
        write_text_atomic(folder / "lease.json", json.dumps(said) + "\n")


def current_lease(folder: Path) -> int | None:
    """Number of the newest lease; None if there was none."""
    path = folder / "lease.json"
    return int(read_json(path)["token"]) if path.exists() else None


def check_lease(folder: Path, token: int) -> None:
    """Raises LeaseLostError unless `token` is the folder's newest lease."""
    found = current_lease(folder)
    if found != token:
        raise LeaseLostError(f"{folder.name}: lease {token} was lost, {found} is in charge")


def watch_lease(folder: Path, token: int, seconds: float) -> None:
    """Ends this process soon after the lease was lost, whatever it is doing."""

    def watch() -> None:
        while True:
            time.sleep(seconds)
            try:
                check_lease(folder, token)
            except LeaseLostError:
                os._exit(LEASE_LOST)
            except OSError:
                continue  # a shared file system that is away for a moment

    threading.Thread(target=watch, name="lease", daemon=True).start()


@contextmanager
def inside(folder: Path, token: int, say: Callable[[str], None]) -> Iterator[None]:
    """Enters a run folder alone and leaves it when the process ends or the block does.

    A process of an older lease that is still inside is killed when it is on this host. One of
    another host sees in lease.json that it has to go.

    Raises:
        LeaseLostError: If the lease was lost while waiting.
    """
    path = folder / ".lock"
    # Not inherited by other programs, which would hold it longer than this process lives.
    with path.open("a+", encoding="utf-8") as file:
        told = False
        while not _try_lock(file.fileno()):
            check_lease(folder, token)
            file.seek(0)
            holder = _process(file.read())
            if not told:
                say(f"waiting until {holder or 'another process'} has left {folder.name}")
                told = True
            if holder is not None:
                holder.kill()
            time.sleep(0.05)
        check_lease(folder, token)
        file.truncate(0)
        file.write(json.dumps(asdict(this_process())))
        file.flush()
        yield


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
