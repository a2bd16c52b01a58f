"""`train.py curve`: learning curves with controls of a set of models and probes (Talmor 2020).

The settings become curves, one per model and probe, and a curve becomes jobs: one per (mode, N) of
heads on a frozen encoder, one per (N, control, seed) of a whole network that is fine-tuned.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from probelight.commands.command import Command, command
from probelight.commands.curve.curve import Curve, check_rows
from probelight.commands.curve.settings import (
    FIRST_STAGE,
    PROTOCOL,
    UNTRAINED,
    CurveSettings,
    ProbeOptions,
    check_grid,
    fitting_grid,
)
from probelight.evaluation.scorers import check_scorer
from probelight.io.errors import UsageError
from probelight.io.process import is_first_process
from probelight.io.ranges import Mirror, Names, PathText
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.models.chosen_models import chosen_models
from probelight.models.registry import FULL
from probelight.models.settings import DEFAULT_MODEL, ModelSettings, model_type_of, weights_bytes
from probelight.probes.controls import STANDARD
from probelight.probes.user_files import DEFAULT_FILES, SplitFiles, load_user_files
from probelight.results.record import RunRecord, check_data, checksums
from probelight.results.run_folder import CommandFolder, RunFolder
from probelight.runs.context import RunContext
from probelight.runs.execution import result_of_first
from probelight.runs.job import Job
from probelight.runs.memory import LARGE, MemoryNeed
from probelight.runs.run import print_plan, run_jobs, unfinished
from probelight.runs.settings import (
    DEFAULT_ENGINE,
    DEFAULT_TRAINER,
    EngineSettings,
    TrainerSettings,
)
from probelight.training.modules import check_module, check_tuning, saved_bytes

DEFAULT_GRID = CurveSettings()


@command(
    Command(
        example="train.py curve --probes age_small --grid.sizes 62,125 --output_dir runs/curve",
        shown="output_dir probes models random_weights data.train data.dev data.setup setup "
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
) -> None:
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
    check_rows([*traced, *phrasings], compared, grid, options, context)
    if dry_run:
        # Which phrasing is the best takes scores of all of them.
        curves = curves_of([*traced, *phrasings[:1]], compared, grid, options, context)
        plan = [job for traced_curve in curves for job in curve_jobs(traced_curve)]
        print_plan(plan, Path(output_dir), trainer.accelerator)
        return
    folder = CommandFolder(Path(output_dir), config, user_files.parts.values())
    if phrasings:
        from probelight.commands.curve.phrasing import best_phrasing

        traced.append(best_phrasing(folder, phrasings, compared, grid.train_split, context))
    trace_curves(folder, traced, compared, grid, options, context)
    from probelight.reports.formats import print_tables

    print_tables(folder.path, PROTOCOL)


def curves_of(
    probes: Sequence[str],
    models: Sequence[ModelSettings],
    settings: CurveSettings,
    options: ProbeOptions,
    context: RunContext,
) -> list[Curve]:
    """Return the curve of every model on every probe."""
    return [
        Curve(probe, model, tuple(models), settings, options, context)
        for model in models
        for probe in probes
    ]


def trace_curves(
    folder: CommandFolder,
    probes: Sequence[str],
    models: Sequence[ModelSettings],
    settings: CurveSettings,
    options: ProbeOptions,
    context: RunContext,
) -> None:
    """Add the curves of several models and probes to a command's folder.

    Every row is put under every control, and every model is checked to read the candidates, before
    anything is computed. results.csv is rewritten behind each (model, probe).
    """
    check_rows(probes, models, settings, options, context)
    curves = curves_of(probes, models, settings, options, context)
    plans = [curve_jobs(curve) for curve in curves]
    missing = [unfinished(plan, folder) for plan in plans]
    for curve, jobs in zip(curves, missing, strict=True):
        if jobs and (FULL in curve.modes or not curve.modes):
            check_tuning(curve.model, curve.data.setup, curve.fit.tuning)
        if not jobs or not model_type_of(curve.model).has_checkpoint:
            continue
        if FULL in curve.modes:
            check_module(curve.model, curve.data.setup)
        if curve.modes != [FULL]:
            from probelight.commands.curve.heads import refuse_unposed

            rows = [row_set for name in settings.controls for row_set in curve.rows.under(name)]
            check_scorer(curve.model, "mc_mlm", rows, refuse_unposed)
    for curve, plan, jobs in zip(curves, plans, missing, strict=True):
        name, label = curve.data.config.name, curve.model.label
        if not curve.modes:
            kind, hint = model_type_of(curve.model), ""
            if not (kind.trained or kind.heads):
                hint = " in a curve, because it has nothing to train; use `train.py zero-shot`"
            elif "mc_qa" in kind.trained:
                hint = "; --setup mc_qa turns them into questions"
            context.say(f"{name}: {label} does not answer {curve.data.setup} probes{hint}")
        elif not jobs:
            context.say(f"{name}: curve of {label} complete")
        for job in plan:
            # A start may have been killed behind a point's result, before its states were removed.
            if job.config.get("mode") == FULL and folder.result(job.key) is not None:
                states = folder.run(job.name, job.config).checkpoint_dir
                shutil.rmtree(states, ignore_errors=True)
    jobs = [
        replace(job, bar=f"{curve.data.config.name}, {curve.model.label}")
        for curve, plan in zip(curves, plans, strict=True)
        for job in plan
    ]
    run_jobs(jobs, folder, context)


def curve_jobs(curve: Curve) -> list[Job]:
    """Return the jobs of a curve, small points first; none where the model cannot answer."""
    if not curve.modes:
        return []
    settings, model, data = curve.settings, curve.model, curve.data
    common = {
        "protocol": PROTOCOL,
        "model": model.config(),
        "probe": data.config.name,
        "setup": data.setup,
        "train": data.train_source,
        "split": data.split,
        "nonsense": dict(data.nonsense),
        "substitutes": dict(data.substitutes) if data.config.key_words else {},
        "arguments": dict(data.config.arguments),
        "group_by": data.config.group_by,
        "data": [file.sha256 for file_data in data.files for file in file_data.files],
        # Other models of the command can have left rows out.
        "rows": [len(data.train), len(data.evaluation)],
        "curve": curve.config(),
    }
    trainer = curve.context.trainer
    # How often a text is read, by weights drawn anew and in the words of each control.
    num_reads = (len(settings.seeds) if model.random_weights else 1) * len(settings.controls)
    train, evaluation, size = curve.rows.train, curve.rows.evaluation, weights_bytes(model)
    jobs = []
    sizes = [0, *curve.rows.sizes]
    if asks_untrained(model):
        # Neither heads nor the whole model begin with a point of their own: N = 0 is its scorer's.
        sizes.remove(0)
        config = {
            **common,
            "mode": UNTRAINED,
            "num_train": 0,
            "controls": settings.controls,
            "seeds": settings.seeds,
            **trainer.precisions(),
        }
        name = f"curve-{data.config.name}-{UNTRAINED}-0-{model.label}"
        num_texts = num_reads * sum(len(row.choices) for row in evaluation)
        jobs.append(Job(name, config, run_job, weights_bytes=size, num_texts=num_texts))
    # Each text is read once, before the first heads are trained on its features.
    num_texts = num_reads * len({row.stem for row in (*train, *evaluation)})
    for mode in (mode for mode in curve.modes if mode != FULL):
        fit = settings.head_fit(mode) if model_type_of(model).is_pretrained else curve.fit
        for num_train in sizes:
            config = {
                **common,
                "mode": mode,
                "num_train": num_train,
                "seeds": settings.seeds,
                "controls": settings.controls,
                "fit": asdict(fit),
                **trainer.precisions(),
            }
            name = f"curve-{data.config.name}-{mode}-{num_train}-{model.label}"
            jobs.append(Job(name, config, run_job, weights_bytes=size, num_texts=num_texts))
            num_texts = 0
    return [*jobs, *(_full_jobs(curve, common) if FULL in curve.modes else ())]


def asks_untrained(model: ModelSettings) -> bool:
    """Return whether a model chooses before it is trained, as none with a fresh head does."""
    return bool(model_type_of(model).heads) and model.scoring != "last_token"


def _full_jobs(curve: Curve, common: Mapping[str, Any]) -> list[Job]:
    """Return a job for each (N, control, seed), behind the first stage of its control."""
    settings, label = curve.settings, curve.model.label
    precision, num_bytes = curve.context.trainer.precisions(), weights_bytes(curve.model)
    saved = saved_bytes(curve.model, curve.data.setup, curve.fit.tuning)
    first_stages: dict[str, Job] = {}
    if (stage := curve.first_stage) is not None:
        for control in settings.controls:
            name, facts_control = stage.facts.config.name, stage.control_of(control)
            config = {
                "protocol": FIRST_STAGE,
                "model": curve.model.config(),
                "facts": name,
                "control": facts_control,
                "seed": stage.seed,
                "fit": asdict(stage.settings),
                **precision,
                "data": checksums(stage.facts),
                "curve": curve.config(),
            }
            first_stages[control] = Job(
                f"first-stage-{name}-{facts_control}-{label}",
                config,
                run_job,
                num_steps=stage.settings.num_steps(len(stage.facts.records)),
                weights_bytes=num_bytes,
                saved_bytes=saved_bytes(curve.model, curve.data.setup, stage.settings.tuning),
            )
    jobs = {job.key: job for job in first_stages.values()}  # controls may share one
    # The job that scores without training has them, where there is one.
    level = (
        None if asks_untrained(curve.model) else (curve.rows.sizes[0], STANDARD, settings.seeds[0])
    )
    for size in curve.rows.sizes:
        for control in settings.controls:
            for seed in settings.seeds:
                config = {
                    **common,
                    "size": size,
                    "control": control,
                    "seed": seed,
                    "with_levels": (size, control, seed) == level,
                    "mode": FULL,
                    "fit": asdict(curve.fit),
                    "first_stage": None,
                    **precision,
                }
                needs: tuple[str, ...] = ()
                if (first := first_stages.get(control)) is not None:
                    needs = (first.key,)
                    config["first_stage"] = {
                        "facts": first.config["data"],
                        "control": first.config["control"],
                        "seed": first.config["seed"],
                        "run": first.key,
                    }
                name = f"curve-{curve.data.config.name}-{FULL}-{size}-{control}-{seed}-{label}"
                steps = curve.fit.num_steps(size)
                job = Job(
                    name,
                    config,
                    run_job,
                    needs,
                    steps,
                    num_bytes,
                    keeps_model=False,
                    saved_bytes=saved,
                )
                if num_bytes > LARGE:
                    job = replace(job, memory=partial(point_memory, curve, size, control, seed))
                jobs[job.key] = job
    return list(jobs.values())


def point_memory(curve: Curve, size: int, control: str, seed: int) -> MemoryNeed:
    """Return what fine-tuning a point will take of memory."""
    from probelight.commands.curve.fine_tuning import memory_of

    return memory_of(curve, size, control, seed)


def run_job(run: RunFolder, config: Mapping[str, Any], context: RunContext) -> RunRecord:
    """Make one run of a curve, resuming it where it was interrupted."""
    # Only now: what trains imports torch and Lightning, which takes seconds.
    from probelight.commands.curve.fine_tuning import train_facts, train_point
    from probelight.commands.curve.heads import score_untrained, train_heads

    curve = Curve.of(config, context)
    if config["protocol"] == FIRST_STAGE:
        stage = curve.first_stage
        assert stage is not None
        check_data(config["data"], [stage.facts])
        return train_facts(run, curve.model, stage, config["control"], context)
    check_data(config["data"], curve.data.files)
    if config["mode"] == UNTRAINED:
        return score_untrained(run, curve)
    if config["mode"] != FULL:
        if not is_first_process():  # heads of all seeds and controls are one stack, on one device
            return result_of_first(run)
        return train_heads(run, curve, config["mode"], config["num_train"])
    start = None
    if first_stage := config["first_stage"]:
        start = RunFolder.at(run.path.parent / first_stage["run"]).best_dir
    point = {name: config[name] for name in ("size", "control", "seed", "with_levels")}
    record = train_point(run, curve, **point, start=start)

    def remove_states(end: RunRecord | BaseException) -> None:
        if isinstance(end, RunRecord):  # a large model's are gigabytes
            shutil.rmtree(run.checkpoint_dir, ignore_errors=True)

    run.listeners.append(remove_states)  # once result.json is there
    return record
