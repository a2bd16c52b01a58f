from __future__ import annotations

from pathlib import Path

from probelight.reports.overview.grid import verdicts_table
from probelight.reports.table import Cell
from probelight.results.load import load_results


def test_the_grid_as_a_table(demo_folder: Path) -> None:
    table = verdicts_table(load_results(demo_folder))
    assert table is not None
    assert table.rows[0] == (
        Cell("age comparison", "dev"),
        Cell("↗ learned it", "after 500 examples 85.1, without its language 62.3"),
    )
    record = table.records[-1]
    assert record["probe"] == "hypernymy"
    assert (record["verdict"], record["in_part"]) == ("cannot tell", False)  # without a control
    assert (record["first_number"], record["first_value"]) == ("after 1,000 examples", 0.553)
    assert record["gain"] == "gain +26.2 points"  # its runs did not record what each item counted
    assert record["cost"] == "cost +3.8 points (+0.8 to +6.8)"
    assert "Cannot tell: " in table.note
