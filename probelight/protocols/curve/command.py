"""Learning curves with controls of a set of models and probes (Talmor 2020, section 3)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Literal

from probelight.io.errors import UsageError
from probelight.io.ranges import PathText
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.protocols.cli.command import Command, command
from probelight.protocols.curve.data import check_rows
from probelight.protocols.curve.settings import (
    PROTOCOL,
    CurveSettings,
    ProbeOptions,
    check_names,
    check_points,
    fitting_grid,
)
from probelight.protocols.engine.chosen_models import chosen_models
from probelight.protocols.engine.own_files import own_files
from probelight.protocols.engine.settings import (
    DEFAULT_FILES,
    DEFAULT_MODEL,
    ModelSettings,
    SplitFiles,
    listed,
)
from probelight.protocols.jobs.context import DEFAULT_TRAINER, RunContext, TrainerSettings
from probelight.protocols.jobs.settings import DEFAULT_ENGINE, EngineSettings
from probelight.results.run_folder import CommandFolder

DEFAULT_GRID = CurveSettings()


@command(
    Command(
        "accuracy against the number of training examples",
        example="train.py curve --probes age_small --grid.sizes [62,125] --output_dir runs/curve",
        shown="output_dir probes models random_weights data.train data.dev data.setup setup "
        "phrasings grid.sizes grid.seeds grid.modes grid.controls mirror trainer.accelerator "
        "engine.kind",
    )
)
def curve(
    output_dir: PathText,
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
    engine: EngineSettings = DEFAULT_ENGINE,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> None:
    """Learning curves of a set of models and probes, with their language controls.

    MC-MLM probes are answered by heads on a frozen model of any kind, MC-QA probes by fine-tuning a
    whole encoder. Baselines answer the kind that they are for: MLM-baseline MC-MLM, others MC-QA.

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
        engine: Where the runs are made: here, or on Ray.
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
        **own.said,
    }
    check_points(grid)
    check_names(grid, [*names, *worded, *own.by_name])
    sets = [*names, *own.by_name]
    if own:
        grid = fitting_grid(grid, own)
    context = RunContext(trainer, wandb, mirror, own.by_name, engine=engine)
    check_rows([*sets, *worded], compared, grid, options, context)
    folder = CommandFolder(Path(output_dir), config, own.parts.values())
    # Only now: what trains imports torch and Lightning, which takes seconds.
    from probelight.protocols.curve.curve import Asked
    from probelight.protocols.curve.phrasing import best_phrasing
    from probelight.protocols.curve.trace import trace_curves
    from probelight.reports.terminal import print_tables

    if worded:
        sets.append(best_phrasing(folder, worded, compared, grid.train_split, context))
    trace_curves(folder, sets, Asked(tuple(compared), grid, options), context)
    print_tables(folder.path, PROTOCOL)
