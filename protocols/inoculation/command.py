"""One inoculation: train or take an original-task model, add one dose, and count the cost."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from callbacks.wandb.settings import DEFAULT_WANDB, WandbSettings
from jobs.context import DEFAULT_TRAINER, TrainerSettings
from protocols.engine.model_kinds import check_questions
from protocols.engine.own_files import checksums_of, config_of, fitting_probe, own_files
from protocols.engine.settings import DEFAULT_FILES, DEFAULT_MODEL, ModelSettings, SplitFiles
from protocols.engine.training import best_dir
from protocols.inoculation.configs import INOCULATION, inoculation_config
from protocols.inoculation.original_task import original_model
from protocols.inoculation.settings import Extra, OriginalTask, ProbeOrFiles, Setting
from protocols.inoculation.steps import REPORT, InoculationSteps
from reports.terminal import print_tables
from results.run_folder import CommandFolder
from storage.config.ranges import BatchSize, LearningRate, NumEpochs, NumItems, Seed
from storage.errors import UsageError

DEFAULT_PROBE = ProbeOrFiles()


def inoculate(
    output_dir: str,
    original: OriginalTask,
    probe: ProbeOrFiles = DEFAULT_PROBE,
    data: SplitFiles = DEFAULT_FILES,
    model: ModelSettings = DEFAULT_MODEL,
    dose: NumItems = 100,
    extra: Extra = "none",
    learning_rate: LearningRate = 1e-5,
    epochs: NumEpochs = 3,
    batch_size: BatchSize = 16,
    seed: Seed = 0,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> dict[str, Any]:
    """Inoculates an original-task model with one dose of a probe and prints what it cost.

    Args:
        output_dir: Folder of the results; the same command goes on in it where it stopped.
        original: The original task and how its model is trained.
        probe: The probe and its splits.
        data: Files of one's own in place of `probe.name`.
        model: The pre-trained model.
        dose: k, the number of probe examples.
        extra: Add-some: original-task examples for each probe example.
        learning_rate: Peak rate of the inoculation.
        epochs: Epochs; each one's model is a candidate for M*.
        batch_size: Questions in an optimiser step, all processes together.
        seed: Seeds the dose, its order and dropout.
        mirror: Folder or address that stands for the addresses of the released files.
        trainer: Device and batch settings.
        wandb: Weights & Biases, in addition to the local files.

    Returns:
        The content of result.json.

    Raises:
        UsageError: If the model cannot be the original task's, see `check_questions`, or there
            is not one probe, by name or as files.
    """
    own = own_files(data, "--probe.name", bool(probe.name))
    if own:
        probe = fitting_probe(probe, own)
    elif not probe.name:
        raise UsageError("give --probe.name NAME, or --data.train FILE with --data.setup mc_qa")
    check_questions(model, original.checkpoint)
    setting = Setting(dose, extra, learning_rate, epochs, batch_size, seed)
    config = {
        "command": "inoculate",
        "model": model.config(),
        "original": asdict(original),
        "probe": asdict(probe),
        **asdict(setting),
    }
    if own:
        config["data"] = checksums_of(own, data)
    folder = CommandFolder(Path(output_dir), config, own.values())
    told = config_of(own) if own else None
    steps = InoculationSteps(model, original, probe, mirror, trainer, wandb, told)
    result = inoculate_once(folder, steps, setting)
    folder.write_results()
    print_tables(folder.path, INOCULATION)
    return result


def inoculate_once(
    folder: CommandFolder, steps: InoculationSteps, setting: Setting
) -> dict[str, Any]:
    """Runs one inoculation from beginning to end, or goes on with it; returns its result."""
    steps.items(setting)  # a dose that is too large is said before hours of training
    model_folder = original_model(
        folder,
        steps.model,
        steps.original,
        steps.original_data,
        steps.mirror,
        steps.trainer,
        steps.wandb,
    )
    parts = (steps.probe_data, steps.original_data)
    name = f"inoculate-{steps.probe_name}-k{setting.dose}-{setting.extra}-s{setting.seed}"
    run = folder.run(
        name,
        inoculation_config(
            INOCULATION, steps.model, steps.original, steps.probe, parts, steps.trainer, setting
        ),
    )
    finished = run.result()
    if finished is not None:
        print(f"{run.key}: complete")
        return finished
    start = time.perf_counter()
    before = steps.before(run, model_folder)
    history, problems = steps.train(run, model_folder, setting, before)
    steps.keep(run, before)  # somebody may have removed them in the meantime
    after = steps.score(best_dir(run), steps.sets(REPORT))
    result = steps.report(run, best_dir(run), setting, before, after, history, problems, start)
    run.finish(result)
    found = run.result()
    assert found is not None
    return found
