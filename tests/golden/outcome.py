"""What is kept of a run's folder, as small tables, and how two of them are compared.

What changes by nature is left out here, in one place: hashes in the keys of runs, commits,
versions, times, checksums of trained weights, absolute paths.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.fixtures.checkout import ROOT
from tests.fixtures.rows import read_results
from tests.golden.world import RUNS, World

Table = list[dict[str, str]]
EXPECTED = Path(__file__).with_name("expected")
SHOWN = 20
# Far above what another CPU's order of sums does to a score, far below one item of an accuracy.
TOLERANCE = 1e-4
# Two epochs of Adam on another CPU: 1.2e-4 was seen.
SCORE_TOLERANCE = 1e-3
PREDICTION = ("set", "id", "scores", "prediction", "tied", "answer", "correct")
# Columns that are measured; the others say what was measured, and tell rows apart.
MEASURED = {
    "results": {"value", "ci_low", "ci_high", "num_items", "num_groups"},
    "predictions": {"scores", "prediction", "tied", "answer", "correct"},
    "runs": {"counts", "notices"},
    "metrics": {"value"},
    "grids": {"probability", "prediction", "answer"},
}
BY_NATURE = {"runs.csv", "models.csv", "software.csv"}  # tables of the report
_HASH = re.compile(r"-[0-9a-f]{12}\b")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def outcome(world: World, name: str) -> dict[str, Table]:
    """The tables of a run, by name; empty ones are left out."""
    folder, run = world.run(name), RUNS[name]
    tables: dict[str, Table] = {}
    if (folder / "results.csv").exists():
        tables["results"] = [
            {column: value for column, value in row.items() if column != "run_dir"}
            for row in read_results(folder / "results.csv")
        ]
    run_dirs = [folder, *sorted(folder.glob("runs/*"))]
    if run.predictions:
        answers = [
            (run_dir, row) for run_dir in run_dirs for row in _lines(run_dir / "predictions.jsonl")
        ]
        tables["predictions"] = [_prediction(*answer, run.fine_tunes) for answer in answers]
    tables["metrics"] = [row for run_dir in run_dirs for row in _metrics(run_dir)]
    tables["grids"] = [row for run_dir in run_dirs for row in _grid(run_dir)]
    tables["distances"] = [
        _texts(row) for run_dir in run_dirs for row in _lines(run_dir / "distances.jsonl")
    ]
    tables["chosen"] = [row for run_dir in run_dirs for row in _chosen(run_dir)]
    tables["runs"] = [row for run_dir in run_dirs for row in _counts(run_dir)]
    for path in sorted(folder.glob("tables/*.csv")) if name == "report" else []:
        if path.name not in BY_NATURE:
            tables[f"table_{path.stem}"] = _read(path)
    if run.says is not None:
        lines = world.printed[name].splitlines()
        tables["said"] = [{"line": line} for line in lines if run.says in line]
    return {key: [_normal(row, world) for row in rows] for key, rows in tables.items() if rows}


def assert_committed(world: World, name: str, *, update: bool) -> None:
    """Compares the tables of a run with the committed ones, or writes those anew."""
    tables, folder = outcome(world, name), EXPECTED / name
    expected = {path.stem: _read(path) for path in folder.glob("*.csv")}
    if update:
        for old in folder.glob("*.csv"):
            old.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        for table, rows in tables.items():
            text = to_csv(updated(table, expected.get(table, []), rows))
            (folder / f"{table}.csv").write_text(text, encoding="utf-8")
        return
    mismatches = [
        line
        for table in sorted(expected.keys() | tables.keys())
        for line in differences(table, expected.get(table, []), tables.get(table, []))
    ]
    more = [f"and {len(mismatches) - SHOWN} more"] if len(mismatches) > SHOWN else []
    assert not mismatches, "\n".join([f"{name}:", *mismatches[:SHOWN], *more])


def to_csv(table: Table) -> str:
    """The table as it is committed: columns that are empty everywhere left out."""
    named = dict.fromkeys(column for row in table for column in row)
    columns = [column for column in named if any(row.get(column) for row in table)]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore", restval="")
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()


def differences(name: str, expected: Table, actual: Table) -> Iterator[str]:
    """A line for each row that is missing or new, and each cell that differs, with both values."""
    expected_rows, actual_rows = _by_identity(name, expected), _by_identity(name, actual)
    for key in expected_rows.keys() - actual_rows.keys():
        yield f"{name}: no longer there: {_show(expected_rows[key])}"
    for key in actual_rows.keys() - expected_rows.keys():
        yield f"{name}: new: {_show(actual_rows[key])}"
    for key, row in expected_rows.items():
        for column in sorted(row.keys() | actual_rows[key].keys()) if key in actual_rows else ():
            old, new = row.get(column, ""), actual_rows[key].get(column, "")
            if not are_close(old, new, _tolerance(column)):
                yield f"{name}: {column}: {old!r} expected, {new!r} found in {_show(row)}"


def updated(name: str, expected: Table, actual: Table) -> Table:
    """`actual`, with the expected cells where they say the same: a diff shows changes alone."""
    expected_rows, actual_rows = _by_identity(name, expected), _by_identity(name, actual)
    return [
        {
            column: old
            if are_close(old := expected_rows.get(key, {}).get(column, ""), new, _tolerance(column))
            else new
            for column, new in row.items()
        }
        for key, row in actual_rows.items()
    ]


def are_close(old: str, new: str, tolerance: float = TOLERANCE) -> bool:
    """Whether two cells say the same: words and whole numbers exactly, others almost."""
    if old == new:
        return True
    numbers = _NUMBER.findall(old), _NUMBER.findall(new)
    if _NUMBER.split(old) != _NUMBER.split(new):
        return False
    return all(
        old_number == new_number
        or (
            not (old_number.lstrip("-").isdigit() and new_number.lstrip("-").isdigit())
            and math.isclose(
                float(old_number), float(new_number), rel_tol=tolerance, abs_tol=tolerance
            )
        )
        for old_number, new_number in zip(*numbers, strict=True)
    )


def _tolerance(column: str) -> float:
    return SCORE_TOLERANCE if column == "scores" else TOLERANCE


def _by_identity(name: str, table: Table) -> dict[tuple[Any, ...], dict[str, str]]:
    """Rows by what tells them apart; by their number where that is everything."""
    rows: dict[tuple[Any, ...], dict[str, str]] = {}
    for number, row in enumerate(table):
        identity: tuple[Any, ...] = (number,)
        if (measured_columns := MEASURED.get(name)) is not None:
            identity = tuple(
                sorted((c, v) for c, v in row.items() if v and c not in measured_columns)
            )
        while identity in rows:
            identity = (*identity, "again")
        rows[identity] = row
    return rows


def _show(row: Mapping[str, str]) -> str:
    text = ", ".join(f"{column}={value}" for column, value in row.items() if value)
    return text if len(text) < 400 else f"{text[:400]}..."


def _normal(row: Mapping[str, str], world: World) -> dict[str, str]:
    def normal(text: str) -> str:
        return _HASH.sub("", text.replace(str(world.root), "WORLD").replace(str(ROOT), "CHECKOUT"))

    return {column: normal(text) for column, text in row.items()}


def _prediction(run_dir: Path, row: Mapping[str, Any], is_centred: bool) -> dict[str, str]:
    present_scores = [score for score in row["scores"] if score is not None]
    shift = sum(present_scores) / len(present_scores) if is_centred else 0.0
    scores = ["" if score is None else f"{score - shift:.5f}" for score in row["scores"]]
    cells = _texts({column: row[column] for column in PREDICTION})
    return {"run": run_dir.name, **cells, "scores": " ".join(scores)}


def _metrics(run_dir: Path) -> Table:
    """metrics.csv of what was trained; elsewhere it repeats the rows."""
    path = run_dir / "metrics.csv"
    rows = _read(path) if path.exists() else []
    trained = any(row["step"] != "0" for row in rows) or run_dir.parent.name != "runs"
    return [{"run": run_dir.name, **row} for row in rows] if trained else []


def _grid(run_dir: Path) -> Table:
    path = run_dir / "grid.json"
    if not path.exists():
        return []
    grid = json.loads(path.read_text(encoding="utf-8"))
    columns = ("probability", "prediction", "answer")
    return [
        {
            "grid": f"{grid['name']} {grid['wording']}",
            "row": str(row),
            "column": str(column),
            **{name: str(grid[name][i][j]) for name in columns},
        }
        for i, row in enumerate(grid["values"])
        for j, column in enumerate(grid["values"])
        if i != j
    ]


def _counts(run_dir: Path) -> Table:
    """What a run says about its items, in counts and in words."""
    if not (run_dir / "result.json").exists():
        return []
    result = json.loads((run_dir / "result.json").read_text(encoding="utf-8"))
    counts = result.get("facts", {}).get("scores", result["counts"])
    notices = "; ".join(result.get("notices", []))
    return [{"run": run_dir.name, "counts": json.dumps(counts, sort_keys=True), "notices": notices}]


def _chosen(run_dir: Path) -> Table:
    """The epoch whose model was kept."""
    path = run_dir / "checkpoints" / "best" / "chosen.json"
    if not path.exists():
        return []
    chosen = json.loads(path.read_text(encoding="utf-8"))
    return [_texts({"run": run_dir.name} | {c: chosen[c] for c in ("epoch", "step")})]


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {k: v if isinstance(v, str) else json.dumps(v) for k, v in values.items()}


def _read(path: Path) -> Table:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
