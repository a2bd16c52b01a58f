from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from probelight.reports.build import build_report
from probelight.reports.grids.figures.ages import age_grid_figure
from probelight.reports.grids.figures.sizes import size_grid_figure
from probelight.reports.grids.tables import grid_table, sizes_table
from probelight.results.load import Results
from tests.fixtures.grids import OBJECTS, always_smaller, write_grid

WriteRun = Callable[..., Path]


def test_nothing_to_show() -> None:
    empty = Results("empty", ())
    for make in (grid_table, sizes_table, age_grid_figure, size_grid_figure):
        assert make(empty) is None


def test_the_page_has_a_section_with_both(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_grid(tmp_path, write_run, rows, "A", [20, 30], always_smaller)
    write_grid(tmp_path, write_run, rows, "sizes", OBJECTS, always_smaller)
    page = build_report(tmp_path).read_text()
    assert "What m knew before training" in page
    assert "Predictions over all pairs of values" in page
    assert page.count("<svg") >= 2
    for name in ("grid", "sizes_grid"):
        assert (tmp_path / "figures" / f"{name}.png").exists()
        assert (tmp_path / "figures" / f"{name}.svg").exists()
        assert (tmp_path / "tables" / f"{name}.csv").exists()
