"""Checkpoints written whole or not at all, and read without pickle."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins.io.torch_io import TorchCheckpointIO

from probelight.io.atomic import part_of, remove, written_to

PREVIOUS_SUFFIX = ".previous"
UNREADABLE_SUFFIX = ".unreadable"


class UnreadableCheckpointError(RuntimeError):
    """A training state that cannot be read; the message names the file."""


class AtomicCheckpointIO(TorchCheckpointIO):
    """Writes to a temporary name, keeps the state before as `<name>.previous`, then renames.

    A kill at any moment leaves the new state, the old one, or both, never half of one.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None
    ) -> None:
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = part_of(target)
        try:
            with written_to(target), temporary.open("wb") as file:
                torch.save(checkpoint, file)
                file.flush()
                os.fsync(file.fileno())
            if target.exists():
                target.replace(previous_of(target))
            temporary.replace(target)
        finally:
            remove(temporary)

    def load_checkpoint(
        self,
        path: Any,
        map_location: Callable[..., Any] | None = lambda storage, loc: storage,
        weights_only: bool | None = None,
    ) -> dict[str, Any]:
        return read_state(Path(path), map_location)

    def remove_checkpoint(self, path: Any) -> None:
        Path(path).unlink(missing_ok=True)


def previous_of(path: Path) -> Path:
    """Where the state before the one at `path` is kept."""
    return path.with_name(path.name + PREVIOUS_SUFFIX)


def read_state(
    path: Path, map_location: Callable[..., Any] | None = lambda storage, loc: storage
) -> dict[str, Any]:
    """Reads a training state with `weights_only=True`.

    Raises:
        UnreadableCheckpointError: If the file is missing, truncated, garbage or holds pickled
            objects.
    """
    try:
        state = torch.load(path, map_location=map_location, weights_only=True)
    except Exception as error:
        raise UnreadableCheckpointError(
            f"{path}: not a readable training state ({_cause(error)}). "
            "Without the file the run goes on from the state before, or starts again"
        ) from error
    if not isinstance(state, dict) or "state_dict" not in state:
        raise UnreadableCheckpointError(f"{path}: not a training state")
    return state


def _cause(error: Exception) -> str:
    if type(error).__name__ == "UnpicklingError":  # of torch, with advice to read them all the same
        return "damaged, or of pickled objects, which are never read"
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def newest_state(path: Path) -> tuple[Path | None, tuple[str, ...]]:
    """The newest readable state of `path` and `path.previous`, and what was wrong with others.

    A state that cannot be read is put away as `<name>.unreadable`.
    """
    problems = []
    for candidate in (path, previous_of(path)):
        if not candidate.exists():
            continue
        try:
            read_state(candidate)
        except UnreadableCheckpointError as error:
            problems.append(f"{error} (it is put away as {_put_away(candidate).name})")
        else:
            return candidate, tuple(problems)
    return None, tuple(problems)


def _put_away(path: Path) -> Path:
    """Renames a bad state, which the next save would else move over the good one before it.

    It is not deleted: another version of PyTorch, or a disk that is well again, may read it.
    """
    unreadable = path.with_name(path.name + UNREADABLE_SUFFIX)
    with suppress(FileNotFoundError):  # another process of the run was faster
        path.replace(unreadable)
    return unreadable
