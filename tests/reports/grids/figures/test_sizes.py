from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from probelight.reports.grids.figures.ages import age_grid_figure
from probelight.reports.grids.figures.sizes import size_grid_figure
from probelight.reports.grids.tables import sizes_table
from probelight.results.load import load_results
from tests.fixtures.grids import OBJECTS, always_smaller, as_in_table_4, write_grid

WriteRun = Callable[..., Path]


def test_a_tie_is_shown_as_one(tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace) -> None:
    write_grid(tmp_path, write_run, rows, "sizes", ["nail", "pen"], lambda i, j: 0.5)
    (path,) = tmp_path.glob("runs/*/grid.json")
    held = json.loads(path.read_text())
    path.write_text(json.dumps({**held, "prediction": [[None, None], [None, None]]}))
    results = load_results(tmp_path)
    table, figure = sizes_table(results), size_grid_figure(results)
    assert table is not None
    assert figure is not None
    assert [cell.text for cell in table.rows[0][2:]] == ["–", "tie"]
    assert [record["correct"] for record in table.records] == [0.5, 0.5]
    assert "50.0% right, 1 of 2" in figure.svg
    assert "✗" not in figure.svg


def test_figures_say_what_was_said(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    for name in "ABCD":
        write_grid(tmp_path, write_run, rows, name, [20, 30, 40], always_smaller, "roberta-large")
    write_grid(tmp_path, write_run, rows, "A", [20, 30], always_smaller, "other")
    write_grid(tmp_path, write_run, rows, "sizes", OBJECTS, as_in_table_4, "roberta-large")
    results = load_results(tmp_path)
    ages, sizes = age_grid_figure(results), size_grid_figure(results)
    assert ages is not None
    assert sizes is not None
    for text in (">other<", ">roberta-large<", "paper 98", "paper 12", "paper always older"):
        assert text in ages.svg
    assert ages.svg.count("A  50.0%") == 2
    assert sizes.svg.count("✗") == 18  # the model's panel and the paper's
    assert "83.9% right, 47 of 56 · table 4" in sizes.svg
    assert ages.png.startswith(b"\x89PNG")
    again = age_grid_figure(results)
    assert again is not None
    assert (again.svg, again.png) == (ages.svg, ages.png)
