from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl
import pytest

from probelight.reports.grids.figures.ages import age_grid_figure
from probelight.results.load import load_results
from tests.fixtures.grids import always_smaller, write_grid

WriteRun = Callable[..., Path]


def test_the_same_panel_over_other_values_opens_a_row_of_its_own(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    write_grid(tmp_path / "in", write_run, rows, "A", [20, 30], always_smaller)
    write_grid(tmp_path / "out", write_run, rows, "A", [200, 300], always_smaller, "m ")
    write_grid(tmp_path / "more", write_run, rows, "A", [200, 300], always_smaller, "m", "released")
    figure = age_grid_figure(load_results(tmp_path))
    assert figure is not None
    assert "m · paper wording" in figure.svg
    assert "m · released wording" in figure.svg
    assert figure.svg.count("A  50.0%") == 3


def test_a_users_matplotlibrc_has_no_say(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_grid(tmp_path, write_run, rows, "A", [20, 30], always_smaller)
    results = load_results(tmp_path)
    before = age_grid_figure(results)
    monkeypatch.setitem(mpl.rcParams, "image.cmap", "jet")
    monkeypatch.setitem(mpl.rcParams, "axes.labelcolor", "red")
    after = age_grid_figure(results)
    assert before is not None
    assert after is not None
    assert after.png == before.png
