"""Heat maps by hops and distractors, on counts worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reports.concepts.figures import _PALE, difficulty_figure
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


@pytest.mark.parametrize(("fixture", "number"), [("by_concept", 3), ("by_difficulty", 0)])
def test_a_cell_of_under_ten_items_is_but_framed_in_its_shade(
    fixture: str, number: int, request: pytest.FixtureRequest
) -> None:
    figure = difficulty_figure(request.getfixturevalue(fixture))
    assert figure is not None
    assert figure.svg.count(f"fill: {_PALE}") == number
