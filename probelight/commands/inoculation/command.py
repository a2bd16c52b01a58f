"""`train.py inoculate` and `original`, which trains what several begin with, and their jobs."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

from probelight.commands.command import Command, command
from probelight.commands.inoculation.continued import continued_task
from probelight.commands.inoculation.data import load_tasks, measured_sets, original_splits
from probelight.commands.inoculation.original_task import original_jobs, original_spec
from probelight.commands.inoculation.runs import SubjectJobs
from probelight.commands.inoculation.settings import (
    INOCULATION,
    KEEPING_NOTHING,
    ORIGINAL_TASK,
    Extra,
    InoculatedProbe,
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
from probelight.models.registry import DEFAULT_MODEL, ModelSettings
from probelight.models.tuning import FULL_TUNING, Tuning
from probelight.probes.user_files import DEFAULT_FILES, SplitFiles, load_user_files
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder
from probelight.runs.context import RunContext
from probelight.runs.estimates import Plan, detectable_table, plan_of
from probelight.runs.run import run_command
from probelight.runs.settings import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    TrainerSettings,
    expected_device,
)
from probelight.training.modules import question_model

DEFAULT_ORIGINAL, DEFAULT_PROBE = OriginalTask(), ProbeOrFiles()
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
    original: OriginalTask = DEFAULT_ORIGINAL,
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
) -> RunRecord | Plan:
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
        The record of the inoculation, or the plan of a dry run.

    Raises:
        UsageError: If the model cannot answer the questions of the original task, if you do not
            give exactly one probe, by name or as files, or if there are fewer items than you ask
            for.
    """
    is_continued = not original.sets
    model, original = continued_task(model, original)
    if is_continued:
        print(f"original task: {original.name}, on which {original.checkpoint} was trained")
    user_files = load_user_files(data, "--probe.name", bool(probe.name))
    if user_files:
        probe = fitting_probe(probe, user_files)
    elif not probe.name:
        raise UsageError("give --probe.name NAME, or --data.train FILE with --data.setup mc_qa")
    model = question_model(model, original.given_model)
    context = RunContext(trainer, wandb, mirror, user_files.configs, force=force, engine=engine)
    subject = Subject(model, original, InoculatedProbe(**asdict(probe)))
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
    subject_jobs = SubjectJobs(subject, context)
    jobs = [*subject_jobs.originals, subject_jobs.inoculation(setting)]
    for notice in (*tasks.probe.notices, *tasks.original.notices, *tasks.other_notices):
        print(brief(notice))
    if dry_run:
        plan = plan_of(jobs, Path(output_dir), expected_device(trainer.accelerator))
        item_sets = measured_sets(tasks, original.name, num_seeds=1)
        plan = replace(plan, detectable=detectable_table(item_sets))
        plan.show()
        return plan
    config = {
        "command": "inoculate",
        "model": model.config(),
        "original": asdict(subject_jobs.subject.original),
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
    original: OriginalTask = DEFAULT_ORIGINAL,
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
    model, original = continued_task(model, original)
    model = question_model(model, original.given_model)
    context = RunContext(trainer, wandb, mirror, force=force, engine=engine)
    splits = original_splits(context, original)
    for notice in splits.notices:
        print(brief(notice))
    spec = original_spec(model, original, splits).under(trainer, fixes_threads=True)
    config = {"command": "original", **spec.to_config()}
    jobs = original_jobs(model, original, context)
    run_command(output_dir, config, jobs, context, files=splits.files, table=ORIGINAL_TASK)
    if original.given_model is not None:
        trained = original.given_model.folder
    else:
        trained = RunFolder.at(Path(output_dir) / "runs" / jobs[-1].key).best_dir
    print(f"model: {trained}")
    return trained
