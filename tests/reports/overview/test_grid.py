from __future__ import annotations

import re
from pathlib import Path

from probelight.reports.overview.grid import grid, verdicts_table
from probelight.reports.page.html import to_html
from probelight.reports.table import Cell
from probelight.results.load import load_results
from tests.fixtures.diagnostics import share
from tests.fixtures.grids import write_grid
from tests.fixtures.report import present, records
from tests.fixtures.results import inoculation_rows, write_run, zero_shot_rows


def test_a_row_without_answers_has_no_example(demo_folder: Path) -> None:
    results = load_results(demo_folder)
    found = present(grid(results))
    assert not found["has_examples"]
    assert [(skill.kind, shown) for skill, _, shown in found["rows"]] == [
        *[("asked", None)] * 6,
        ("inoculated", None),
    ]


def test_every_kind_of_skill_has_a_heading(tmp_path: Path) -> None:
    write_run(tmp_path, "a", zero_shot_rows("p", 40, 100, 2))
    write_run(tmp_path, "b", inoculation_rows())
    write_run(tmp_path, "c", [share(25, 34, "sensitivity")])
    write_grid(tmp_path, "A", [15, 25, 35], lambda i, j: 1.0)
    page = to_html(load_results(tmp_path), [])
    assert re.findall('<th class="kind"[^>]*>([^<]*)<', page) == [
        "Asked before training, and after examples",
        "Asked about every pair of values",
        "Inoculated with examples",
        "Prefers the good completion",
    ]


def test_nothing_that_can_be_judged_gives_no_grid(tmp_path: Path) -> None:
    write_run(tmp_path, "d", [share(8, 34)])
    assert grid(load_results(tmp_path)) is None


def test_the_grid_as_a_table(demo_folder: Path) -> None:
    table = present(verdicts_table(load_results(demo_folder)))
    assert table.rows[0] == (
        Cell("age comparison", "dev"),
        Cell("↗ learned it", "after 500 examples 85.1, without its language 62.3"),
    )
    record = records(table)[-1]
    assert record["probe"] == "hypernymy"
    assert (record["verdict"], record["in_part"]) == ("cannot tell", False)  # without a control
    assert (record["first_number"], record["first_value"]) == ("after 1,000 examples", 0.553)
    assert record["gain"] == "gain +26.2 points"  # its runs did not record what each item counted
    assert record["cost"] == "cost +3.8 points (+0.8 to +6.8)"
    assert "Cannot tell: " in table.note
