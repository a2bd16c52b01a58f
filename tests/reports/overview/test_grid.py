from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.overview.grid import grid, verdicts_table
from probelight.reports.page.html import to_html
from probelight.reports.table import Cell
from probelight.results.load import load_results
from tests.fixtures.diagnostics import share
from tests.fixtures.report import records


def test_a_row_without_answers_has_no_example(demo_folder: Path) -> None:
    results = load_results(demo_folder)
    found = grid(results)
    assert found is not None
    assert not found["has_examples"]
    assert [(skill.kind, shown) for skill, _, shown in found["rows"]] == [
        *[("asked", None)] * 6,
        ("inoculated", None),
    ]
    page = to_html(results, [])
    for heading in ("Asked before training, and after examples", "Inoculated with examples"):
        assert page.count(f">{heading}</th>") == 1


def test_nothing_that_can_be_judged_gives_no_grid(
    tmp_path: Path, write_run: Callable[..., Path]
) -> None:
    write_run(tmp_path, "d", [share(8, 34)])
    assert grid(load_results(tmp_path)) is None


def test_the_grid_as_a_table(demo_folder: Path) -> None:
    table = verdicts_table(load_results(demo_folder))
    assert table is not None
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
