"""What is beside a zero-shot accuracy, worked out by hand, and what a run is refused for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from probelight.io.errors import UsageError
from probelight.probes.catalog import ProbeConfig
from probelight.probes.record import Record
from probelight.probes.source import ProbeData
from probelight.protocols.engine.predictions import Predictions
from probelight.protocols.engine.settings import DEFAULT_FILE, ModelSettings
from probelight.protocols.jobs.job import RunContext, TrainerSettings
from probelight.protocols.zero_shot.command import load_sets, score_set, zero_shot_jobs
from probelight.protocols.zero_shot.measures import zero_shot_rows
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder

SIZES = ("smaller", "larger")
RECORDS = tuple(
    Record(stem, stem, SIZES, answer, {"template": template})
    for stem, answer, template in zip(
        "abcd", (0, 0, 1, 0), ("one", "one", "two", "two"), strict=True
    )
)
# Right, wrong, a tie, right.
SAID = Predictions("said", RECORDS, [[2.0, 1.0], [1.0, 2.0], [3.0, 3.0], [2.0, 0.0]])


# Choices of its own for one item: what all items share is then a position.
MIXED = (replace(RECORDS[0], choices=("heavier", "lighter")), *RECORDS[1:])
POSITIONS = ("choice 1", "choice 2")


@pytest.mark.parametrize(
    ("candidates", "records", "classes"),
    [(SIZES, RECORDS, SIZES), ((), RECORDS, SIZES), ((), MIXED, POSITIONS)],
)
def test_an_accuracy_has_what_it_must_be_read_beside(
    candidates: tuple[str, ...], records: tuple[Record, ...], classes: tuple[str, str]
) -> None:
    config = ProbeConfig("sizes", "mc_mlm", 2, 0.5, candidates=candidates, group_by="stem")
    said = replace(SAID, records=records)
    rows = zero_shot_rows(said, ProbeData(config, records, (), ()), Row(model="m"))
    values = {(row.metric, row.subset_text): (row.value, row.num_items) for row in rows}
    assert values == {
        ("accuracy", ""): (0.625, 4),
        ("tied_share", ""): (0.25, 4),
        ("near_tied_share", ""): (0.0, 4),
        ("chance", ""): (0.5, 4),
        ("majority_accuracy", ""): (0.75, 4),
        ("macro_accuracy", ""): (pytest.approx((2 / 3 + 1 / 2) / 2), 4),
        ("predicted_share", classes[0]): (0.625, 4),
        ("predicted_share", classes[1]): (0.375, 4),
        ("accuracy", "template=one"): (0.5, 2),
        ("accuracy", "template=two"): (0.75, 2),
    }
    assert {row.model for row in rows} == {"m"}


def test_a_set_that_changed_behind_the_plan_is_refused(tmp_path: Path) -> None:
    context = RunContext(TrainerSettings(accelerator="cpu", progress_bar=False))
    [one] = load_sets(["age_small"], DEFAULT_FILE, None, None)
    [job] = zero_shot_jobs([one], [ModelSettings()], context.trainer)
    config = {**job.config, "data": ["0" * 64]}
    run = RunFolder(tmp_path / "runs", job.name, config)
    with pytest.raises(UsageError, match="changed since it was planned"):
        score_set(run, config, context)
    assert run.result() is None
