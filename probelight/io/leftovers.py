"""Names of files that are being written, and the end of those whose writer was killed."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from probelight.io.host import Process, host_id, this_process

DAY = 86400.0
# .NAME.HOST-PID-START-RANDOM.tmp: a folder's name has no dot before it, nor RANDOM.
_WRITER = re.compile(r".+\.([0-9a-f]{8})-(\d+)-(\d+)(?:-[0-9a-f]{8})?\.(?:tmp|old)")
_EARLIER = re.compile(r"\..+\.\d+-[0-9a-f]{8}\.tmp")  # before names said who writes


def part_of(path: Path) -> Path:
    """A new name beside `path` to write to; it says who does."""
    return path.with_name(f".{path.name}.{writer()}-{secrets.token_hex(4)}.tmp")


def writer() -> str:
    """This process as names of files say it."""
    return _writer(os.getpid())


def remove_leftovers(folder: Path) -> None:
    """Removes, in a folder and all below it, what killed processes were writing.

    Whoever may still be alive keeps its files: a process of this host is looked up; one of another
    host, or of this one before it was started anew, is given a day since its last write.
    """
    for path in list(folder.rglob("*.tmp")):
        if is_abandoned(path):
            remove(path)


def is_abandoned(path: Path) -> bool:
    """Whether a name is one of ours and nobody can be writing there any more."""
    found = _WRITER.fullmatch(path.name)
    if found is not None and found[1] == _host():
        return Process(host_id(), int(found[2]), int(found[3])).known_dead()
    if found is None and _EARLIER.fullmatch(path.name) is None:
        return False
    try:
        inside = [path, *path.rglob("*")]
        return time.time() - max(part.lstat().st_mtime for part in inside) > DAY
    except FileNotFoundError:
        return False  # its writer has just finished it


def remove(path: Path) -> None:
    """Removes a file or a folder, if it is there and may be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):  # a folder that is read only: there is nothing to be mended in it
        path.unlink(missing_ok=True)


@cache
def _writer(pid: int) -> str:
    return f"{_host()}-{pid}-{this_process().started}"


@cache
def _host() -> str:
    return hashlib.sha256(host_id().encode()).hexdigest()[:8]
