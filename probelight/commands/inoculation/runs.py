"""The runs of an inoculation: scores before, settings to try, and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from probelight.commands.inoculation.data import load_tasks, replayed_items, training_items
from probelight.commands.inoculation.original_task import original_jobs, resolved_task
from probelight.commands.inoculation.settings import (
    BEFORE,
    CANDIDATE,
    INOCULATION,
    PlannedSubject,
    Setting,
    Subject,
)
from probelight.io.errors import UsageError
from probelight.io.ranges import Seed
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.registry import weights_bytes
from probelight.probes.controls import STANDARD
from probelight.results.record import RunRecord, checksums
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.memory import LARGE, MemoryNeed
from probelight.runs.spec import Job, ModelRunSpec, Trial
from probelight.training.modules import saved_bytes


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
        """Return the job of a run that trains; UsageError if it cannot be."""
        if setting.keeping.method == "l2_sp" and self.context.trainer.strategy.startswith("fsdp"):
            raise UsageError(
                "keeping l2_sp needs whole weights, but --trainer.strategy fsdp gives each process "
                "a part of them; give strategy ddp or one device, or another method"
            )
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
