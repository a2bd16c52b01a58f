from __future__ import annotations

from pathlib import Path

from reports.kit.table import Cell
from reports.overview.section import verdicts_table
from results.load import load_results


def test_the_grid_as_a_table(demo_folder: Path) -> None:
    table = verdicts_table(load_results(demo_folder))
    assert table is not None
    assert table.rows[0] == (
        Cell("age comparison", "dev"),
        Cell("↗ learned it", "after 500 examples 85.1, without its language 62.3"),
    )
    record = table.records[-1]
    assert record["probe"] == "hypernymy"
    assert (record["verdict"], record["in_part"]) == ("learned it", True)
    assert (record["first_number"], record["first_value"]) == ("before", 0.291)
    assert "Cannot tell: " in table.note
