"""Folders that are written whole or not at all, and what is left where a process was killed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OLD = re.compile(r"(.+)\.\d+\.old")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into that takes its final name only when all of it is on the disk."""
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    stale = folder.with_name(f"{folder.name}.{os.getpid()}.old")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
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
    gets its name back. Nobody else may be writing there.
    """
    for part in list(folder.rglob("*.tmp")):
        _remove(part)
    newest_first = sorted(folder.glob("*.old"), key=lambda p: p.stat().st_mtime, reverse=True)
    for stale in newest_first:
        if found := _OLD.fullmatch(stale.name):
            _settle(stale, folder / found[1])


def _settle(stale: Path, folder: Path) -> None:
    if folder.exists():
        _remove(stale)
    elif stale.exists():
        stale.replace(folder)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
