"""How an original-task model is trained, which every inoculation of it shares."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from probelight.callbacks.aggregate_checkpoint import ORIGINAL, AggregateCheckpoint, Scores
from probelight.callbacks.learning_curve import LearningCurve
from probelight.lightning_modules.base import ChoiceModule
from probelight.models.networks import model_fingerprint
from probelight.models.scorer import TrainedScorer
from probelight.protocols.engine.evaluation import predict
from probelight.protocols.engine.model_source import original_source
from probelight.protocols.engine.models import module_for, saved_module
from probelight.protocols.engine.predictions import (
    accuracy_row,
    chance_rows,
    score_notices,
    subset_rows,
    tied_row,
    untouched_of,
)
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.engine.training import FitPlan, fit_choices
from probelight.protocols.inoculation.data import Splits, padded_num_choices
from probelight.protocols.inoculation.jobs import FIRST, ORIGINAL_TASK
from probelight.protocols.inoculation.settings import FirstStage, OriginalTask
from probelight.protocols.jobs.context import RunContext
from probelight.results.provenance import data_files
from probelight.results.record import RunRecord
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder


def train_first_stage(
    run: RunFolder,
    model: ModelSettings,
    task: OriginalTask,
    splits: Splits,
    context: RunContext,
) -> None:
    """Trains what comes before the original task and leaves its best epoch."""
    stage = task.first
    assert stage is not None
    began = time.perf_counter()
    module = module_for(
        model,
        "mc_qa",
        learning_rate=stage.learning_rate,
        seed=task.seed,
        num_choices=padded_num_choices(task.num_choices, [splits]),
    )
    keep, notices = _fit(run, module, stage, task, splits, context)
    row = _row(FIRST, model, stage, task.seed, splits)
    rows = _selection_rows(row, keep.history, splits)
    record = RunRecord(protocol=FIRST, probe=stage.name, rows=tuple(rows), notices=notices)
    run.finish(completed(_of_task(record, model, task), run.best_dir, splits, began))


def train_original(
    run: RunFolder,
    model: ModelSettings,
    task: OriginalTask,
    splits: Splits,
    start: Path | None,
    context: RunContext,
) -> None:
    """Trains the original task, leaves its best epoch and its score on the report items.

    Args:
        run: The run's folder.
        model: The pre-trained model.
        task: The original task.
        splits: Its items.
        start: Model of the first stage; none begins with the pre-trained model.
        context: What the run is made under.
    """
    began = time.perf_counter()
    module = (
        module_for(model, "mc_qa", learning_rate=task.learning_rate, seed=task.seed)
        if start is None
        else saved_module(start, learning_rate=task.learning_rate)
    )
    module.num_choices = padded_num_choices(task.num_choices, [splits])
    keep, notices = _fit(run, module, task, task, splits, context)
    chosen = saved_module(run.best_dir)
    sets = {"original": splits.report}
    report = predict(TrainedScorer(chosen), sets, context.trainer)["original"]
    groups = splits.groups(report.records)
    run.write_lines("predictions.jsonl", report.rows(groups))
    row = _row(ORIGINAL_TASK, model, task, task.seed, splits)
    assert keep.best is not None
    rows = _selection_rows(row, keep.history, splits)
    row = replace(row, split="report", num_items=len(splits.report))
    chosen_row = replace(row, epoch=int(keep.best["epoch"]))
    rows.append(accuracy_row(report, groups, chosen_row))
    clean = untouched_of(splits.not_in_train(report.records))
    rows += subset_rows(report, groups, clean, replace(chosen_row, metric="accuracy"))
    rows.append(tied_row(report, chosen_row))
    rows += chance_rows(report, row)
    notices += (*report.notices, *score_notices(report))
    record = RunRecord(protocol=ORIGINAL_TASK, probe=task.name, rows=tuple(rows), notices=notices)
    run.finish(completed(_of_task(record, model, task), run.best_dir, splits, began))


def _fit(
    run: RunFolder,
    module: ChoiceModule,
    stage: OriginalTask | FirstStage,
    task: OriginalTask,
    splits: Splits,
    context: RunContext,
) -> tuple[AggregateCheckpoint, tuple[str, ...]]:
    keep = AggregateCheckpoint(run.best_dir, monitor=ORIGINAL)
    plan = FitPlan(
        stage,
        seed=task.seed,
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
    return replace(
        model.row,
        protocol=protocol,
        probe=stage.name,
        mode="full",
        num_train=len(splits.train),
        learning_rate=stage.learning_rate,
        seed=seed,
    )


def _selection_rows(row: Row, history: list[Scores], splits: Splits) -> list[Row]:
    return [
        replace(
            row,
            metric="accuracy",
            split="selection",
            epoch=int(scores["epoch"]),
            value=scores[ORIGINAL],
            num_items=len(splits.selection),
        )
        for scores in history
    ]


def _of_task(record: RunRecord, model: ModelSettings, task: OriginalTask) -> RunRecord:
    source, parts = original_source(model, task)
    known = replace(record, model=model.label, source=source, original_parts=parts)
    return replace(known, seeds=(task.seed,))


def completed(record: RunRecord, checkpoint: Path, splits: Splits, start: float) -> RunRecord:
    """The record with what that of every trained run holds.

    Args:
        record: What was run, measured and noticed.
        checkpoint: Folder of the model kept.
        splits: The items.
        start: `time.perf_counter()` at the start of the run.
    """
    said = (notice for data in splits.files for notice in data.notices)
    return replace(
        record,
        counts={
            "train": len(splits.train),
            "selection": len(splits.selection),
            "reserved": len(splits.reserved),
            "report": len(splits.report),
        },
        notices=(*record.notices, *splits.notices, *said),
        data=data_files(splits.files),
        model_sha256=model_fingerprint(saved_module(checkpoint)),
        seconds=round(time.perf_counter() - start, 3),
    )
