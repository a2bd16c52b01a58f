"""An original-task model: its best epoch is kept, and what is reported of it can be recounted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from probelight.commands.inoculation import original_task
from probelight.commands.inoculation.data import Splits, original_splits
from probelight.commands.inoculation.original_task import original_jobs, original_source
from probelight.commands.inoculation.settings import IntermediateTask, OriginalTask
from probelight.models.networks import model_fingerprint
from probelight.models.registry import ModelSettings
from probelight.results.details import OriginalParts
from probelight.results.record import ModelSource, RunRecord
from probelight.results.row import Row
from probelight.runs.context import RunContext
from probelight.training.modules import module_for, saved_module
from tests.fixtures import subsets
from tests.fixtures.rows import read_predictions
from tests.fixtures.tiny import make_runs

Train = Callable[[OriginalTask], list[RunRecord]]


@pytest.fixture
def train(tiny_model: Path, tmp_path: Path, context: RunContext) -> Train:
    """Makes the runs of an original task, that of its first stage before it."""

    def run(task: OriginalTask) -> list[RunRecord]:
        jobs = original_jobs(
            ModelSettings(str(tiny_model), max_length=32, kind="transformer"), task, context
        )
        return list(make_runs(jobs, tmp_path, context).values())

    return run


def rows_of(record: RunRecord, split: str, metric: str = "accuracy") -> list[Row]:
    return [row for row in record.rows if (row.split, row.metric) == (split, metric)]


def test_the_best_epoch_is_kept_and_reported_on_other_items(
    train: Train, task: OriginalTask, tmp_path: Path
) -> None:
    [record] = train(task)
    assert record.counts == {"train": 32, "selection": 8, "reserved": 24, "report": 16}
    selection = rows_of(record, "selection")
    assert [(row.epoch, row.num_items) for row in selection] == [(1, 8), (2, 8)]
    [reported] = rows_of(record, "report")
    best = max(row.value for row in selection)
    assert next(row.value for row in selection if row.epoch == reported.epoch) == best
    correct = [line["correct"] for line in read_predictions(tmp_path)]
    assert reported.value == pytest.approx(fmean(correct))
    assert (reported.num_items, reported.num_groups) == (16, 8)  # clusters of two
    assert (reported.num_train, reported.learning_rate, reported.seed) == (32, 1e-3, 5)
    assert [row.value for row in rows_of(record, "report", "chance")] == [0.2]
    [best] = tmp_path.glob("runs/*/checkpoints/best")
    assert record.model_sha256 == model_fingerprint(saved_module(best))
    assert (record.protocol, record.probe, record.seeds) == ("original", "colours", (5,))


def test_the_score_without_relatives_is_given_where_some_items_have_one(
    train: Train, task: OriginalTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leaked(context: RunContext, task: OriginalTask) -> Splits:
        splits = original_splits(context, task)
        first = splits.report[0]
        meta = {**first.meta, "cluster": splits.train[0].meta["cluster"]}
        return replace(splits, report=(replace(first, meta=meta), *splits.report[1:]))

    monkeypatch.setattr(original_task, "original_splits", leaked)
    [record] = train(replace(task, report_sets=task.sets, epochs=1))
    overall, clean = rows_of(record, "report")
    assert (overall.subset, overall.num_items) == (None, 22)
    assert (clean.subset, clean.num_items) == (subsets.UNTOUCHED, 21)


def test_the_task_begins_with_the_model_of_its_first_stage(
    train: Train, task: OriginalTask, tiny_probes: Path
) -> None:
    stage = IntermediateTask(
        "race", [str(tiny_probes / "second.yaml")], epochs=1, learning_rate=1e-3
    )
    first, original = train(replace(task, first=stage, learning_rate=1e-50, epochs=1))
    assert (first.protocol, first.probe) == ("first", "race")
    assert {row.split for row in first.rows} == {"selection"}  # it is reported by nobody
    # The rate is 0 in single precision: the weights are those that it began with.
    assert original.model_sha256 == first.model_sha256


def test_a_checkpoint_is_what_the_run_that_made_it_recorded(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "original-x" / "checkpoints" / "best"
    module_for(ModelSettings(kind="esim"), "mc_qa").save_pretrained(folder)
    original_parts = OriginalParts(sets=("sciq",))
    record = RunRecord(
        protocol="original",
        source=ModelSource(loaded_from="elsewhere", hub_id="roberta-large"),
        details=(original_parts,),
        model_sha256=model_fingerprint(saved_module(folder)),
    )
    path = folder.parent.parent / "result.json"
    path.write_text(json.dumps(record.to_json()))
    task = OriginalTask("science", ["arc_easy"], checkpoint=str(folder))
    model = ModelSettings("bert-base-uncased", kind="transformer")
    model_source = ModelSource(loaded_from="bert-base-uncased", hub_id="roberta-large")
    assert original_source(model, task) == (model_source, original_parts)
    unknown = replace(model_source, hub_id=None), None
    retrained = replace(record, model_sha256="0" * 64)  # other weights since
    path.write_text(json.dumps(retrained.to_json()))
    assert original_source(model, task) == unknown
    path.unlink()
    assert original_source(model, task) == unknown
    science = OriginalTask("science", ["arc_easy"])
    source, of_own = original_source(model, science)
    assert (source.hub_id, of_own) == ("bert-base-uncased", OriginalParts(sets=("arc_easy",)))
