"""How an original-task model is trained, once for every inoculation that begins with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from probelight.commands.inoculation.continued import TrainedTask
from probelight.commands.inoculation.data import (
    Splits,
    first_stage_splits,
    original_splits,
    padded_num_choices,
)
from probelight.commands.inoculation.settings import (
    FIRST,
    ORIGINAL_TASK,
    IntermediateTask,
    OriginalTask,
)
from probelight.evaluation.scorers import model_row, predict, source_of
from probelight.io.errors import UsageError
from probelight.io.ranges import Seed
from probelight.models.checkpoint_files import (
    agree,
    head_settings,
    is_word_folder,
    scoring_of,
    trained_dtype,
    word_settings,
)
from probelight.models.registry import ModelSettings, weights_bytes
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
from probelight.results.record import ModelSource, RunRecord, check_data, checksums
from probelight.results.row import Row
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.memory import LARGE, MemoryNeed
from probelight.runs.spec import Job, ModelRunSpec
from probelight.training.modules import module_for, saved_bytes, saved_module

if TYPE_CHECKING:
    from probelight.lightning_modules.base import ChoiceModule


@dataclass(frozen=True, kw_only=True)
class FirstStageSpec(ModelRunSpec):
    """The training of a stage before an original task; tasks that begin alike share it."""

    protocol = FIRST
    first_stage: ClassVar = None

    model: ModelSettings
    first: IntermediateTask
    seed: Seed
    num_choices: int | None = None
    data_sha256: tuple[str, ...]

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"{FIRST}-{self.first.name}-{self.model.label}"

    @property
    def task(self) -> IntermediateTask:
        """What is trained."""
        return self.first

    def splits(self, context: RunContext) -> Splits:
        """Return the items of the stage."""
        return first_stage_splits(context, self.first, self.seed)

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Train the stage, and keep its best epoch."""
        return train_task(run, self, context)


@dataclass(frozen=True, kw_only=True)
class OriginalTaskSpec(ModelRunSpec):
    """The training of an original task.

    Args:
        first_stage: Key of the run whose model it begins with; None for the pre-trained one.
    """

    protocol = ORIGINAL_TASK

    model: ModelSettings
    original: OriginalTask
    data_sha256: tuple[str, ...]
    first_stage: str | None = None

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"{ORIGINAL_TASK}-{self.original.name}-{self.model.label}"

    @property
    def task(self) -> OriginalTask:
        """What is trained."""
        return self.original

    @property
    def seed(self) -> int:
        """Seed of the splits and the training."""
        return self.original.seed

    @property
    def num_choices(self) -> int | None:
        """The number of choices that questions are filled up to."""
        return self.original.num_choices

    def splits(self, context: RunContext) -> Splits:
        """Return the items of the task."""
        return original_splits(context, self.original)

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Train the task, and keep its best epoch."""
        return train_task(run, self, context)


TaskSpec = FirstStageSpec | OriginalTaskSpec


def original_jobs(model: ModelSettings, task: OriginalTask, context: RunContext) -> list[Job]:
    """Return an original task's job behind its first stage's; none where its model is given."""
    if task.checkpoint is not None:
        return []
    jobs: list[Job] = []
    if task.first is not None:
        splits = first_stage_splits(context, task.first, task.seed)
        first = FirstStageSpec(
            model=model,
            first=task.first,
            seed=task.seed,
            num_choices=task.num_choices,
            data_sha256=checksums(*splits.files),
        )
        jobs.append(_task_job(first, splits, context))
    splits = original_splits(context, task)
    spec = original_spec(model, task, splits)
    if jobs:
        spec = replace(spec, first_stage=jobs[0].key)
    job = _task_job(spec, splits, context)
    return [*jobs, replace(job, needs=tuple(job.key for job in jobs))]


def _task_job(spec: TaskSpec, splits: Splits, context: RunContext) -> Job:
    spec = spec.under(context.trainer, fixes_threads=True)
    size = weights_bytes(spec.model)
    return Job(
        spec,
        num_steps=spec.task.num_steps(len(splits.train)),
        weights_bytes=size,
        memory=partial(memory_of, spec, context) if size > LARGE else None,
        saved_bytes=saved_bytes(spec.model, "mc_qa", spec.task.tuning),
    )


def original_spec(model: ModelSettings, task: OriginalTask, splits: Splits) -> OriginalTaskSpec:
    """Return the spec of an original task's run."""
    resolved = resolved_task(model, task, splits)
    return OriginalTaskSpec(model=model, original=resolved, data_sha256=checksums(*splits.files))


