from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from probelight.reports.inoculation.section import INOCULATION
from probelight.reports.kit.section import flat
from probelight.results.load import Results, load_results


def drawn(results: Results) -> tuple[list[str], list[str]]:
    made = INOCULATION.made(results)
    return [one.name for one in made.figures], [one.name for one in made.tables]


def printed(results: Results, protocol: str) -> list[str]:
    return [one.name for one in flat(make(results) for make in INOCULATION.printed[protocol])]


def test_two_doses_have_a_figure_over_doses_and_one_of_their_epochs(demo_folder: Path) -> None:
    results = load_results(demo_folder)
    assert drawn(results) == (["inoculation", "selection"], ["inoculation"])
    assert printed(results, "inoculation") == ["inoculation"]
    assert printed(results, "original") == []
    [said] = INOCULATION.made(results).findings
    assert "The inoculation cost was 3.8 points" in said  # (301 - 282) / 500


@pytest.mark.parametrize(
    ("fixture", "figures", "tables"),
    [
        (
            "sweep",
            ["inoculation", "pareto", "selection"],
            ["inoculation", "pareto"],
        ),
        (
            "by_difficulty",
            ["inoculation", "selection"],
            ["inoculation_seeds", "inoculation"],
        ),
    ],
)
def test_what_a_folder_has_no_numbers_for_is_left_out(
    fixture: str, figures: list[str], tables: list[str], request: pytest.FixtureRequest
) -> None:
    results: Any = request.getfixturevalue(fixture)
    assert drawn(results) == (figures, tables)
