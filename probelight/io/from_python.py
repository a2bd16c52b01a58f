"""A command's work when Python calls it: nothing is printed, and every mistake is of one family."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from probelight.io.errors import ProbelightError, UsageError

# Whether a call from Python runs, which shows one bar for all jobs in place of a command's own.
FROM_PYTHON: ContextVar[bool] = ContextVar("from_python", default=False)


class MissingFileError(ProbelightError, FileNotFoundError):
    """A file or folder that is not there."""


def required_path(path: Any, argument: str) -> Path:
    """Return an argument's path; UsageError if it is empty, or is not a path at all."""
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise UsageError(f"{argument} {path!r}: give a path (. is the current folder)")
    return Path(path)


@contextmanager
def quietly() -> Iterator[io.StringIO]:
    """Turn a command's mistakes into ProbelightErrors; yield its output instead of printing it."""
    token = FROM_PYTHON.set(True)
    try:
        with redirect_stdout(io.StringIO()) as printed:
            yield printed
    except ProbelightError:
        raise
    except FileNotFoundError as error:
        raise MissingFileError(str(error)) from error
    except (NotADirectoryError, IsADirectoryError, PermissionError, ValueError) as error:
        raise UsageError(str(error)) from error
    finally:
        FROM_PYTHON.reset(token)
