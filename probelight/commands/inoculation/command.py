"""`train.py inoculate` and `original`, which trains what several begin with, and their jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from probelight.commands.command import Command, command
from probelight.commands.inoculation.data import (
    Splits,
    first_stage_splits,
    load_tasks,
    measured_sets,
    original_splits,
    padded_num_choices,
    replayed_items,
    training_items,
)
from probelight.commands.inoculation.settings import (
    BEFORE,
    CELL,
    FIRST,
    INOCULATION,
    KEEPING_NOTHING,
    ORIGINAL_TASK,
    Extra,
    IntermediateTask,
    Keeping,
    OriginalTask,
    ProbeOrFiles,
    Setting,
    Subject,
    fitting_probe,
)
from probelight.io import ranges
from probelight.io.errors import UsageError
from probelight.io.escaping import brief
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.models.checkpoint_files import (
    PretrainedError,
    agree,
    head_settings,
    is_word_folder,
    scoring_of,
    word_settings,
)
from probelight.models.settings import DEFAULT_MODEL, ModelSettings, model_type_of, weights_bytes
from probelight.models.tuning import FULL_TUNING, Tuning
from probelight.probes.controls import STANDARD
from probelight.probes.source import ProbeData
from probelight.probes.user_files import DEFAULT_FILES, SplitFiles, load_user_files
from probelight.results.record import RunRecord, data_files
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.estimates import detectable_table
from probelight.runs.job import Job
from probelight.runs.memory import LARGE, MemoryNeed
from probelight.runs.run import print_plan, run_command
from probelight.runs.settings import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    TrainerSettings,
)
from probelight.training.modules import check_tuning, question_model, saved_bytes

DEFAULT_PROBE = ProbeOrFiles()
DEFAULT_DOSE = 100


@command(
    Command(
        example="train.py inoculate --config configs/experiment/inoculate_hypernymy.yaml "
        "--dose 100 --output_dir runs/inoculate",
        options="output_dir original.name original.sets original.checkpoint probe.name data.train "
        "data.setup model.name_or_path dose extra learning_rate epochs tuning.method "
        "keeping.method keeping.strength seed dry_run mirror trainer.accelerator engine.kind "
        "wandb.project",
    )
)
def inoculate(
    output_dir: ranges.PathText,
    original: OriginalTask,
    probe: ProbeOrFiles = DEFAULT_PROBE,
    data: SplitFiles = DEFAULT_FILES,
    model: ModelSettings = DEFAULT_MODEL,
    dose: ranges.NumItems | None = None,
    extra: Extra = "none",
    learning_rate: ranges.LearningRate = 1e-5,
    epochs: ranges.NumEpochs = 3,
    batch_size: ranges.BatchSize = 16,
    tuning: Tuning = FULL_TUNING,
    keeping: Keeping = KEEPING_NOTHING,
    seed: ranges.Seed = 0,
    dry_run: bool = False,
    force: bool = False,
    mirror: ranges.Mirror | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> RunRecord | None:
    """Fine-tunes an original-task model on a dose of a probe; reports what it gains and forgets.

    Args:
        output_dir: Folder of the results. Rerun the same command to resume.
        original: The original task and how its model is trained.
        probe: The probe and its splits.
        data: Your own files instead of `probe.name`.
        model: The pre-trained model.
        dose: k, the probe examples to train on; by default 100, or all if fewer.
        extra: Replay: original-task examples per probe example, x1 or x2 (the paper's Add-some).
        learning_rate: Peak learning rate of the inoculation.
        epochs: Epochs; the one with the best average of both tasks is reported.
        batch_size: Questions per optimiser step, over all processes.
        tuning: Which weights the inoculation trains: "full" for all, "lora" for an adapter.
        keeping: Method against forgetting the original task.
        seed: Seed of the dose, its order and dropout.
        dry_run: Only print how many runs and steps it would take, and how much time and memory.
        force: Train even if the estimate says that it does not fit into memory.
        mirror: Folder or address with copies of the released files.
        trainer: Device and batch settings.
        engine: Where the runs are computed: in this process, or on Ray.
        wandb: Logging to Weights & Biases, in addition to the local files.

    Returns:
        The record of the inoculation, or None for a dry run.

    Raises:
        UsageError: If the model cannot answer the questions of the original task, if you do not
            give exactly one probe, by name or as files, or if there are fewer items than you ask
            for.
    """
    user_files = load_user_files(data, "--probe.name", bool(probe.name))
    if user_files:
        probe = fitting_probe(probe, user_files)
    elif not probe.name:
        raise UsageError("give --probe.name NAME, or --data.train FILE with --data.setup mc_qa")
    model = question_model(model, original.given_model)
    context = RunContext(trainer, wandb, mirror, user_files.configs, force=force, engine=engine)
    subject = Subject(model, original, probe)
    tasks = load_tasks(context, subject)
    if dose is None:
        dose = min(DEFAULT_DOSE, len(tasks.probe.train))
        if dose < DEFAULT_DOSE:
            print(f"dose {dose}: all items that are left (the default is {DEFAULT_DOSE})")
    setting = Setting(
        dose,
        extra,
        seed,
        learning_rate=learning_rate,
        epochs=epochs,
        batch_size=batch_size,
        tuning=tuning,
        keeping=keeping,
    )
    jobs = inoculation_jobs(subject, [setting], context)
    for notice in (*tasks.probe.notices, *tasks.original.notices, *tasks.other_notices):
        print(brief(notice))
    if dry_run:
        print_plan(jobs, Path(output_dir), trainer.accelerator)
        Console(force_jupyter=False).print(
            detectable_table(measured_sets(tasks, original.name, num_seeds=1))
        )
        return None
    config = {
        "command": "inoculate",
        "model": model.config(),
        "original": resolved_task(model, original, tasks.probe, tasks.original),
        "probe": asdict(probe),
        **asdict(setting),
        **user_files.recorded,
    }
    files = user_files.data_by_split.values()
    run_command(output_dir, config, jobs, context, files=files, table=INOCULATION)
    return RunRecord.read(Path(output_dir) / "runs" / jobs[-1].key / "result.json")


@command(
    Command(
        example="train.py original --config configs/experiment/science_original_task.yaml "
        "--output_dir runs/science",
        options="output_dir original.name original.sets original.report_sets original.train_items "
        "original.epochs original.learning_rate original.seed model.name_or_path mirror "
        "trainer.accelerator trainer.devices engine.kind wandb.project",
    )
)
def original_task(
    output_dir: ranges.PathText,
    original: OriginalTask,
    model: ModelSettings = DEFAULT_MODEL,
    force: bool = False,
    mirror: ranges.Mirror | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> Path:
    """Trains the model of an original task once, for several inoculations to start from.

    Args:
        output_dir: Folder of the results. Rerun the same command to resume.
        original: The original task and how its model is trained.
        model: The pre-trained model.
        force: Train even if the estimate says that it does not fit into memory.
        mirror: Folder or address with copies of the released files.
        trainer: Device and batch settings.
        engine: Where the runs are computed: in this process, or on Ray.
        wandb: Logging to Weights & Biases, in addition to the local files.

    Returns:
        Folder of the model, for `--original.checkpoint`.

    Raises:
        UsageError: If the model cannot answer the questions of the original task.
    """
    model = question_model(model, original.given_model)
    context = RunContext(trainer, wandb, mirror, force=force, engine=engine)
    splits = original_splits(context, original)
    for notice in splits.notices:
        print(brief(notice))
    config = {"command": "original", **original_config(model, original, splits, trainer)}
    jobs = original_jobs(model, original, context)
    run_command(output_dir, config, jobs, context, files=splits.files, table=ORIGINAL_TASK)
    if original.given_model is not None:
        trained = original.given_model.folder
    else:
        trained = RunFolder.at(Path(output_dir) / "runs" / jobs[-1].key).best_dir
    print(f"model: {trained}")
    return trained


Config = dict[str, Any]


def inoculation_jobs(
    subject: Subject, settings: Sequence[Setting], context: RunContext
) -> list[Job]:
    """Return the original task's jobs and, per setting, one that scores, trains and reports."""
    check_tuning(subject.model, "mc_qa", *(setting.tuning for setting in settings))
    jobs = SubjectJobs(subject, context)
    return jobs.originals + [
        jobs.job(
            f"inoculate-{jobs.probe_name}-k{setting.dose}-{setting.extra}"
            f"{setting.name_suffix}-s{setting.seed}{jobs.name_suffix}",
            {"protocol": INOCULATION, "setting": asdict(setting)},
            num_steps=jobs.num_steps(setting),
        )
        for setting in settings
    ]


class SubjectJobs:
    """The jobs of one subject; what of the context changes numbers is in their keys."""

    def __init__(self, subject: Subject, context: RunContext) -> None:
        self.subject, self.context = subject, context
        self.tasks = load_tasks(context, subject)
        self.originals = original_jobs(subject.model, subject.original, context)
        checkpoint_sums = subject.original.checkpoint_sums()  # None where no model is given
        checkpoint = subject.original.given_model
        if checkpoint is not None and not checkpoint_sums and checkpoint.folder.is_dir():
            raise PretrainedError(f"original.checkpoint {checkpoint} has no weights")
        self.probe_name = self.tasks.probe.files[0].config.name
        control = subject.probe.control
        self.name_suffix = "" if control == STANDARD else f"-{control}"
        self._weights_bytes = weights_bytes(subject.model)
        self._config = {
            "model": subject.model.config(),
            "original": resolved_task(
                subject.model, subject.original, self.tasks.probe, self.tasks.original
            ),
            "probe": asdict(subject.probe),
            "phrasings": {
                name: self.tasks.probe.files[0].config.phrasings[name]
                for name in self.tasks.phrasings
            },
            **_data_config(self.tasks.files, context.trainer),
            "checkpoint": checkpoint_sums,
            "model_run": [job.key for job in self.originals[-1:]],
        }

    def job(
        self,
        name: str,
        config: Config,
        needs: Sequence[Job] = (),
        num_steps: int = 0,
        follows: Sequence[Job] = (),
    ) -> Job:
        """Return a job behind those that it needs, the original task at least; see `Job`.

        `config` is its protocol, and what it has besides the config of the subject.
        """
        # Of what is drawn the last extra is the largest.
        extra = {"extra": config["search"]["extra"]["choices"][-1]} if "search" in config else {}
        saved = 0
        if num_steps:
            setting = Setting(**config["setting"], **extra)
            saved = saved_bytes(self.subject.model, "mc_qa", setting.tuning)

        def memory() -> MemoryNeed:
            from probelight.commands.inoculation.inoculate import memory_of

            return memory_of(self.subject, setting, self.context)

        return Job(
            name,
            {**self._config, **config},
            run_job,
            needs=tuple(job.key for job in needs or self.originals[-1:]),
            num_steps=num_steps,
            weights_bytes=self._weights_bytes,
            follows=tuple(job.key for job in follows),
            memory=memory if num_steps and self._weights_bytes > LARGE else None,
            saved_bytes=saved,
        )

    def num_steps(self, setting: Setting) -> int:
        """Return the optimiser steps of an inoculation; UsageError if items are too few."""
        replayed_items(self.tasks, setting)  # that there are any, before something is trained
        return setting.num_steps(len(training_items(self.tasks, setting)))


def original_jobs(model: ModelSettings, task: OriginalTask, context: RunContext) -> list[Job]:
    """Return an original task's job behind its first stage's; none where its model is given."""
    if task.checkpoint is not None:
        return []
    size, trainer = weights_bytes(model), context.trainer
    check_tuning(model, "mc_qa", task.tuning, *([task.first.tuning] if task.first else []))

    def memory(
        stage: OriginalTask | IntermediateTask, splits: Splits
    ) -> Callable[[], MemoryNeed] | None:
        def estimate() -> MemoryNeed:
            from probelight.commands.inoculation.original_task import memory_of

            return memory_of(model, stage, splits, task.num_choices, task.seed, context)

        return estimate if size > LARGE else None

    first = []
    if task.first is not None:
        splits = first_stage_splits(context, task.first, task.seed)
        config = {
            "protocol": FIRST,
            "model": model.config(),
            "first": asdict(task.first),  # original tasks that begin alike share it
            "num_choices": task.num_choices,
            "seed": task.seed,
            **_data_config(splits.files, trainer),
        }
        steps = task.first.num_steps(len(splits.train))
        name = f"{FIRST}-{task.first.name}-{model.label}"
        estimate = memory(task.first, splits)
        saved = saved_bytes(model, "mc_qa", task.first.tuning)
        first = [Job(name, config, run_job, (), steps, size, memory=estimate, saved_bytes=saved)]
    splits, needs = original_splits(context, task), tuple(job.key for job in first)
    config = {**original_config(model, task, splits, trainer), "model_run": list(needs)}
    steps = task.num_steps(len(splits.train))
    name = f"{ORIGINAL_TASK}-{task.name}-{model.label}"
    saved = saved_bytes(model, "mc_qa", task.tuning)
    memory_of_task = memory(task, splits)
    job = Job(name, config, run_job, needs, steps, size, memory=memory_of_task, saved_bytes=saved)
    return [*first, job]


def original_config(
    model: ModelSettings, task: OriginalTask, splits: Splits, trainer: TrainerSettings
) -> Config:
    """Return the config of an original task's run: all that its model depends on."""
    return {
        "protocol": ORIGINAL_TASK,
        "model": model.config(),
        "original": resolved_task(model, task, splits),
        **_data_config(splits.files, trainer),
    }


def resolved_task(model: ModelSettings, task: OriginalTask, *tasks: Splits) -> Config:
    """Return an original task's config with the number of choices that holds, of a checkpoint too.

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
        if model_type_of(model).heads:
            scoring_of(checkpoint, model.scoring, "mc_qa")  # that they agree
    if model_type_of(model).heads and padded_num_choices(num_choices, *tasks) is not None:
        raise UsageError(
            f"original.num_choices {num_choices}: model.kind {model.kind} cannot score the empty "
            "choices that would fill up questions, because they have no likelihood; leave it out"
        )
    return {**asdict(task), "num_choices": num_choices}


def _data_config(sets: Iterable[ProbeData], trainer: TrainerSettings) -> Config:
    """Return the data by checksum, and what of the trainer's settings changes numbers."""
    data = [file.sha256 for file in data_files(sets)]
    # Sums over threads round differently, so whoever fixes their number gets the same bits.
    return {"data": data, **trainer.precisions(), "threads": trainer.threads}


def run_job(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Run one job to its end, resuming it where it was interrupted."""
    # Only now: what trains imports torch and Lightning, which takes seconds.
    from probelight.commands.inoculation.inoculate import InoculationRun
    from probelight.commands.inoculation.original_task import run_original

    protocol = config["protocol"]
    if protocol in (FIRST, ORIGINAL_TASK):
        return run_original(run, config, context)
    inoculation = InoculationRun(run, config, context)
    if protocol == BEFORE:
        return inoculation.score_before()
    if protocol == CELL:
        return inoculation.try_setting()
    if "candidates" in config:
        return inoculation.report_best()
    return inoculation.inoculate()
