"""Heat maps by hops and distractors, on counts worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure as Canvas

from probelight.reports.concepts.difficulty import Questions, Shade, WrongAnswers
from probelight.reports.concepts.figures import _ON_DARK, _ON_FEW, _draw_map, difficulty_figure
from probelight.results.load import Results

WriteRun = Callable[..., Path]


def test_figure_names_rows_columns_and_small_cells(by_difficulty: Results) -> None:
    figure = difficulty_figure(by_difficulty)
    assert figure is not None
    nodes = ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}text")
    said = {"".join(node.itertext()) for node in nodes}
    assert {"hypernymy (test), 1 hop", "random", "up/down 1", "k = 100", "95", "50"} <= said
    assert "embedded · originally definitions" in said
    assert figure == difficulty_figure(by_difficulty)


def test_a_cell_of_under_ten_items_has_no_shade() -> None:
    rows = [Questions("hypernymy", "test", hops) for hops in (1, 2)]
    columns = [WrongAnswers(0, "random", 0), WrongAnswers(1, "sister", 1)]
    heat = {(rows[0], columns[0]): Shade(0.9, 10), (rows[1], columns[0]): Shade(1.0, 9)}
    axis = Canvas().subplots()
    _draw_map(axis, heat, rows, columns)
    cover = np.asarray(axis.images[1].get_array())
    assert cover[..., 3].tolist() == [[0, 0], [1, 0]]
    said = {text.get_text(): text.get_color() for text in axis.texts}
    assert said == {"90": _ON_DARK, "10": _ON_DARK, "100": _ON_FEW, "(9)": _ON_FEW}
