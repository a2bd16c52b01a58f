from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl
import pytest

from reports.curve.figures.controls import control_figures
from reports.inoculation.figures.doses import inoculation_figure
from reports.inoculation.figures.selection import trajectory_figure
from reports.kit.figure import Figure
from reports.zero_shot.figures import zero_shot_figure
from results.load import Results, load_results

WriteRun = Callable[..., Path]


def curve_figure(results: Results) -> Figure | None:
    return next(iter(control_figures(results)), None)


MAKERS = (zero_shot_figure, curve_figure, inoculation_figure, trajectory_figure)


def test_nothing_to_show_is_no_figure() -> None:
    assert [make(Results("empty", ())) for make in MAKERS] == [None] * 4


def test_single_points_and_missing_intervals_can_be_drawn(
    tmp_path: Path, write_run: WriteRun, rows: SimpleNamespace
) -> None:
    bare = {"metric": "accuracy", "value": 0.5, "model": "m", "probe": "p"}
    write_run(tmp_path, "a", [{**bare, "protocol": "zero_shot"}])
    write_run(tmp_path, "b", [{**bare, "protocol": "curve", "num_train": 0}])
    cell = {"protocol": "inoculation", "dose": 100, "metric": "probe_accuracy"}
    write_run(tmp_path, "c", [{**bare, **cell}])
    results = load_results(tmp_path)
    assert [figure is not None for figure in (make(results) for make in MAKERS)] == [
        True,
        True,
        True,
        False,
    ]


@pytest.fixture
def loud_matplotlibrc() -> Iterator[None]:
    with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path"}):
        yield


@pytest.mark.parametrize("make", MAKERS)
def test_same_bytes_whatever_the_users_settings(
    make: Callable[[Results], Figure | None], demo_folder: Path, loud_matplotlibrc: None
) -> None:
    demo = load_results(demo_folder)
    here = make(demo)
    with mpl.rc_context():
        mpl.rcdefaults()
        there = make(demo)
    assert here == there
    assert here is not None
    assert not re.search(r"<dc:date>|\d{4}-\d\d-\d\dT", here.svg)
