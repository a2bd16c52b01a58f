"""Files and folders written whole or not at all, and the clean-up of what killed writers left.

What is being written has a temporary name in the same folder; the name says which process
writes, so that another process can tell whether that one may still be alive.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from probelight.io.errors import UsageError, causes
from probelight.io.process import Process, host_id, this_process

DAY = 86400.0
# .NAME.HOST-PID-START-RANDOM.tmp: a folder's name has no dot before it, nor RANDOM.
_WRITER = re.compile(r".+\.([0-9a-f]{8})-(\d+)-(\d+)(?:-[0-9a-f]{8})?\.(?:tmp|old)")
_REPLACED = re.compile(r"(.+)\.[0-9a-f-]+\.old")

_MAKE_ROOM = "make room there, then rerun the same command to resume"
_MAKE_WRITABLE = "make it writable, or choose another folder"
ADVICE = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EROFS: _MAKE_WRITABLE,
    errno.EACCES: _MAKE_WRITABLE,
    errno.EPERM: _MAKE_WRITABLE,
}
# How libraries that are not Python's put it: Rust's (safetensors, tokenizers), SQLite.
_NUMBER_IN_MESSAGE = re.compile(r"os error (\d+)|\bcode: (\d+)")
_MESSAGES = {
    "database or disk is full": errno.ENOSPC,
    "No space left on device": errno.ENOSPC,
    "readonly database": errno.EROFS,
    "Read-only file system": errno.EROFS,
}


def make_folder(path: Path) -> None:
    """Make a folder, and those above it; UsageError where a file is in its place."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        file = next(parent for parent in (path, *path.parents) if parent.exists())
        raise UsageError(
            f"{file} is a file, where a folder is needed; choose another --output_dir"
        ) from None


def write_bytes_atomic(path: str | Path, content: bytes) -> None:
    """Write `content` so that a reader sees the old file or the whole new one, never a part."""
    write_blocks_atomic(path, [content])


def write_blocks_atomic(path: str | Path, blocks: Iterable[bytes]) -> None:
    """Write blocks one after the other, as `write_bytes_atomic` does.

    Missing parent folders are made. Of two writers at once the last one wins.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A sibling, because a rename is atomic only within one file system.
    temporary = temporary_path(path)
    try:
        with written_to(path):
            with temporary.open("xb") as stream:
                stream.writelines(blocks)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
    finally:
        remove(temporary)


def write_text_atomic(path: str | Path, text: str) -> None:
    """Write text as UTF-8, its line ends unchanged, as `write_bytes_atomic` does."""
    write_bytes_atomic(path, text.encode())


def write_text_once(path: str | Path, text: str) -> bool:
    """Write a file whole unless it is there; return False if it is.

    The first of any number of processes wins, even over one that was stopped before its write and
    goes on long after.
    """
    path = Path(path)
    temporary = temporary_path(path)
    try:
        write_text_atomic(temporary, text)
        path.hardlink_to(temporary)  # unlike a rename it never replaces
    except FileExistsError:
        return False
    finally:
        remove(temporary)
    return True


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to write into, which takes its final name once all of it is on the disk."""
    fresh = folder.with_name(f"{folder.name}.{writer()}.tmp")
    replaced = folder.with_name(f"{folder.name}.{writer()}.old")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        with written_to(folder):
            yield fresh
            for path in [*fresh.rglob("*"), fresh]:
                _sync(path)
        if folder.exists():
            folder.replace(replaced)
        fresh.replace(folder)
        _sync(folder.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        _restore(replaced, folder)


def mend_folder(folder: Path) -> None:
    """Clear away what killed processes left while they wrote folders with `whole_folder`.

    Unfinished folders are removed; one that was about to be replaced gets its name back. What a
    living process is writing stays.
    """
    remove_leftovers(folder)
    newest_first = sorted(folder.glob("*.old"), key=lambda p: p.stat().st_mtime, reverse=True)
    for path in filter(is_abandoned, newest_first):
        if match := _REPLACED.fullmatch(path.name):
            _restore(path, folder / match[1])


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders that killed processes left in a folder or below it.

    A process of this host is looked up; one of another host, or from before this one's last boot,
    is given a day since its last write.
    """
    for path in list(folder.rglob("*.tmp")):
        if is_abandoned(path):
            remove(path)


def is_abandoned(path: Path) -> bool:
    """Return whether a temporary name is ours and its writer can be alive no more."""
    match = _WRITER.fullmatch(path.name)
    if match is None:
        return False
    if match[1] == writer().partition("-")[0]:
        return Process(host_id(), int(match[2]), int(match[3])).known_dead()
    try:
        paths = [path, *path.rglob("*")]
        return time.time() - max(inner.lstat().st_mtime for inner in paths) > DAY
    except FileNotFoundError:
        return False  # its writer has just finished it


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there and may be removed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):  # a folder that is read only: there is nothing to be mended in it
        path.unlink(missing_ok=True)


def temporary_path(path: Path) -> Path:
    """Return a new temporary name in the folder of `path`; it says which process writes."""
    return path.with_name(f".{path.name}.{writer()}-{secrets.token_hex(4)}.tmp")


def writer() -> str:
    """Return this process's part of temporary names."""
    return _writer(os.getpid())  # asked anew: a forked process is another one


@cache
def _writer(pid: int) -> str:
    host_hash = hashlib.sha256(host_id().encode()).hexdigest()[:8]
    return f"{host_hash}-{pid}-{this_process().started}"


def _restore(replaced: Path, folder: Path) -> None:
    """Give a replaced folder its name back if the name is free; else remove the folder."""
    if folder.exists():
        remove(replaced)
    elif replaced.exists():
        replaced.replace(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def written_to(path: str | Path) -> Iterator[None]:
    """Turn a disk error of any library inside the block into an OSError that names `path`."""
    try:
        yield
    except Exception as error:
        disk_failure = disk_error(error)
        if disk_failure is None:
            raise
        raise OSError(disk_failure.errno, disk_failure.strerror, str(path)) from error


def disk_error(error: BaseException) -> OSError | None:
    """Return the disk error that an exception is, comes from or names in its text; None if none."""
    for step in causes(error):
        if isinstance(step, OSError) and step.errno in ADVICE:
            return step
    if match := _NUMBER_IN_MESSAGE.search(str(error)):
        number = int(match[1] or match[2])
    else:
        number = next((n for text, n in _MESSAGES.items() if text in str(error)), 0)
    return OSError(number, os.strerror(number)) if number in ADVICE else None


def error_line(error: OSError) -> str:
    """Return one line about a disk error: the path, what is wrong with it and what to do."""
    where = f"{error.filename}: " if error.filename is not None else ""
    return f"{where}{error.strerror}; {ADVICE[error.errno or 0]}"
