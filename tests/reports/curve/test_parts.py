from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from probelight.reports.curve.parts import curve_parts_table
from probelight.reports.kit.table import Cell
from probelight.results.load import load_results
from tests.fixtures import subsets
from tests.fixtures.curves import shares
from tests.fixtures.report import named

Write = Callable[..., None]
WriteRun = Callable[..., Path]


def test_parts_untrained_and_at_the_end(tmp_path: Path, write_curve_runs: Write) -> None:
    parts = [
        subsets.template("has"),
        subsets.template("larger"),
        subsets.choices("older", "younger"),
    ]
    more = {"probe": "always_never", "subsets": parts, "seeds": (1,), "sizes": (0, 62, 125)}
    write_curve_runs(tmp_path, shares, **more)
    table = curve_parts_table(load_results(tmp_path))
    assert table is not None
    assert [row[2].text for row in table.rows] == ["has", "larger", "older/younger"]
    first = named(table, 0)
    assert (first["n"].text, first["N"].text) == ("30", "125")
    assert first["paper %"] == Cell("61")
    assert named(table, 1)["paper %"] == Cell("47 / 30")
    record = table.records[0]
    # Every fourth item from the first on, counted in the hits themselves.
    assert record["num_items"] == 30
    assert 0.3 < float(str(record["zero_shot"])) < 0.7
    assert float(str(record["trained"])) > 0.7
