from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reports.grids.facts import Grid

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
