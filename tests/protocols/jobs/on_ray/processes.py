"""The processes of a sweep, each found by who started it, so that a test ends no others."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import psutil

KINDS = ("worker", "cell", "driver", "raylet")


def processes(folder: Path, driver: int) -> dict[str, list[psutil.Process]]:
    """What runs for a sweep now.

    Args:
        folder: Folder of the sweep.
        driver: Process number of `sweep run`.

    Returns:
        Ray's workers that watch a cell, cells, the driver and the raylet.
    """
    try:
        own = family(driver)
    except psutil.NoSuchProcess:
        own = []
    cells = [p for p in psutil.process_iter() if is_cell(p, folder)]
    watched = {parent.pid for cell in cells if (parent := _parent(cell)) is not None}
    return {
        "worker": [p for p in own if p.pid in watched],
        "cell": cells,
        "driver": [p for p in own if p.pid == driver],
        "raylet": [p for p in own if _name(p) == "raylet"],
    }


def family(driver: int) -> list[psutil.Process]:
    """The driver and all that it and what it started have started, Ray's and cells alike."""
    own = psutil.Process(driver)
    return [own, *own.children(recursive=True)]


def alive(found: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that still run; who was ended and not yet waited for does not."""
    return [p for p in found if p.is_running() and _status(p) != psutil.STATUS_ZOMBIE]


def is_cell(process: psutil.Process, folder: Path) -> bool:
    """Whether a process runs a cell of a folder."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    return "cell" in words and any(word.startswith(f"{folder}/") for word in words)


def cells_of(folder: Path) -> list[int]:
    """Process numbers of the cells of a folder that run now."""
    return [p.pid for p in psutil.process_iter() if is_cell(p, folder)]


def _parent(process: psutil.Process) -> psutil.Process | None:
    try:
        return process.parent()
    except psutil.Error:
        return None


def _status(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.Error:
        return psutil.STATUS_ZOMBIE


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return ""
