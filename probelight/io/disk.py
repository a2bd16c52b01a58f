"""A disk that is full or may not be written to: one error that names the path, whoever met it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOM = "make room there; the same command then goes on"
_RIGHTS = "make it writable, or choose another folder"
ADVICE = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EROFS: _RIGHTS,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
}
# What programs that are not Python's say of it: Rust's (safetensors, tokenizers), SQLite.
_NUMBER = re.compile(r"os error (\d+)|\bcode: (\d+)")
_SAID = {
    "database or disk is full": errno.ENOSPC,
    "No space left on device": errno.ENOSPC,
    "readonly database": errno.EROFS,
    "Read-only file system": errno.EROFS,
}


@contextmanager
def written_to(path: str | Path) -> Iterator[None]:
    """What the disk refuses in this block is an OSError with a path, whatever a library made of it.

    Args:
        path: The file or folder that is to be there; the error may name a temporary one, or none.
    """
    try:
        yield
    except Exception as error:
        found = disk_error(error)
        if found is None:
            raise
        raise OSError(found.errno, found.strerror, str(path)) from error


def disk_error(error: BaseException) -> OSError | None:
    """The refusal of the disk that an exception is or comes from; None if there was none.

    A new one, without a path, where a library says it in words only.
    """
    step: BaseException | None = error
    while step is not None:
        if isinstance(step, OSError) and step.errno in ADVICE:
            return step
        step = step.__cause__ or step.__context__
    number = _number_in(str(error))
    return None if number not in ADVICE else OSError(number, os.strerror(number or 0))


def line_of(error: OSError) -> str:
    """One line: the path, what is wrong with it and what to do."""
    where = f"{error.filename}: " if error.filename is not None else ""
    return f"{where}{error.strerror}; {ADVICE[error.errno or 0]}"


def _number_in(text: str) -> int | None:
    if found := _NUMBER.search(text):
        return int(found[1] or found[2])
    return next((number for said, number in _SAID.items() if said in text), None)
