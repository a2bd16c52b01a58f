"""Who works in a command's folder: what a failed first try left there may be replaced, no more.

Each process holds a shared lock of the folder for as long as it may write there; the system lets
go of it when the process ends, however it ends. Only who is alone may give the folder another
config. Where the file system does not lock folders nobody is known to be alone.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on this system
    fcntl = None  # type: ignore[assignment]

CONFIG = "config.yaml"
# What commands leave beside the folders of their runs; a sweep's plan counts before it is worked.
LEFT_BY_COMMANDS = ("results.csv", "planned.json", "driver.json")


class FolderClaim:
    """A process's claim to a folder, until it is closed or forgotten.

    Args:
        folder: An existing folder.
    """

    def __init__(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY)
        self.close = weakref.finalize(self, os.close, descriptor)
        self._descriptor = descriptor
        self._lock(exclusive=False)

    def alone(self) -> bool:
        """Whether no other process claims the folder; none can, until `share`."""
        return self._lock(exclusive=True)

    def share(self) -> None:
        """Lets others in again."""
        self._lock(exclusive=False)

    def _lock(self, exclusive: bool) -> bool:
        if fcntl is None:
            return False
        # Sharing waits: who is alone is so for as long as it takes to write a config.
        operation = fcntl.LOCK_EX | fcntl.LOCK_NB if exclusive else fcntl.LOCK_SH
        with suppress(OSError):
            fcntl.flock(self._descriptor, operation)
            return True
        return False


def is_computed(folder: Path, runs_dir: Path) -> bool:
    """Whether a command left more in its folder than its own config and those of its runs."""
    return any((folder / name).exists() for name in LEFT_BY_COMMANDS) or any(_left(runs_dir))


def clear_runs(runs_dir: Path) -> None:
    """Removes the runs of a command that computed nothing, so that nothing waits for them."""
    for run in list(runs_dir.iterdir()):
        (run / CONFIG).unlink(missing_ok=True)
        for folder in sorted([run, *run.rglob("*/")], reverse=True):
            with suppress(OSError):  # not empty: somebody's own
                folder.rmdir()


def _left(runs_dir: Path) -> Iterator[Path]:
    """Files of runs: states, scores, results, all but configs and what a killed write left."""
    for path in runs_dir.rglob("*"):
        is_config = path.name == CONFIG and path.parent.parent == runs_dir
        is_part = path.name.startswith(".") and path.suffix == ".tmp"
        if not (path.is_dir() or is_config or is_part):
            yield path
