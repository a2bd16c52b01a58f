"""How an original-task model is trained, which every inoculation of it shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from probelight.callbacks.aggregate_checkpoint import ORIGINAL, AggregateCheckpoint
from probelight.callbacks.run_metrics import LearningCurve
from probelight.io.ranges import settings_from
from probelight.lightning_modules.base import ChoiceModule
from probelight.models.networks import model_fingerprint
from probelight.models.scorer import TrainedScorer
from probelight.protocols.engine.models import module_for, saved_module, source_of
from probelight.protocols.engine.predictions import (
    accuracy_row,
    chance_rows,
    predict,
    score_notices,
    subset_rows,
    tied_row,
    untouched_of,
)
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.engine.training import FitPlan, fit_choices
from probelight.protocols.inoculation.data import (
    Splits,
    first_stage_splits,
    original_splits,
    padded_num_choices,
)
from probelight.protocols.inoculation.settings import (
    FIRST,
    ORIGINAL_TASK,
    FirstStage,
    OriginalTask,
)
from probelight.protocols.jobs.job import RunContext
from probelight.results.details import OriginalParts
from probelight.results.predictions import write_predictions
from probelight.results.record import ModelSource, RunRecord, check_data, data_files
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder


def run_first_stage(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Make the run of a first stage from its config."""
    stage = FirstStage(**config["first"])
    task = OriginalTask(
        stage.name,
        stage.sets,
        first=stage,
        num_choices=config["num_choices"],
        seed=config["seed"],
    )
    splits = first_stage_splits(context, stage, task.seed)
    check_data(config["data"], splits.files)
    return train_first_stage(
        run, settings_from(ModelSettings, config["model"]), task, splits, context
    )


