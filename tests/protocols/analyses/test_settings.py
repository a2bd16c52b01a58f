from __future__ import annotations

import pytest

from probelight.io.errors import UsageError
from probelight.protocols.analyses.settings import GridSettings


def test_the_grids_are_those_of_each_wording_asked_for() -> None:
    grids = GridSettings(
        panels=["A", "sizes"], first_age=20, last_age=40, step=10, wordings=["paper", "released"]
    ).grids()
    assert [(one.name, one.wording) for one in grids] == [
        ("A", "paper"),
        ("sizes", "paper"),
        ("A", "released"),
        ("sizes", "released"),
    ]
    assert [int(value) for value in grids[0].values] == [20, 30, 40]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"first_age": 30, "last_age": 20}, "--grid.first_age 30"),
        ({"first_year": 1990, "last_year": 1995, "step": 10}, "--grid.first_year 1990"),
    ],
)
def test_values_that_make_no_grid_are_a_usage_error(settings: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        GridSettings(**settings)  # type: ignore[arg-type]
