"""metrics.csv of a run: what it logged, one value a line, whole after every write."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from probelight.io.atomic import write_text_atomic
from probelight.io.escaping import as_cell, from_cell

METRICS_FILE = "metrics.csv"
COLUMNS = ("step", "epoch", "metric", "value")
Logged = tuple[int, str, str, float]


def write_metrics(path: Path, rows: Iterable[Logged]) -> None:
    """Writes the file atomically.

    Args:
        path: The file to replace.
        rows: (step, epoch or "", metric, value) in the order they were logged.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((*place, as_cell(name), value) for *place, name, value in rows)
    write_text_atomic(path, text.getvalue())


def read_metrics(path: Path) -> list[Logged]:
    """Reads the file.

    Raises:
        ValueError: If it is damaged; the message names it and says what to do.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file, strict=True)
            if tuple(lines.fieldnames or ()) != COLUMNS:
                raise ValueError
            return [
                (int(row["step"]), row["epoch"], from_cell(row["metric"]), float(row["value"]))
                for row in lines
            ]
    except (csv.Error, TypeError, ValueError):
        raise ValueError(
            f"{path}: its lines are not whole ones of {','.join(COLUMNS)}; remove {path.parent} "
            "and give the command that made it again"
        ) from None
