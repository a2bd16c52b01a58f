"""Heat maps by hops and distractors, on counts worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

from reports.inoculation.figures.difficulty import difficulty_figure
from results.load import Results

WriteRun = Callable[..., Path]


def test_figure_names_rows_columns_and_small_cells(by_difficulty: Results) -> None:
    figure = difficulty_figure(by_difficulty)
    assert figure is not None
    nodes = ElementTree.fromstring(figure.svg).iter("{http://www.w3.org/2000/svg}text")
    said = {"".join(node.itertext()) for node in nodes}
    assert {"hypernymy (test), 1 hop", "random", "up/down 1", "k = 100", "95", "50"} <= said
    assert "embedded · originally definitions" in said
    assert figure == difficulty_figure(by_difficulty)
