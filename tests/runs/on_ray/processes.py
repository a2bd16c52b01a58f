"""The processes of a sweep, each found by who started it, so that a test ends no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psutil

KINDS = ("worker", "run", "driver", "raylet")


def processes(folder: Path, driver: int) -> dict[str, list[psutil.Process]]:
    """Return the processes of a sweep by kind: Ray's workers that watch a run are "worker"."""
    running = family(driver)
    runs = [p for p in psutil.process_iter() if is_attempt(p, folder)]
    watched = {parent.pid for run in runs if (parent := try_read(run.parent)) is not None}
    return {
        "worker": [p for p in running if p.pid in watched],
        "run": runs,
        "driver": [p for p in running if p.pid == driver],
        "raylet": [p for p in running if try_read(p.name) == "raylet"],
    }


def family(driver: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(driver)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return those that still run; who was ended and not yet waited for does not."""
    ended = (None, psutil.STATUS_ZOMBIE)
    return [p for p in processes if p.is_running() and try_read(p.status) not in ended]


def is_attempt(process: psutil.Process, folder: Path) -> bool:
    words = try_read(process.cmdline) or []
    return "attempt" in words and any(word.startswith(f"{folder}/") for word in words)


def attempts_of(folder: Path) -> list[int]:
    return [p.pid for p in psutil.process_iter() if is_attempt(p, folder)]


def try_read(read: Callable[[], Any]) -> Any:
    """Return a property of a process; None if the process has ended."""
    try:
        return read()
    except psutil.Error:
        return None
