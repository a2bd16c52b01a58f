"""Runs that a folder was to hold and that have no result: failed ones by name and reason."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

CONFIG_FILE, ERROR_FILE = "config.yaml", "error.txt"
MAX_NAMED = 12  # of each kind; a sweep may be planned with hundreds


def unfinished(
    folders: Iterable[Path], root: Path, runs_folder: str, result_file: str
) -> list[str]:
    """A sentence about each run without a result, or about many of them together.

    Args:
        folders: What the runs are below.
        root: Sentences call a run by its path from here.
        runs_folder: Name of the folders that hold runs.
        result_file: What a finished run has.
    """
    found = [
        path.parent
        for path in sorted({path for folder in folders for path in folder.rglob(CONFIG_FILE)})
        if path.parent.parent.name == runs_folder
        and not (path.parent / result_file).exists()
        # A command's own folder may lie in a folder of that name, as in runs/curve.
        and not (path.parent / runs_folder).is_dir()
    ]
    failed = [run for run in found if (run / ERROR_FILE).exists()]
    waiting = [run.relative_to(root).as_posix() for run in found if run not in failed]
    told = [
        f"{run.relative_to(root).as_posix()}: failed, so not in this report ({_reason(run)})"
        for run in failed[:MAX_NAMED]
    ]
    if len(failed) > MAX_NAMED:
        told.append(f"{len(failed) - MAX_NAMED:,} more runs failed; each has its {ERROR_FILE}")
    if len(waiting) > MAX_NAMED:
        names = ", ".join(waiting[:MAX_NAMED])
        return [*told, f"{len(waiting):,} runs are not finished yet: {names}, ..."]
    return [*told, *(f"{run}: not finished yet, so not in this report" for run in waiting)]


def _reason(run: Path) -> str:
    """The last line of the traceback, which says what was wrong."""
    try:
        text = (run / ERROR_FILE).read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:  # a folder, say
        return f"{ERROR_FILE} cannot be read: {error.strerror}"
    return text.splitlines()[-1] if text else "without a reason"