def run_original(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Make the run of an original task from its config."""
    model = settings_from(ModelSettings, config["model"])
    task = settings_from(OriginalTask, config["original"])
    splits = original_splits(context, task)
    check_data(config["data"], splits.files)
    before = [finished_run(run, key).best_dir for key in config["model_run"]]
    return train_original(run, model, task, splits, before[0] if before else None, context)


def train_first_stage(
    run: RunFolder,
    model: ModelSettings,
    task: OriginalTask,
    splits: Splits,
    context: RunContext,
) -> RunRecord:
    """Train what comes before the original task and leave its best epoch."""
    stage = task.first
    assert stage is not None
    module = module_for(
        model,
        "mc_qa",
        learning_rate=stage.learning_rate,
        seed=task.seed,
        num_choices=padded_num_choices(task.num_choices, [splits]),
    )
    keep, notices = _fit(run, module, stage, task.seed, splits, context)
    rows = _selection_rows(_row(FIRST, model, stage, task.seed, splits), keep, splits)
    record = RunRecord(protocol=FIRST, probe=stage.name, rows=tuple(rows), notices=notices)
    return completed(_with_task(record, model, task), run.best_dir, splits)


def train_original(
    run: RunFolder,
    model: ModelSettings,
    task: OriginalTask,
    splits: Splits,
    start: Path | None,
    context: RunContext,
) -> RunRecord:
    """Train the original task, leave its best epoch and its score on the report items.

    Args:
        run: The run's folder.
        model: The pre-trained model.
        task: The original task.
        splits: Its items.
        start: Model of the first stage; none begins with the pre-trained model.
        context: What the run is made under.
    """
    module = (
        module_for(model, "mc_qa", learning_rate=task.learning_rate, seed=task.seed)
        if start is None
        else saved_module(start, learning_rate=task.learning_rate)
    )
    module.num_choices = padded_num_choices(task.num_choices, [splits])
    keep, notices = _fit(run, module, task, task.seed, splits, context)
    assert keep.best is not None
    scorer = TrainedScorer(saved_module(run.best_dir))
    report = predict(scorer, {"original": splits.report}, context.trainer)["original"]
    groups = splits.groups(report.records)
    write_predictions(run, report.lines(groups))
    row = _row(ORIGINAL_TASK, model, task, task.seed, splits)
    rows = _selection_rows(row, keep, splits)
    row = replace(row, split="report", num_items=len(splits.report))
    chosen_row = replace(row, epoch=int(keep.best["epoch"]))
    rows.append(accuracy_row(report, groups, chosen_row))
    clean = untouched_of(splits.not_in_train(report.records))
    rows += subset_rows(report, groups, clean, replace(chosen_row, metric="accuracy"))
    rows.append(tied_row(report, chosen_row))
    rows += chance_rows(report, row)
    notices += (*report.notices, *score_notices(report))
    record = RunRecord(protocol=ORIGINAL_TASK, probe=task.name, rows=tuple(rows), notices=notices)
    return completed(_with_task(record, model, task), run.best_dir, splits)


def _fit(
    run: RunFolder,
    module: ChoiceModule,
    stage: OriginalTask | FirstStage,
    seed: int,
    splits: Splits,
    context: RunContext,
) -> tuple[AggregateCheckpoint, tuple[str, ...]]:
    """Train on questions and keep the epoch that is best on the selection items."""
    keep = AggregateCheckpoint(run.best_dir, monitor=ORIGINAL)
    plan = FitPlan(
        stage,
        seed=seed,
        callbacks=[keep, LearningCurve(stage.batch_size, len(splits.train))],
        description=f"{stage.name}: {len(splits.train)} questions, {stage.epochs} epochs",
    )
    watched = {"original": splits.selection}
    problems, encoded = fit_choices(module, splits.train, watched, run, plan, context)
    return keep, (*problems, *(f"training items: {notice}" for notice in encoded))


def _row(
    protocol: str,
    model: ModelSettings,
    stage: OriginalTask | FirstStage,
    seed: int,
    splits: Splits,
) -> Row:
    """Return the columns that all rows of a training share."""
    return replace(
        model.row,
        protocol=protocol,
        probe=stage.name,
        mode="full",
        num_train=len(splits.train),
        learning_rate=stage.learning_rate,
        seed=seed,
    )


def _selection_rows(row: Row, keep: AggregateCheckpoint, splits: Splits) -> list[Row]:
    """Return the accuracy on the selection items after each epoch."""
    return [
        replace(
            row,
            metric="accuracy",
            split="selection",
            epoch=int(scores["epoch"]),
            value=scores[ORIGINAL],
            num_items=len(splits.selection),
        )
        for scores in keep.history
    ]


def _with_task(record: RunRecord, model: ModelSettings, task: OriginalTask) -> RunRecord:
    """Return the record with what is known of the model and of the task."""
    source, parts = original_source(model, task)
    known = replace(record, model=model.label, source=source, seeds=(task.seed,))
    return known.with_details(parts)


def completed(record: RunRecord, checkpoint: Path, splits: Splits) -> RunRecord:
    """Return the record with the counts, files and weights that that of every trained run has.

    Args:
        record: What was run, measured and noticed.
        checkpoint: Folder of the model kept.
        splits: The items.
    """
    of_files = (notice for data in splits.files for notice in data.notices)
    return replace(
        record,
        counts={
            "train": len(splits.train),
            "selection": len(splits.selection),
            "reserved": len(splits.reserved),
            "report": len(splits.report),
        },
        notices=(*record.notices, *splits.notices, *of_files),
        data=data_files(splits.files),
        model_sha256=model_fingerprint(saved_module(checkpoint)),
    )


def finished_run(run: RunFolder, key: str) -> RunFolder:
    """Return the folder of another run of the command, which must be finished.

    Raises:
        FileNotFoundError: If it is not.
    """
    path = run.path.parent / key
    if not (path / "result.json").exists():
        raise FileNotFoundError(f"{run.key} needs {path / 'result.json'}, which is not there")
    return RunFolder.at(path)


def original_source(
    model: ModelSettings, task: OriginalTask
) -> tuple[ModelSource, OriginalParts | None]:
    """The same of an original-task model, with the parts of the task.

    Of a given checkpoint it is what the run that trained it recorded, if the folder still holds the
    weights of that run; of any other one nothing is known.
    """
    source = source_of(model)
    if task.checkpoint is None:
        return source, OriginalParts(sets=tuple(task.sets), train_items=task.train_items)
    recorded = _recorded(Path(task.checkpoint))
    if recorded is None:
        return replace(source, hub_id=None, revision=None), None
    known = recorded.source
    source = replace(source, hub_id=known.hub_id, revision=known.revision)
    return source, recorded.detail(OriginalParts)


def _recorded(checkpoint: Path) -> RunRecord | None:
    """What the run `RUN/checkpoints/best` is of wrote; None where it is none, or has changed."""
    path = checkpoint.resolve().parent.parent / "result.json"
    try:
        record = RunRecord.read(path)
    except (OSError, ValueError):
        return None
    if record.protocol != "original":
        return None
    # Only here: it imports torch and transformers.
    from probelight.models.networks import model_fingerprint

    same = model_fingerprint(saved_module(checkpoint)) == record.model_sha256
    return record if same else None
