"""The runs of an inoculation: original task, scores before, settings to try, and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from probelight.commands.inoculation.data import (
    Splits,
    first_stage_splits,
    load_tasks,
    original_splits,
    padded_num_choices,
    replayed_items,
    training_items,
)
from probelight.commands.inoculation.settings import (
    BEFORE,
    CANDIDATE,
    FIRST,
    INOCULATION,
    ORIGINAL_TASK,
    IntermediateTask,
    OriginalTask,
    PlannedSubject,
    Setting,
    Subject,
)
from probelight.io.errors import UsageError
from probelight.io.ranges import Seed
from probelight.models.checkpoint_files import (
    PretrainedError,
    agree,
    head_settings,
    is_word_folder,
    scoring_of,
    word_settings,
)
from probelight.models.registry import ModelSettings, weights_bytes
from probelight.probes.controls import STANDARD
from probelight.results.record import RunRecord, checksums
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.memory import LARGE, MemoryNeed
from probelight.runs.spec import Job, ModelRunSpec, Trial
from probelight.training.modules import saved_bytes


@dataclass(frozen=True, kw_only=True)
class FirstStageSpec(ModelRunSpec):
    """The training of a stage before an original task; tasks that begin alike share it."""

    protocol = FIRST

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
        return first_stage_splits(context, self.task, self.seed)

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Train the stage, and keep its best epoch."""
        from probelight.commands.inoculation.original_task import train_task

        return train_task(run, self, None, context)

    def memory(self, context: RunContext) -> MemoryNeed:
        """Return what the training will take of memory."""
        from probelight.commands.inoculation.original_task import memory_of

        return memory_of(self, context)


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
        return self.task.seed

    @property
    def num_choices(self) -> int | None:
        """The number of choices that questions are filled up to."""
        return self.task.num_choices

    def splits(self, context: RunContext) -> Splits:
        """Return the items of the task."""
        return original_splits(context, self.task)

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Train the task, and keep its best epoch."""
        from probelight.commands.inoculation.original_task import train_task

        return train_task(run, self, self.first_stage, context)

    def memory(self, context: RunContext) -> MemoryNeed:
        """Return what the training will take of memory."""
        from probelight.commands.inoculation.original_task import memory_of

        return memory_of(self, context)


@dataclass(frozen=True, kw_only=True)
class SubjectRunSpec(ModelRunSpec):
    """A run about one model, original task and probe."""

    subject: PlannedSubject


@dataclass(frozen=True, kw_only=True)
class BeforeSpec(SubjectRunSpec):
    """The scores of the original-task model, once for all settings of a sweep."""

    protocol = BEFORE

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"{BEFORE}-{self.subject.label}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Score the original-task model on all items."""
        from probelight.commands.inoculation.inoculate import InoculationRun

        return InoculationRun(run, self.subject, context).score_before()


@dataclass(frozen=True, kw_only=True)
class InoculationSpec(SubjectRunSpec):
    """All of an inoculation with one setting: the scores before, the training, the report."""

    protocol = INOCULATION

    setting: Setting

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        setting = self.setting
        method = f"{setting.extra}{setting.name_suffix}"
        return f"inoculate-{self.subject.label}-k{setting.dose}-{method}-s{setting.seed}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Score, train with the setting, and report."""
        from probelight.commands.inoculation.inoculate import InoculationRun

        return InoculationRun(run, self.subject, context).inoculate(self.setting)


@dataclass(frozen=True, kw_only=True)
class CandidateSpec(SubjectRunSpec):
    """The training with one setting of several, scored on the selection items alone.

    Args:
        setting: The setting; what is drawn replaces its values.
        before_run: Key of the run with the scores before.
        trial: How a part of the setting is drawn.
    """

    protocol = CANDIDATE

    setting: Setting
    before_run: str
    trial: Trial | None = None

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        setting = self.setting
        choice = f"lr{setting.learning_rate:g}-{setting.extra}{setting.name_suffix}"
        if self.trial is not None:
            choice = f"trial{self.trial.number}"
        return f"inoculate-{self.subject.label}-k{setting.dose}-{choice}-s{setting.seed}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Train with the setting."""
        from probelight.commands.inoculation.inoculate import InoculationRun

        return InoculationRun(run, self.subject, context).try_setting(self.setting, self.before_run)


