"""Which runs the last plan of a sweep holds: results of an earlier one are not mixed with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from probelight.io.files import read_json

PLANNED_FILE = "planned.json"


def of_earlier_plans(result_paths: Iterable[Path]) -> set[Path]:
    """The results of runs in a sweep's folder that its last plan does not know.

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
    """Keys of the cells of the last plan; None where no sweep was planned, or it cannot be read."""
    try:
        found = read_json(output_dir / PLANNED_FILE)
        return frozenset(str(cell["key"]) for cell in found["cells"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
