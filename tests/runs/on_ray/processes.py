"""The processes of a sweep, each found by who started it, so that a test ends no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

KINDS = ("worker", "cell", "driver", "raylet")


def processes(folder: Path, driver: int) -> dict[str, list[psutil.Process]]:
    """Return the processes of a sweep by kind: Ray's workers that watch a cell are "worker"."""
    own = family(driver)
    cells = [p for p in psutil.process_iter() if is_cell(p, folder)]
    watched = {parent.pid for cell in cells if (parent := known(cell.parent)) is not None}
    return {
        "worker": [p for p in own if p.pid in watched],
        "cell": cells,
        "driver": [p for p in own if p.pid == driver],
        "raylet": [p for p in own if known(p.name) == "raylet"],
    }


def family(driver: int) -> list[psutil.Process]:
    try:
        own = psutil.Process(driver)
        return [own, *own.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def alive(found: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return those that still run; who was ended and not yet waited for does not."""
    ended = (None, psutil.STATUS_ZOMBIE)
    return [p for p in found if p.is_running() and known(p.status) not in ended]


def is_cell(process: psutil.Process, folder: Path) -> bool:
    words = known(process.cmdline) or []
    return "cell" in words and any(word.startswith(f"{folder}/") for word in words)


def cells_of(folder: Path) -> list[int]:
    return [p.pid for p in psutil.process_iter() if is_cell(p, folder)]


def known(read: Callable[[], Any]) -> Any:
    """Return a property of a process; None if the process has ended."""
    try:
        return read()
    except psutil.Error:
        return None