def resolved_task(model: ModelSettings, task: OriginalTask, *tasks: Splits) -> OriginalTask:
    """Return an original task with the number of choices that holds, of a checkpoint too.

    Raises:
        PretrainedError: If the checkpoint was saved with another number, or another length.
    """
    num_choices, checkpoint = task.num_choices, task.given_model
    if checkpoint is not None:
        folder = checkpoint.folder
        # What our own models say of their inputs; transformers' own say nothing.
        saved: Mapping[str, Any] = (
            word_settings(folder) if is_word_folder(folder) else head_settings(checkpoint) or {}
        )
        num_choices = agree("num_choices", num_choices, saved.get("num_choices"), checkpoint)
        # The default asks for nothing: the folder's own length holds.
        length = None if model.max_length == ModelSettings.max_length else model.max_length
        agree("max_length", length, saved.get("max_length"), checkpoint)
        if model.type.heads:
            scoring_of(checkpoint, model.scoring, "mc_qa")  # that they agree
    if model.type.heads and padded_num_choices(num_choices, *tasks) is not None:
        raise UsageError(
            f"original.num_choices {num_choices}: model.kind {model.kind} cannot score the empty "
            "choices that would fill up questions, because they have no likelihood; leave it out"
        )
    return replace(task, num_choices=num_choices)


def train_task(run: RunFolder, spec: TaskSpec, context: RunContext) -> RunRecord:
    """Train an original task, or what comes before it, and keep its best epoch.

    It begins with the model that the run `first_stage` left, or else with the pre-trained one.
    """
    # Only now, here and below: torch and Lightning take seconds.
    from probelight.callbacks.aggregate_checkpoint import ORIGINAL, AggregateCheckpoint
    from probelight.callbacks.run_metrics import LearningCurve
    from probelight.models.scorer import TrainedScorer
    from probelight.training.fit import FitPlan, fit_choices

    model, task, seed, splits = spec.model, spec.task, spec.seed, spec.splits(context)
    check_data(spec.data_sha256, splits.files)
    kwargs = dict[str, Any](learning_rate=task.learning_rate, tuning=task.tuning, seed=seed)
    if spec.first_stage is not None:
        folder = finished_run(run, spec.first_stage).best_dir
        module = saved_module(folder, dtype=model.dtype, **kwargs)
    else:
        module = module_for(model, "mc_qa", **kwargs)
    module.num_choices = padded_num_choices(spec.num_choices, splits)

    saved_task = None
    if isinstance(task, OriginalTask):
        saved_task = asdict(TrainedTask(model, task, spec.data_sha256))
    keep = AggregateCheckpoint(run.best_dir, ORIGINAL, saved_task)
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
    fingerprint, num_rescored = scorer.fingerprint(), 0
    if splits.report:  # nobody reports a first stage
        assert keep.best is not None
        report = predict(scorer, {"original": splits.report}, context.trainer)["original"]
        write_predictions(run, report.lines(splits.groups(report.records)))
        reported = replace(row, split="report", num_items=len(splits.report))
        rows += _report_rows(report, splits, reported, int(keep.best["epoch"]))
        notices += [*report.notices, *score_notices(report)]
        num_rescored = report.num_rescored
    source, original_parts = original_source(model, task)
    return RunRecord.of(
        row,
        rows,
        splits.files,
        notices=(*notices, *splits.notices, *splits.file_notices),
        counts=splits.counts,
        seeds=(seed,),
        source=source,
        dtype=trained_dtype(model.dtype),
        num_rescored=num_rescored,
        model_sha256=fingerprint,
        details=() if original_parts is None else (original_parts,),
    )


def memory_of(spec: TaskSpec, context: RunContext) -> MemoryNeed:
    """Return what training an original task, or what comes before it, will take of memory."""
    from probelight.training.fit import FitPlan, planned_memory

    splits, plan = spec.splits(context), FitPlan(spec.task, spec.seed)

    def make_module() -> ChoiceModule:
        module = module_for(spec.model, "mc_qa", seed=spec.seed, tuning=spec.task.tuning)
        module.num_choices = padded_num_choices(spec.num_choices, splits)
        return module

    watched = {"original": splits.selection}
    return planned_memory(make_module, splits.train, watched, plan, context.trainer)


def _report_rows(report: Predictions, splits: Splits, row: Row, epoch: int) -> list[Row]:
    """Return the rows of the report items, answered by the model of an epoch."""
    groups, untouched = splits.groups(report.records), splits.not_in_train(report.records)
    chosen = replace(row, epoch=epoch)
    accuracy = replace(chosen, metric="accuracy")
    return [
        accuracy_row(report, groups, chosen),
        *subset_rows(report, groups, untouched_of(untouched), accuracy),
        tied_row(report, chosen),
        *chance_rows(report, row),
    ]


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
    from probelight.models.networks import model_fingerprint

    fingerprint = model_fingerprint(saved_module(str(checkpoint), dtype=model.dtype))
    if recorded.protocol != "original" or fingerprint != recorded.model_sha256:
        return unknown
    recorded_source = recorded.source
    source = replace(source, hub_id=recorded_source.hub_id, revision=recorded_source.revision)
    return source, recorded.detail(OriginalParts)
