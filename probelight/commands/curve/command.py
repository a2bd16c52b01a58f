"""`train.py curve`: learning curves with controls of a set of models and probes (Talmor 2020).

The settings become curves, one per model and probe; `runs` says what runs a curve has.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

from probelight.commands.command import Command, command
from probelight.commands.curve.curve import Curve, CurveSpec, check_rows
from probelight.commands.curve.runs import PointSpec, curve_jobs
from probelight.commands.curve.settings import (
    PROTOCOL,
    CurveSettings,
    ProbeOptions,
    check_grid,
    fitting_grid,
)
from probelight.io.errors import UsageError
from probelight.io.ranges import Mirror, Names, PathText
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.models.chosen_models import chosen_models
from probelight.models.registry import DEFAULT_MODEL, ModelSettings
from probelight.probes.user_files import DEFAULT_FILES, SplitFiles, load_user_files
from probelight.results.run_folder import CommandFolder, RunFolder
from probelight.runs.context import RunContext
from probelight.runs.estimates import Plan, plan_of
from probelight.runs.run import run_jobs, unfinished
from probelight.runs.settings import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    TrainerSettings,
    expected_device,
)

DEFAULT_GRID = CurveSettings()


@command(
    Command(
        example="train.py curve --probes age_small --grid.sizes 62,125 --output_dir runs/curve",
        options="output_dir probes models random_weights data.train data.dev data.setup setup "
        "phrasings grid.sizes grid.seeds grid.modes grid.controls dry_run mirror "
        "trainer.accelerator engine.kind",
    )
)
def curve(
    output_dir: PathText,
    probes: Names = (),
    data: SplitFiles = DEFAULT_FILES,
    models: Names = (),
    model: ModelSettings = DEFAULT_MODEL,
    random_weights: bool = False,
    setup: Literal["mc_qa"] | None = None,
    variant: str | None = None,
    first_stage: str | None = None,
    phrasings: Names = (),
    grid: CurveSettings = DEFAULT_GRID,
    dry_run: bool = False,
    force: bool = False,
    mirror: Mirror | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    engine: EngineSettings = DEFAULT_ENGINE,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> Plan | None:
    """Traces learning curves of models on probes, with language controls.

    For MC-MLM probes, heads on a frozen model of any type are trained; for MC-QA probes, the whole
    model is fine-tuned. Of the baselines, the MLM-baseline answers MC-MLM probes and the others
    MC-QA probes.

    Args:
        output_dir: Folder of the results. Rerun the same command to resume.
        probes: Probes, separated by commas: names in configs/probe/ or paths of such files.
        data: Your own files instead of `probes`.
        models: Models, separated by commas: names in configs/model/, paths of such files, folders
            or Hub names.
        model: Settings of a single model, instead of `models`.
        random_weights: Also run every transformer with random weights (the architecture control).
        setup: "mc_qa" turns MC-MLM probes into questions with the candidates as answers.
        variant: Variant of the probes, such as but_not; their configs must declare it.
        first_stage: Questions to train MC-QA models on first: `probe:split` or a file.
        phrasings: Probes that ask the same in other words. The one with the best zero-shot accuracy
            on train rows, averaged over the models, is traced in addition to `probes`.
        grid: Points, seeds, modes and controls of the curves, and where the train rows come from.
        dry_run: Only print how many runs and steps it would take, and how much time and memory.
        force: Train even if the estimate says that it does not fit into memory.
        mirror: Folder or address with copies of the released files.
        trainer: Device and batch settings.
        engine: Where the runs are computed: in this process, or on Ray.
        wandb: Logging of the fine-tuned points to Weights & Biases, in addition to the local files.
    """
    alternative = "--phrasings" if phrasings else "--probes"
    user_files = load_user_files(data, alternative, bool(probes or phrasings))
    if not (probes or phrasings or user_files):
        raise UsageError(
            "give --probes a,b, or --phrasings a,b of one probe, or --data.train FILE with "
            "--data.setup"
        )
    compared = chosen_models(models, model, random_weights)
    options = ProbeOptions(setup, variant, first_stage)
    config = {
        "command": "curve",
        "models": [settings.config() for settings in compared],
        "probes": probes,
        "phrasings": phrasings,
        "options": asdict(options),
        "grid": asdict(grid),
        **user_files.recorded,
    }
    check_grid(grid, [*probes, *phrasings, *user_files.configs])
    traced = [*probes, *user_files.configs]
    if user_files:
        grid = fitting_grid(grid, user_files, random_weights)
    context = RunContext(trainer, wandb, mirror, user_files.configs, force=force, engine=engine)
    curves_of([*traced, *phrasings], compared, grid, options, context)  # to check them
    if dry_run:
        # Which phrasing is the best takes scores of all of them.
        curves = curves_of([*traced, *phrasings[:1]], compared, grid, options, context)
        plan = [job for traced_curve in curves for job in curve_jobs(traced_curve)]
        estimate = plan_of(plan, Path(output_dir), expected_device(trainer.accelerator))
        estimate.show()
        return estimate
    folder = CommandFolder(Path(output_dir), config, user_files.data_by_split.values())
    if phrasings:
        from probelight.commands.curve.phrasing import best_phrasing

        traced.append(best_phrasing(folder, phrasings, compared, grid.train_split, context))
    trace_curves(folder, curves_of(traced, compared, grid, options, context), context)
    from probelight.reports.formats import print_tables
    from probelight.reports.overview.story import print_story

    print_story(print_tables(folder.path, PROTOCOL))
    return None


def curves_of(
    probes: Sequence[str],
    models: Sequence[ModelSettings],
    settings: CurveSettings,
    options: ProbeOptions,
    context: RunContext,
) -> list[Curve]:
    """Return the curve of every model on every probe; rows, sizes and models are checked."""
    check_rows(probes, models, settings, options, context)
    return [
        Curve(CurveSpec(probe, model, tuple(models), settings, options), context)
        for model in models
        for probe in probes
    ]


def trace_curves(
    folder: CommandFolder, curves: Sequence[Curve], context: RunContext, bar: str = ""
) -> None:
    """Add curves to a command's folder, under one bar or one for each (model, probe).

    Every row is put under every control, and every model is checked to read the candidates, before
    anything is computed. results.csv is rewritten behind each (model, probe).
    """
    plans = [curve_jobs(curve) for curve in curves]
    missing = [unfinished(plan, folder) for plan in plans]
    for job in (job for jobs in missing for job in jobs):
        job.spec.check(context)
    for curve, plan, jobs in zip(curves, plans, missing, strict=True):
        name, label = curve.data.config.name, curve.model.label
        if not curve.modes:
            kind, hint = curve.model.type, ""
            if not (kind.trained or kind.heads):
                hint = " in a curve, because it has nothing to train; use `train.py zero-shot`"
            elif "mc_qa" in kind.trained:
                hint = "; --setup mc_qa turns them into questions"
            context.say(f"{name}: {label} does not answer {curve.data.setup} probes{hint}")
        elif not jobs:
            context.say(f"{name}: curve of {label} complete")
        for job in plan:
            # A start may have been killed behind a point's result, before its states were removed.
            if isinstance(job.spec, PointSpec) and folder.result(job.key) is not None:
                states = RunFolder.at(folder.runs_dir / job.key).checkpoint_dir
                shutil.rmtree(states, ignore_errors=True)
    jobs = [
        replace(job, bar=bar or f"{curve.data.config.name}, {curve.model.label}")
        for curve, plan in zip(curves, plans, strict=True)
        for job in plan
    ]
    run_jobs(jobs, folder, context)