@dataclass(frozen=True, kw_only=True)
class ReportSpec(SubjectRunSpec):
    """The report of the best of several settings and epochs.

    Args:
        before_run: Key of the run with the scores before.
        candidates: Keys of the runs to choose from.
        dose: Their dose.
        seed: Their seed.
        method: The method against forgetting that they share, for the name of the run.
    """

    protocol = INOCULATION

    before_run: str
    candidates: tuple[str, ...]
    dose: int
    seed: Seed
    method: str = ""

    @property
    def name(self) -> str:
        """Readable beginning of the key."""
        return f"chosen-{self.subject.label}-k{self.dose}{self.method}-s{self.seed}"

    def make(self, run: RunFolder, context: RunContext) -> RunRecord:
        """Choose the best, and score it on the report items."""
        from probelight.commands.inoculation.inoculate import InoculationRun

        return InoculationRun(run, self.subject, context).report_best(
            self.before_run, self.candidates
        )


class SubjectJobs:
    """The jobs about one subject, behind those that train its original task.

    Args:
        row: What the names of the runs say of the subject besides its probe and control.
    """

    def __init__(self, subject: Subject, context: RunContext, row: str = "") -> None:
        tasks, model = load_tasks(context, subject), subject.model
        self.originals = original_jobs(model, subject.original, context)
        checkpoint = subject.original.given_model
        checkpoint_sums = subject.original.checkpoint_sums()
        if checkpoint is not None and not checkpoint_sums and checkpoint.folder.is_dir():
            raise PretrainedError(f"original.checkpoint {checkpoint} has no weights")
        original = resolved_task(model, subject.original, tasks.probe, tasks.original)
        self.context, self.tasks = context, replace(tasks, num_choices=original.num_choices)
        probe, control = tasks.probe.files[0].config, subject.probe.control
        self.subject = PlannedSubject(
            model,
            original,
            subject.probe,
            label="-".join([probe.name, *filter(None, [row]), *({control} - {STANDARD})]),
            phrasings={name: probe.phrasings[name] for name in tasks.phrasings},
            data_sha256=checksums(*tasks.files),
            checkpoint=checkpoint_sums,
            original_run=self.originals[-1].key if self.originals else None,
        )

    @cached_property
    def before_job(self) -> Job:
        """The job that scores the original-task model."""
        return self._job(BeforeSpec(subject=self.subject))

    def inoculation(self, setting: Setting) -> Job:
        """Return the job that scores, trains with a setting, and reports."""
        spec = InoculationSpec(subject=self.subject, setting=setting)
        return self._training_job(spec, setting)

    def candidate(
        self, setting: Setting, trial: Trial | None = None, follows: Sequence[Job] = ()
    ) -> Job:
        """Return the job that trains with a setting of several, or with one that is drawn.

        Of what is drawn, `setting` has the largest extra.
        """
        spec = CandidateSpec(
            subject=self.subject, setting=setting, before_run=self.before_job.key, trial=trial
        )
        job = self._training_job(spec, setting)
        return replace(job, needs=(self.before_job.key,), follows=tuple(job.key for job in follows))

    def report(self, candidates: Sequence[Job], dose: int, seed: int, method: str) -> Job:
        """Return the job that reports the best of the candidates of a dose and seed."""
        spec = ReportSpec(
            subject=self.subject,
            before_run=self.before_job.key,
            candidates=tuple(job.key for job in candidates),
            dose=dose,
            seed=seed,
            method=method,
        )
        return replace(self._job(spec), needs=spec.candidates)

    def _job(self, spec: SubjectRunSpec) -> Job:
        return Job(
            spec.under(self.context.trainer, fixes_threads=True),
            needs=tuple(job.key for job in self.originals[-1:]),
            weights_bytes=weights_bytes(self.subject.model),
        )

    def _training_job(self, spec: SubjectRunSpec, setting: Setting) -> Job:
        """Return the job of a run that trains; UsageError if items are too few."""
        replayed_items(self.tasks, setting)  # that there are any, before something is trained
        job, model = self._job(spec), self.subject.model

        def memory() -> MemoryNeed:
            from probelight.commands.inoculation.inoculate import memory_of

            return memory_of(self.subject, setting, self.context)

        return replace(
            job,
            num_steps=setting.num_steps(len(training_items(self.tasks, setting))),
            memory=memory if job.weights_bytes > LARGE else None,
            saved_bytes=saved_bytes(model, "mc_qa", setting.tuning),
        )


def inoculation_jobs(
    subject: Subject, settings: Sequence[Setting], context: RunContext
) -> list[Job]:
    """Return the original task's jobs and, per setting, one that scores, trains and reports."""
    jobs = SubjectJobs(subject, context)
    return [*jobs.originals, *map(jobs.inoculation, settings)]


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


def _task_job(spec: FirstStageSpec | OriginalTaskSpec, splits: Splits, context: RunContext) -> Job:
    spec = spec.under(context.trainer, fixes_threads=True)
    size = weights_bytes(spec.model)
    return Job(
        spec,
        num_steps=spec.task.num_steps(len(splits.train)),
        weights_bytes=size,
        memory=partial(spec.memory, context) if size > LARGE else None,
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
