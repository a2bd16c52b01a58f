"""Rows of an inoculation whose models give constant scores, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from probelight.callbacks.aggregate_checkpoint import AGGREGATE, ORIGINAL, PROBE
from probelight.commands.inoculation.data import (
    REPORTED_ORIGINAL,
    REPORTED_PROBE,
    ScoredSet,
    Splits,
    Tasks,
)
from probelight.commands.inoculation.rows import report_rows, reported_hits
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.results.hits import read_sides
from probelight.results.measured import Predictions
from probelight.results.row import Row
from tests.fixtures import subsets

HISTORY = [{"epoch": 1, "step": 1, PROBE: 0.5, ORIGINAL: 0.5, AGGREGATE: 0.5}]


CONSTANT, RIGHT, WRONG, TWO = [0.0] * 4, [1.0, 0, 0, 0], [0.0, 1, 0, 0], [1.0, 1, 0, 0]


def predicted(
    probe: list[Record],
    probe_scores: list[list[float]],
    original: list[Record],
    original_scores: list[list[float]],
) -> dict[ScoredSet, Predictions]:
    return {
        REPORTED_PROBE: Predictions("report_probe", probe, probe_scores),
        REPORTED_ORIGINAL: Predictions("report_original", original, original_scores),
    }


def splits(name: str, records: list[Record]) -> Splits:
    config = ProbeConfig(name, "mc_qa", 4, 0.25)
    return Splits((), (), tuple(records), (), (ProbeData(config, (), (), ()),))


def record(name: str, index: int, **meta: Any) -> Record:
    meta = {"source_set": name, "cluster": f"c{index // 2}", **meta}
    return Record(str(index), f"{name} {index}?", ("a", "b", "c", "d"), 0, meta, position=index)


def test_the_original_task_also_without_what_train_has() -> None:
    """Four questions, of which the second's stem, in capitals, is in the train file."""
    probe, original = ([record(name, i) for i in range(4)] for name in ("probe", "original"))
    repeated = replace(original[1], stem=original[1].stem.upper(), choices=("x", "y"), answer=1)
    config = ProbeConfig("original", "mc_qa", 4, 0.25, group_by="stem")
    train = ProbeData(config, (repeated,), (), ())
    data = replace(splits("original", original), train_files=(train,))
    predictions = predicted(probe, [RIGHT] * 4, original, [RIGHT, RIGHT, WRONG, RIGHT])
    worse = predicted(probe, [RIGHT] * 4, original, [RIGHT, RIGHT, WRONG, WRONG])
    rows = report_rows(Row(), Tasks(splits("probe", probe), data), predictions, worse, HISTORY)
    values = {
        row.metric: (row.value, row.num_items) for row in rows if row.subset == subsets.UNTOUCHED
    }
    assert values["original_accuracy_before"] == (pytest.approx(2 / 3), 3)
    assert values["original_accuracy_after"] == (pytest.approx(1 / 3), 3)
    assert values["inoculation_cost"] == (pytest.approx(1 / 3), 3)
    assert "probe_accuracy" not in values


@pytest.fixture
def rows() -> dict[tuple[str, str], Row]:
    difficulty = {"hops": 1, "distractor_type": "sister", "distractor_hops": 1}
    probe = [record("probe", i, **difficulty) for i in range(4)]
    original = [record("original", i) for i in range(4)]
    scores_before = predicted(probe, [CONSTANT] * 4, original, [RIGHT, RIGHT, TWO, WRONG])
    scores_after = predicted(probe, [RIGHT, TWO, TWO, CONSTANT], original, [CONSTANT] * 4)
    tasks = Tasks(splits("probe", probe), splits("original", original))
    report = report_rows(Row(), tasks, scores_before, scores_after, HISTORY)
    return {(row.metric, row.subset_text): row for row in report}


def test_a_constant_output_is_at_chance(rows: dict[tuple[str, str], Row]) -> None:
    subset = "hops=1 distractors=sister:1"
    assert rows["probe_accuracy_before", ""].value == 0.25
    assert rows["original_accuracy_after", ""].value == 0.25
    assert rows["difficulty_accuracy_before", subset].value == 0.25
    assert rows["probe_tied_share_before", ""].value == 1.0
    assert rows["original_tied_share_after", ""].value == 1.0


def test_ties_are_parts_of_flips_clusters_and_heat_maps(rows: dict[tuple[str, str], Row]) -> None:
    assert rows["probe_accuracy", ""].value == (1 + 1 / 2 + 1 / 2 + 1 / 4) / 4
    assert rows["difficulty_accuracy", "hops=1 distractors=sister:1"].value == 2.25 / 4
    assert rows["probe_tied_share", ""].value == 0.75
    # Clusters of two: 1 x 1/2 and 1/2 x 1/4; before 1/4 x 1/4 each.
    assert rows["strict_cluster_accuracy", ""].value == (1 / 2 + 1 / 8) / 2
    assert rows["strict_cluster_accuracy_before", ""].value == 1 / 16
    # 1, 1, 1/2 and 0 before, 1/4 each after.
    assert rows["inoculation_cost", ""].value == pytest.approx((2.5 - 1) / 4)
    assert rows["mcnemar_lost", ""].value == pytest.approx(3 / 4 + 3 / 4 + 1 / 4)
    assert rows["mcnemar_gained", ""].value == pytest.approx(1 / 4)


def test_hits_hold_what_each_reported_item_counts() -> None:
    probe = [record("probe", i) for i in range(4)]
    original = [record("original", i) for i in range(3)]
    scores_before = predicted(probe, [RIGHT, WRONG, TWO, RIGHT], original, [RIGHT, RIGHT, WRONG])
    scores_after = predicted(probe, [RIGHT, RIGHT, RIGHT, WRONG], original, [WRONG, RIGHT, WRONG])
    tasks = Tasks(splits("probe", probe), splits("original", original))
    hits = reported_hits(tasks, scores_before, scores_after)
    assert hits["probe"]["before"] == [1.0, 0.0, 0.5, 1.0]
    assert hits["probe"]["after"] == "1110"
    assert hits["probe"]["clusters"] == [0, 0, 1, 1]
    assert (hits["original"]["before"], hits["original"]["after"]) == ("110", "010")
    sides = read_sides(hits, "hits.json")
    assert sides["original"].groups == (0, 1, 2)
    assert sides["probe"].items != sides["original"].items
    cut = replace(tasks, probe=replace(tasks.probe, num_left_out=1))
    assert reported_hits(cut, scores_before, scores_after)["probe"]["clusters"] is None
