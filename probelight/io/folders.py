"""Folders that are written whole or not at all, and what is left where a process was killed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from probelight.io.disk import written_to
from probelight.io.leftovers import is_abandoned, remove, writer

_OLD = re.compile(r"(.+)\.[0-9a-f-]+\.old")
_EARLIER = re.compile(r".+\.\d+\.(tmp|old)")  # before names said who writes; nobody does so now


def user_path(path: str | Path) -> Path:
    """The path with its `~` as a home folder; that of a user who is not there stays as it is."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into that takes its final name only when all of it is on the disk."""
    fresh = folder.with_name(f"{folder.name}.{writer()}.tmp")
    stale = folder.with_name(f"{folder.name}.{writer()}.old")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        with written_to(folder):
            yield fresh
            for path in [*fresh.rglob("*"), fresh]:
                _sync(path)
        if folder.exists():
            folder.replace(stale)
        fresh.replace(folder)
        _sync(folder.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        _settle(stale, folder)


def mend_folder(folder: Path) -> None:
    """Clears away what processes that were killed while they wrote left in a folder.

    What `whole_folder` had not finished is removed, and the folder that it was about to replace
    gets its name back. What a process that lives is writing there stays.
    """
    for part in list(folder.rglob("*.tmp")):
        if _is_left(part):
            remove(part)
    newest_first = sorted(folder.glob("*.old"), key=lambda p: p.stat().st_mtime, reverse=True)
    for stale in filter(_is_left, newest_first):
        if found := _OLD.fullmatch(stale.name):
            _settle(stale, folder / found[1])


def _is_left(path: Path) -> bool:
    return _EARLIER.fullmatch(path.name) is not None or is_abandoned(path)


def _settle(stale: Path, folder: Path) -> None:
    if folder.exists():
        remove(stale)
    elif stale.exists():
        stale.replace(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
