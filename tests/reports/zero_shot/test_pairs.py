from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probelight.reports.kit.table import Cell
from tests.fixtures import subsets
from tests.fixtures.report import findings, labels, tables

WriteRun = Callable[..., Path]
# Right of 10 pairs, by sums and by means per token.
COUNTS = {"order": (10, 9), "agreement": (0, 1), "islands": (6, 6), "gaps": (9, 5)}


@pytest.fixture
def pairs(rows: SimpleNamespace) -> Callable[..., list[dict[str, Any]]]:
    """Makes the rows that a run leaves: the accuracy of each paradigm by two rules."""

    def make(model: str = "m1") -> list[dict[str, Any]]:
        common = {
            "protocol": "zero_shot", "model": model, "probe": "blimp", "control": "standard",
            "mode": "pseudo_log_likelihood", "split": "test",
        }  # fmt: skip
        by_mean = {**common, "scoring": "mean_token"}
        found = [
            rows.accuracy(25, 40, **common),
            {**common, "metric": "chance", "value": 0.5, "num_items": 40},
            rows.accuracy(21, 40, **by_mean),
        ]
        for name, counts in COUNTS.items():
            for right, own in zip(counts, (common, by_mean), strict=True):
                found.append(rows.accuracy(right, 10, **own, subset=subsets.paradigm(name)))
        return found

    return make


def test_paradigms_are_rows_behind_the_whole_and_models_columns(
    tmp_path: Path, write_run: WriteRun, pairs: Callable[..., list[dict[str, Any]]]
) -> None:
    write_run(tmp_path, "a", pairs())
    write_run(tmp_path, "b", pairs("m2"))
    found = tables(tmp_path)
    table = found["minimal_pairs"]
    assert labels(table) == [
        "UID", "n", "m1: accuracy %", "m1: mean_token %", "m2: accuracy %", "m2: mean_token %"
    ]  # fmt: skip
    assert [row[0].text for row in table.rows] == ["all", "agreement", "gaps", "islands", "order"]
    # 9 of 10: Wilson's interval is (0.5958, 0.9821); 5 of 10: (0.2366, 0.7634).
    gaps = (Cell("90.0", "59.6–98.2"), Cell("50.0", "23.7–76.3"))
    assert table.rows[2] == (Cell("gaps", "blimp, test"), Cell("10"), *gaps, *gaps)
    assert [cell.text for cell in table.rows[0][1:4]] == ["40", "62.5", "52.5"]
    assert len(table.records) == 10
    assert table.records[4]["uid"] == "order"
    assert table.records[4]["mean_token_accuracy"] == 0.9
    # They are no parts of a probe like its templates, and one row a probe stays the whole.
    assert "zero_shot_parts" not in found
    assert len(found["zero_shot"].rows) == 1


def test_paradigms_that_are_told_from_chance_are_named(
    tmp_path: Path, write_run: WriteRun, pairs: Callable[..., list[dict[str, Any]]]
) -> None:
    write_run(tmp_path, "a", pairs())
    assert findings(tmp_path)[-1] == (
        "Of the 4 kinds of minimal pairs of blimp, m1 is above chance on 2 (highest: order "
        "100.0%, gaps 90.0%) and below it on 1 (lowest: agreement 0.0%)."
    )
