from __future__ import annotations

from pathlib import Path

import pytest

from probelight.probes.record import Record
from probelight.protocols import cli
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.zero_shot.measures import rank_rows
from probelight.results.row import Row
from tests.fixtures.rows import read_results


def test_rows_worked_out_by_hand() -> None:
    records = [Record(str(i), "a [MASK]", ("x", "y"), i % 2) for i in range(4)]
    ranks = Predictions("p", records, [[1, 10], [3, 11], [10, 9], [40, 2]])
    found = rank_rows(ranks, ["a", "b", "c", "c"], Row(model="m"))
    rows = {row.metric: row for row in found}
    # Right answers have the ranks 1, 11, 10 and 2.
    assert rows["median_gold_rank"].value == 6.0
    assert rows["gold_in_top10"].value == 3 / 4
    assert rows["all_in_top10"].value == 2 / 4
    assert {row.num_items for row in rows.values()} == {4}
    assert [row.num_groups for row in found] == [None, 3, 3]
    assert {row.model for row in rows.values()} == {"m"}


def test_zero_shot_with_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["zero-shot", "--probes", "multihop_small", "--trainer.progress_bar", "false"]
    assert cli.main([*command, "--output_dir", str(tmp_path), "--ranks", "true"]) == 0
    rows = {r["metric"]: r for r in read_results(tmp_path / "results.csv") if r["subset"] == ""}
    assert float(rows["median_gold_rank"]["value"]) >= 1
    assert rows["all_in_top10"]["num_items"] == rows["accuracy"]["num_items"]
    assert rows["all_in_top10"]["probe"] == "multihop_small"
    # Without them it is another command: its runs are others.
    assert cli.main([*command, "--output_dir", str(tmp_path)]) == cli.USAGE_ERROR
    assert "ranks" in capsys.readouterr().err
