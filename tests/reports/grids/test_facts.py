from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probelight.reports.grids.facts import Grid, grids
from probelight.results.load import load_results
from tests.fixtures.grids import OBJECTS, always_smaller, write_grid
from tests.fixtures.report import findings

WriteRun = Callable[..., Path]


def test_ties_count_one_half_and_are_no_error() -> None:
    grid = Grid(
        model="m", name="sizes", title="t", wording="released", axes=("a", "b"),
        candidates=("smaller", "larger"), values=("nail", "pen"), rows={},
        probability=((None, 0.5), (0.8, None)), prediction=((None, None), (0, None)),
        answer=((None, 0), (1, None)),
    )  # fmt: skip
    assert [grid.said(0, 1), grid.said(1, 0), grid.said(0, 0)] == ["tie", "smaller", None]
    assert [grid.credit(0, 1), grid.credit(1, 0), grid.credit(0, 0)] == [0.5, 0.0, 0.0]


def test_a_grid_knows_its_span() -> None:
    grid = Grid(
        model="m", name="A", title="t", wording="paper", axes=("a", "b"),
        candidates=("younger", "older"), values=(15, 20, 25), rows={},
        probability=(), prediction=(), answer=(),
    )  # fmt: skip
    assert grid.span == "15–25 in steps of 5"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"axes": -1}, "`axes` must be a list, not -1"),
        ({"candidates": []}, r"`candidates\[0\]` is missing"),
        ({"values": [1, 2, 3, 4]}, "`values` are not those of grid sizes"),
        ({"values": ["sun"]}, "`probability` is not 1 rows of 1 values"),
        ({"prediction": [[None, 2], [0, None]]}, r"`prediction\[0\]\[1\].* must be 0 or 1"),
        ({"answer": []}, "`answer` is not 4 rows of 4 values"),
    ],
)
def test_a_damaged_grid_is_named_and_the_others_are_shown(
    damage: dict[str, Any], said: str, tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for model in ("sound", "other"):
        write_grid(tmp_path, write_run, rows, "sizes", OBJECTS[:4], always_smaller, model=model)
    [path] = tmp_path.glob("runs/*-other-*/grid.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    results = load_results(tmp_path)
    assert [grid.model for grid in grids(results)] == ["sound"]
    [sentence] = [one for one in findings(tmp_path) if one.startswith("Not shown: ")]
    assert sentence.startswith(f"Not shown: runs/{path.parent.name}/grid.json: ")
    assert re.search(said, sentence)
