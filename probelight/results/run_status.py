"""Which runs of a folder count: of the last plan, finished, failed, or not finished yet."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from probelight.io.files import read_json

RUNS_FOLDER = "runs"
RESULT_FILE = "result.json"  # what a finished run has
PLANNED_FILE = "planned.json"  # the last plan of a sweep
CONFIG_FILE, ERROR_FILE = "config.yaml", "error.txt"
MAX_NAMED = 12  # failed runs, and unfinished ones; a sweep may be planned with hundreds


def of_earlier_plans(result_paths: Iterable[Path]) -> set[Path]:
    """Return the results of runs in a sweep's folder that its last plan does not know.

    Args:
        result_paths: Each `OUTPUT_DIR/runs/<key>/result.json`.
    """
    by_folder: dict[Path, list[Path]] = {}
    for path in result_paths:
        by_folder.setdefault(path.parent.parent.parent, []).append(path)
    found = set()
    for folder, paths in by_folder.items():
        cells = planned_cells(folder)  # one file for what may be hundreds of runs
        if cells is not None:
            found |= {path for path in paths if path.parent.name not in cells}
    return found


def planned_cells(output_dir: Path) -> frozenset[str] | None:
    """Return the run keys of the last plan; None where there is none, or it cannot be read."""
    try:
        found = read_json(output_dir / PLANNED_FILE)
        return frozenset(str(cell["key"]) for cell in found["cells"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def unfinished_notices(folders: Iterable[Path], root: Path) -> list[str]:
    """Return a sentence about each run without a result, or about many of them together.

    Args:
        folders: What the runs are below.
        root: Sentences call a run by its path from here.
    """
    runs = [
        path.parent
        for path in sorted({path for folder in folders for path in folder.rglob(CONFIG_FILE)})
        if path.parent.parent.name == RUNS_FOLDER
        and not (path.parent / RESULT_FILE).exists()
        # A command's own folder may lie in a folder of that name, as in runs/curve.
        and not (path.parent / RUNS_FOLDER).is_dir()
    ]
    failed = [run for run in runs if (run / ERROR_FILE).exists()]
    waiting = [run.relative_to(root).as_posix() for run in runs if run not in failed]
    notices = [
        f"{run.relative_to(root).as_posix()}: failed, so not in this report ({_reason(run)})"
        for run in failed[:MAX_NAMED]
    ]
    if len(failed) > MAX_NAMED:
        notices.append(f"{len(failed) - MAX_NAMED:,} more runs failed; each has its {ERROR_FILE}")
    if len(waiting) > MAX_NAMED:
        names = ", ".join(waiting[:MAX_NAMED])
        return [*notices, f"{len(waiting):,} runs are not finished yet: {names}, ..."]
    return [*notices, *(f"{run}: not finished yet, so not in this report" for run in waiting)]


def _reason(run: Path) -> str:
    """Return the last line of the traceback, which says what was wrong."""
    try:
        text = (run / ERROR_FILE).read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:  # a folder, say
        return f"{ERROR_FILE} cannot be read: {error.strerror}"
    return text.splitlines()[-1] if text else "without a reason"
