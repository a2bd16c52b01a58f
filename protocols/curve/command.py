"""Learning curves with controls of a set of models and probes (Talmor 2020, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from callbacks.wandb.settings import DEFAULT_WANDB, WandbSettings
from jobs.context import DEFAULT_TRAINER, TrainerSettings
from lightning_modules.base import ChoiceModule
from probes.catalog import ProbeConfig
from protocols.curve.data import CurveData
from protocols.curve.full import MODE
from protocols.curve.models import chosen_models
from protocols.curve.phrasing import best_phrasing
from protocols.curve.runs import CurveRuns
from protocols.curve.settings import (
    PROTOCOL,
    CurveSettings,
    ProbeOptions,
    check_names,
    check_points,
    listed,
)
from protocols.engine.own_files import checksums_of, config_of, fitting_grid, own_files
from protocols.engine.settings import DEFAULT_FILES, DEFAULT_MODEL, ModelSettings, SplitFiles
from reports.terminal import print_tables
from results.run_folder import CommandFolder
from storage.errors import UsageError

DEFAULT_GRID = CurveSettings()
DEFAULT_OPTIONS = ProbeOptions()


def curve(
    output_dir: str,
    probes: str | list[str] = "",
    data: SplitFiles = DEFAULT_FILES,
    models: str | list[str] = "",
    model: ModelSettings = DEFAULT_MODEL,
    random_weights: bool = False,
    setup: Literal["mc_qa"] | None = None,
    variant: str | None = None,
    first_stage: str | None = None,
    phrasings: str | list[str] = "",
    grid: CurveSettings = DEFAULT_GRID,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> None:
    """Learning curves of a set of models and probes, with their language controls.

    MC-MLM probes are answered by heads on a frozen encoder, MC-QA probes by fine-tuning the whole
    network. Baselines answer the kind that they are for: MLM-baseline MC-MLM, ESIM MC-QA.

    Args:
        output_dir: Folder of the results; finished points are never computed again.
        probes: Names in configs/probe/ or paths of such files, separated by commas.
        data: Files of one's own in place of `probes`.
        models: Names in configs/model/, paths of such files, folders or Hub names, by commas.
        model: Which model, in place of `models`.
        random_weights: Also run every transformer with random weights (the architecture control).
        setup: "mc_qa" also poses MC-MLM probes as questions with the candidates as answers.
        variant: A variant that the probes' configs declare, such as but_not.
        first_stage: Questions that MC-QA models are trained on first: `probe:split` or a file.
        phrasings: Probes that ask the same in other words: the one with the best mean zero-shot
            accuracy over the models on train rows is traced beside `probes`.
        grid: Points, seeds, modes, controls and where the train rows come from.
        mirror: Folder or address that stands for the addresses of the released files.
        trainer: Device and batch settings.
        wandb: Weights & Biases for the fine-tuned points, in addition to the local files.
    """
    names, worded = listed(probes), listed(phrasings)
    own = own_files(data, "--phrasings" if worded else "--probes", bool(names or worded))
    if not (names or worded or own):
        raise UsageError(
            "give --probes a,b, or --phrasings a,b of one probe, or --data.train FILE with "
            "--data.setup"
        )
    compared = chosen_models(models, model, random_weights)
    options = ProbeOptions(setup, variant, first_stage)
    config = {
        "command": "curve",
        "models": [one.config() for one in compared],
        "probes": names,
        "phrasings": worded,
        "options": asdict(options),
        "grid": asdict(grid),
    }
    if own:
        config["data"] = checksums_of(own, data)
    check_points(grid)
    check_names(grid, [*names, *worded, *{part.config.name for part in own.values()}])
    sets: list[str | ProbeConfig] = [*names]
    if own:
        grid = fitting_grid(grid, own)
        sets = [config_of(own)]
    folder = CommandFolder(Path(output_dir), config, own.values())
    if worded:
        sets.append(best_phrasing(folder, worded, compared, grid.train_split, mirror, trainer))
    trace_curves(folder, sets, compared, grid, mirror, trainer, options, wandb)
    print_tables(folder.path, PROTOCOL)


def trace_curves(
    folder: CommandFolder,
    probes: Sequence[str | ProbeConfig],
    models: Sequence[ModelSettings],
    settings: CurveSettings,
    mirror: str | None,
    trainer: TrainerSettings,
    options: ProbeOptions = DEFAULT_OPTIONS,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> None:
    """Adds the curves of several models and probes to a command's folder.

    Every row is put under every control before anything is computed, and every model is asked
    whether it reads the candidates: what does not fit stops the command at once. results.csv is
    rewritten behind each (model, probe).
    """
    runs = CurveRuns(folder, settings, mirror, trainer, options, wandb)
    sets = [runs.load(name, models) for name in probes]
    if options.first_stage and all(data.setup != "mc_qa" for data in sets):
        raise UsageError("--first_stage: none of the probes is posed as questions; see --setup")
    for model in models:
        for data in sets:
            if modes := modes_of(model, data, settings):
                runs.check(model, data, modes)  # said before hours of training
    for model in models:
        module: ChoiceModule | None = None
        for data in sets:
            if modes := modes_of(model, data, settings):
                if modes == [MODE]:
                    runs.full(model, data)
                else:
                    module = runs.frozen(model, data, modes, module)
                folder.write_results()
            else:
                print(f"{data.config.name}: {model.label} does not answer {data.setup} probes")


def modes_of(model: ModelSettings, data: CurveData, settings: CurveSettings) -> list[Any]:
    """How a model is trained on a probe; nothing where it cannot answer it."""
    if data.setup == "mc_qa":
        return [] if model.kind == "mlm_baseline" else [MODE]
    if model.kind == "mlm_baseline":
        return [mode for mode in settings.modes if mode == "mlp"]
    return [] if model.kind == "esim" else list(settings.modes)
