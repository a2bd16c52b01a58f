"""What a result was made from: versions, commit, data and weights."""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
from collections.abc import Collection, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

from probelight.io.errors import UsageError
from probelight.io.files import DataFile
from probelight.io.package import checkout, program

PACKAGES = ("torch", "pytorch-lightning", "transformers", "tokenizers", "torchmetrics", "numpy")
COMMAND = "command.txt"  # beside config.yaml: what was typed
_COMMAND: ContextVar[str] = ContextVar("command", default="")
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide the numbers."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "absent"
    return found


def git_commit() -> str:
    """Return the checkout's commit, with "+changes" when tracked files differ.

    It is empty where the package is installed: a repository around that is another project's.
    """
    root = checkout()
    if root is None:
        return ""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(root), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != root:
            return ""
        commit = git("rev-parse", "HEAD")
        return commit + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


class FromFiles(Protocol):
    """Items that were read from files, such as one split of a probe."""

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files they come from."""
        ...


@dataclass(frozen=True, kw_only=True)
class DataUse:
    """A data file that was read: its name, its checksum and the items in it, where known."""

    path: str
    sha256: str
    num_items: int | None = None


def set_command(name: str, arguments: Sequence[str]) -> None:
    """Keeps what was asked for, as one types it, for the folders that come of it.

    What stands before the @ of an address (a user, a password) is left out.
    """
    _COMMAND.set(_CREDENTIALS.sub("", f"{program()} {name} {shlex.join(arguments)}".strip()))


def command_line() -> str:
    """The command that is running; empty where none was given on a command line."""
    return _COMMAND.get()


def data_files(sets: Iterable[FromFiles]) -> tuple[DataUse, ...]:
    """The data files of some sets, each file once."""
    files = {file.sha256: file for part in sets for file in part.files}
    return tuple(
        DataUse(path=Path(file.path).name, sha256=file.sha256, num_items=file.num_items)
        for file in files.values()
    )


def check_data(planned: Collection[str], sets: Iterable[FromFiles]) -> None:
    """Refuses other data than a run's key was made with.

    Args:
        planned: Checksums of all its files.
        sets: What was read of them now.

    Raises:
        UsageError: If a file is another one than when the run was planned.
    """
    read = {file.sha256: file.path for part in sets for file in part.files}
    if read.keys() != set(planned):
        others = [path for sha256, path in read.items() if sha256 not in planned]
        raise changed_since(others or read.values())


def changed_since(paths: Iterable[str]) -> UsageError:
    """The error about files that a run was planned with and that are others now."""
    return UsageError(
        f"{', '.join(paths)}: changed since it was planned; give the command again (of a sweep, "
        "`train.py sweep plan`)"
    )
