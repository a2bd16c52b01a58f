"""How an original-task model is trained, which every inoculation of it shares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from probelight.callbacks.aggregate_checkpoint import ORIGINAL, AggregateCheckpoint
from probelight.callbacks.run_metrics import LearningCurve
from probelight.commands.inoculation.data import (
    Splits,
    TaskSpec,
    padded_num_choices,
)
from probelight.commands.inoculation.settings import IntermediateTask, OriginalTask
from probelight.evaluation.scorers import model_row, predict, source_of
from probelight.lightning_modules.base import ChoiceModule
from probelight.models.checkpoint_files import trained_dtype
from probelight.models.networks import model_fingerprint
from probelight.models.scorer import TrainedScorer
from probelight.models.settings import ModelSettings
from probelight.results.details import OriginalParts
from probelight.results.measured import (
    Predictions,
    accuracy_row,
    chance_rows,
    score_notices,
    subset_rows,
    tied_row,
    untouched_of,
)
from probelight.results.predictions import write_predictions
from probelight.results.record import ModelSource, RunRecord, check_data, data_files
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.memory import MemoryNeed
from probelight.training.fit import FitPlan, fit_choices, planned_memory
from probelight.training.modules import module_for, saved_module


def train_task(
    run: RunFolder,
    spec: TaskSpec,
    first_stage: str | None,
    context: RunContext,
) -> RunRecord:
    """Train an original task, or what comes before it, and keep its best epoch.

    It begins with the model that the run `first_stage` left, or else with the pre-trained one.
    """
    model, task, seed, splits = spec.model, spec.task, spec.seed, spec.splits(context)
    check_data(spec.data_sha256, splits.files)
    kwargs = dict[str, Any](learning_rate=task.learning_rate, tuning=task.tuning, seed=seed)
    if first_stage is not None:
        module = saved_module(finished_run(run, first_stage).best_dir, dtype=model.dtype, **kwargs)
    else:
        module = module_for(model, "mc_qa", **kwargs)
    module.num_choices = padded_num_choices(spec.num_choices, splits)

    keep = AggregateCheckpoint(run.best_dir, monitor=ORIGINAL)
    plan = FitPlan(
        task,
        seed=seed,
        callbacks=[keep, LearningCurve(task.batch_size, len(splits.train))],
        description=f"{task.name}: {len(splits.train)} questions, {task.epochs} epochs",
    )
    watched = {"original": splits.selection}
    fit_notices, encoding_notices = fit_choices(module, splits.train, watched, run, plan, context)
    notices = [*fit_notices, *(f"training items: {notice}" for notice in encoding_notices)]
    row = replace(
        model_row(model),
        protocol=spec.protocol,
        probe=task.name,
        mode="full",
        num_train=len(splits.train),
        learning_rate=task.learning_rate,
        seed=seed,
    )
    selected = replace(row, metric="accuracy", split="selection", num_items=len(splits.selection))
    rows = [
        replace(selected, epoch=int(scores["epoch"]), value=scores[ORIGINAL])
        for scores in keep.history
    ]
    scorer = TrainedScorer(saved_module(run.best_dir, dtype=model.dtype))
    fingerprint = scorer.fingerprint()
    num_rescored = 0
    if splits.report:  # nobody reports a first stage
        assert keep.best is not None
        row = replace(row, split="report", num_items=len(splits.report))
        measured, report = _score_report(run, scorer, splits, row, int(keep.best["epoch"]), context)
        rows += measured
        notices += [*report.notices, *score_notices(report)]
        num_rescored = report.num_rescored
    record = RunRecord(
        protocol=spec.protocol,
        probe=task.name,
        rows=tuple(rows),
        notices=tuple(notices),
        seeds=(seed,),
        num_rescored=num_rescored,
    )
    return completed(record, fingerprint, model, task, splits)


def memory_of(spec: TaskSpec, context: RunContext) -> MemoryNeed:
    """Return what training an original task, or what comes before it, will take of memory."""
    splits, plan = spec.splits(context), FitPlan(spec.task, spec.seed)

    def make_module() -> ChoiceModule:
        module = module_for(spec.model, "mc_qa", seed=spec.seed, tuning=spec.task.tuning)
        module.num_choices = padded_num_choices(spec.num_choices, splits)
        return module

    watched = {"original": splits.selection}
    return planned_memory(make_module, splits.train, watched, plan, context.trainer)


def _score_report(
    run: RunFolder, scorer: TrainedScorer, splits: Splits, row: Row, epoch: int, context: RunContext
) -> tuple[list[Row], Predictions]:
    """Score the report items by the model that a run kept, and return rows and predictions."""
    report = predict(scorer, {"original": splits.report}, context.trainer)["original"]
    groups = splits.groups(report.records)
    write_predictions(run, report.lines(groups))
    untouched = untouched_of(splits.not_in_train(report.records))
    chosen = replace(row, epoch=epoch)
    rows = [
        accuracy_row(report, groups, chosen),
        *subset_rows(report, groups, untouched, replace(chosen, metric="accuracy")),
        tied_row(report, chosen),
        *chance_rows(report, row),
    ]
    return rows, report


def completed(
    record: RunRecord,
    fingerprint: str,
    model: ModelSettings,
    task: OriginalTask | IntermediateTask,
    splits: Splits,
) -> RunRecord:
    """Return the record with the counts, files, weights and source that every trained run has.

    `fingerprint` is that of the model kept.
    """
    source, original_parts = original_source(model, task)
    file_notices = (notice for data in splits.files for notice in data.notices)
    return replace(
        record.with_details(original_parts),
        model=model.label,
        counts={
            "train": len(splits.train),
            "selection": len(splits.selection),
            "reserved": len(splits.reserved),
            "report": len(splits.report),
        },
        notices=(*record.notices, *splits.notices, *file_notices),
        data=data_files(splits.files),
        source=source,
        dtype=trained_dtype(model.dtype),
        model_sha256=fingerprint,
    )


def finished_run(run: RunFolder, key: str) -> RunFolder:
    """Return the folder of another run of the command; FileNotFoundError if it is not finished."""
    path = run.path.parent / key
    if not (path / "result.json").exists():
        raise FileNotFoundError(f"{run.key} needs {path / 'result.json'}, which is missing")
    return RunFolder.at(path)


def original_source(
    model: ModelSettings, task: OriginalTask | IntermediateTask
) -> tuple[ModelSource, OriginalParts | None]:
    """Return where an original-task model comes from, and the parts of its task.

    A given checkpoint's are those recorded by the run that trained it, `RUN/checkpoints/best`, if
    the folder still holds that run's weights; of any other folder nothing is known.
    """
    source, checkpoint = source_of(model), getattr(task, "given_model", None)
    if checkpoint is None:
        return source, OriginalParts(sets=tuple(task.sets), train_items=task.train_items)
    unknown = replace(source, hub_id=None, revision=None), None
    try:
        recorded = RunRecord.read(checkpoint.folder.resolve().parent.parent / "result.json")
    except (OSError, ValueError):
        return unknown
    fingerprint = model_fingerprint(saved_module(str(checkpoint), dtype=model.dtype))
    if recorded.protocol != "original" or fingerprint != recorded.model_sha256:
        return unknown
    recorded_source = recorded.source
    source = replace(source, hub_id=recorded_source.hub_id, revision=recorded_source.revision)
    return source, recorded.detail(OriginalParts)
