"""Which runs the last plan of a sweep holds: results of an earlier one are not mixed with them."""

from __future__ import annotations

import json
from pathlib import Path

PLANNED_FILE = "planned.json"


def of_an_earlier_plan(result_path: Path) -> bool:
    """Whether a run's folder belongs to a sweep whose last plan does not know the run.

    Args:
        result_path: `OUTPUT_DIR/runs/<key>/result.json`.
    """
    run = result_path.parent
    cells = planned_cells(run.parent.parent)
    return cells is not None and run.name not in cells


def planned_cells(output_dir: Path) -> frozenset[str] | None:
    """Keys of the cells of the last plan; None where no sweep was planned, or it cannot be read."""
    try:
        found = json.loads((output_dir / PLANNED_FILE).read_text(encoding="utf-8"))
        return frozenset(map(str, found["cells"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
