"""`train.py inoculate`, and `original`, which trains what several inoculations begin with."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from probelight.io.errors import UsageError
from probelight.io.ranges import BatchSize, LearningRate, NumEpochs, NumItems, PathText, Seed
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.protocols.cli.command import Command, command
from probelight.protocols.engine.chosen_models import question_model
from probelight.protocols.engine.own_files import own_files
from probelight.protocols.engine.settings import (
    DEFAULT_FILES,
    DEFAULT_MODEL,
    ModelSettings,
    SplitFiles,
)
from probelight.protocols.inoculation.data import items_of, original_splits, parts_of
from probelight.protocols.inoculation.jobs import (
    inoculation_jobs,
    original_config,
    original_jobs,
    resolved_task,
)
from probelight.protocols.inoculation.settings import (
    INOCULATION,
    ORIGINAL_TASK,
    Extra,
    OriginalTask,
    ProbeOrFiles,
    Setting,
    Subject,
    fitting_probe,
)
from probelight.protocols.jobs.job import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    RunContext,
    TrainerSettings,
)
from probelight.protocols.jobs.run import run_command
from probelight.results.record import RunRecord
from probelight.results.run_folder import RunFolder

DEFAULT_PROBE = ProbeOrFiles()
DEFAULT_DOSE = 100


@command(
    Command(
        example="train.py inoculate --config configs/experiment/inoculate_hypernymy.yaml "
        "--dose 100 --output_dir runs/inoculate",
        shown="output_dir original.name original.sets original.checkpoint probe.name data.train "
        "data.setup model.name_or_path dose extra learning_rate epochs seed mirror "
        "trainer.accelerator engine.kind wandb.project",
    )
)
def inoculate(
    output_dir: PathText,
    original: OriginalTask,
    probe: ProbeOrFiles = DEFAULT_PROBE,
    data: SplitFiles = DEFAULT_FILES,
    model: ModelSettings = DEFAULT_MODEL,
    dose: NumItems | None = None,
    extra: Extra = "none",
    learning_rate: LearningRate = 1e-5,
    epochs: NumEpochs = 3,
    batch_size: BatchSize = 16,
    seed: Seed = 0,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> RunRecord:
    """Inoculates an original-task model with one dose of a probe and prints what it cost.

    Args:
        output_dir: Folder of the results; the same command goes on in it where it stopped.
        original: The original task and how its model is trained.
        probe: The probe and its splits.
        data: Files of one's own in place of `probe.name`.
        model: The pre-trained model.
        dose: k, the number of probe examples; none takes 100, or all that are left where there are
            fewer.
        extra: Add-some: original-task examples for each probe example.
        learning_rate: Peak rate of the inoculation.
        epochs: Epochs; each one's model is a candidate for M*.
        batch_size: Questions in an optimiser step, all processes together.
        seed: Seeds the dose, its order and dropout.
        mirror: Folder or address that stands for the addresses of the released files.
        trainer: Device and batch settings.
        engine: Where the runs are made: here, or on Ray.
        wandb: Weights & Biases, in addition to the local files.

    Returns:
        The record of the run.

    Raises:
        UsageError: If the model cannot be the original task's, see `check_questions`, there is not
            one probe, by name or as files, or the items are too few for what is asked for.
    """
    user_files = own_files(data, "--probe.name", bool(probe.name))
    if user_files:
        probe = fitting_probe(probe, user_files)
    elif not probe.name:
        raise UsageError("give --probe.name NAME, or --data.train FILE with --data.setup mc_qa")
    model = question_model(model, original.checkpoint)
    context = RunContext(trainer, wandb, mirror, user_files.by_name, engine=engine)
    subject = Subject(model, original, probe)
    parts = parts_of(context, subject)
    if dose is None:
        dose = min(DEFAULT_DOSE, len(parts.probe.train))
        if dose < DEFAULT_DOSE:
            print(f"dose {dose}: all that are left for doses, not the default of {DEFAULT_DOSE}")
    setting = Setting(
        dose, extra, seed, learning_rate=learning_rate, epochs=epochs, batch_size=batch_size
    )
    items_of(parts, setting)
    for notice in (*parts.probe.notices, *parts.original.notices):
        print(notice)
    config = {
        "command": "inoculate",
        "model": model.config(),
        "original": resolved_task(model, original, parts),
        "probe": probe.config(),
        **asdict(setting),
        **user_files.said,
    }
    jobs = inoculation_jobs(subject, [setting], context)
    files = user_files.parts.values()
    run_command(output_dir, config, jobs, context, files=files, table=INOCULATION)
    return RunRecord.read(Path(output_dir) / "runs" / jobs[-1].key / "result.json")


@command(
    Command(
        example="train.py original --config configs/experiment/science_original_task.yaml "
        "--output_dir runs/science",
        shown="output_dir original.name original.sets original.report_sets original.train_items "
        "original.epochs original.learning_rate original.seed model.name_or_path mirror "
        "trainer.accelerator trainer.devices engine.kind wandb.project",
    )
)
def original_task(
    output_dir: PathText,
    original: OriginalTask,
    model: ModelSettings = DEFAULT_MODEL,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> Path:
    """Trains the model of an original task, whose folder inoculations then begin with.

    Args:
        output_dir: Folder of the results; the same command goes on in it where it stopped.
        original: The original task and how its model is trained.
        model: The pre-trained model.
        mirror: Folder or address that stands for the addresses of the released files.
        trainer: Device and batch settings.
        engine: Where the runs are made: here, or on Ray.
        wandb: Weights & Biases, in addition to the local files.

    Returns:
        Folder of the model, for `--original.checkpoint`.

    Raises:
        UsageError: If the model cannot be the original task's, see `check_questions`.
    """
    model = question_model(model, original.checkpoint)
    context = RunContext(trainer, wandb, mirror, engine=engine)
    splits = original_splits(context, original)
    for notice in splits.notices:
        print(notice)
    config = {"command": "original", **original_config(model, original, splits, trainer)}
    jobs = original_jobs(model, original, context)
    run_command(output_dir, config, jobs, context, files=splits.files, table=ORIGINAL_TASK)
    trained = (
        Path(original.checkpoint)
        if original.checkpoint is not None
        else RunFolder.at(Path(output_dir) / "runs" / jobs[-1].key).best_dir
    )
    print(f"model: {trained}")
    return trained
