"""`train.py demo`: what the bundled model knew, learned and forgot."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

from probelight.commands.command import Command, command
from probelight.commands.curve.command import curves_of, trace_curves
from probelight.commands.curve.settings import CurveSettings, ProbeOptions
from probelight.commands.inoculation.runs import inoculation_jobs
from probelight.commands.inoculation.settings import (
    Extra,
    InoculatedProbe,
    OriginalTask,
    Setting,
    Subject,
)
from probelight.commands.zero_shot import zero_shot_jobs
from probelight.evaluation.scorers import refuse_untrained
from probelight.evaluation.sets import context_of, load_sets
from probelight.io.documents import read_yaml
from probelight.io.errors import UsageError
from probelight.io.package import CONFIGS
from probelight.io.ranges import Distinct, LearningRate, NumEpochs, NumItems, PathText, Seed
from probelight.io.settings import typed
from probelight.models.chosen_models import model_of, with_model_type
from probelight.models.registry import ModelSettings
from probelight.probes.controls import CHOICE_ONLY
from probelight.probes.user_files import DEFAULT_FILE
from probelight.results.run_folder import CommandFolder
from probelight.runs.context import RunContext
from probelight.runs.run import run_jobs, unfinished
from probelight.runs.settings import DEFAULT_TRAINER, TrainerSettings
from probelight.training.settings import Fit


@dataclass(frozen=True, kw_only=True)
class DemoSettings(Fit):
    """What the demo runs; configs/experiment/demo.yaml has all values, `Fit` those of inoculation.

    Args:
        probes: Fill-the-mask probes, scored on their test splits before any training.
        random_weights: Whether to score the same architecture with random weights too, as a control
            of probes that have no learning curve.
        curve_probes: Probes with a learning curve.
        curve: Sizes, seeds and controls of the learning curves.
        original: The original task.
        probe: The probe that the inoculation fine-tunes on.
        dose: Number of probe examples in an inoculation.
        extras: Replay: how many original-task examples to mix in, per probe example.
        seeds: Seeds of the inoculations; each extra is run with each seed.
        model: The model probed.
    """

    probes: Annotated[list[str], Distinct()]
    curve_probes: Annotated[list[str], Distinct()]
    original: OriginalTask
    probe: InoculatedProbe
    curve: CurveSettings = field(default_factory=CurveSettings)
    random_weights: bool = False
    dose: NumItems = 200
    extras: Annotated[list[Extra], Distinct()] = field(default_factory=lambda: ["none", "x1"])
    seeds: Annotated[list[Seed], Distinct()] = field(default_factory=lambda: [1, 2, 3])
    learning_rate: LearningRate = 1e-4
    epochs: NumEpochs = 2
    model: ModelSettings = field(default_factory=ModelSettings)


@command(
    Command(
        example="train.py demo --output_dir runs/demo",
        options="output_dir model plan.probes plan.curve_probes plan.dose plan.extras plan.seeds "
        "plan.epochs plan.model.name_or_path trainer.accelerator trainer.threads",
        config="configs/experiment/demo.yaml",
    )
)
def demo(
    plan: DemoSettings,
    output_dir: PathText = "runs/demo",
    model: str = "",
    trainer: TrainerSettings = DEFAULT_TRAINER,
) -> Path:
    """Runs zero-shot probes, learning curves and inoculations with controls; makes the report.

    Args:
        plan: What to run.
        output_dir: Folder of the results; rerun the same command to resume.
        model: Another model: "smollm2" has a plan of its own, any other that of the bundled one.
        trainer: Device and batch settings.

    Returns:
        The page.

    Raises:
        UsageError: If the model is a baseline, which has no zero-shot score.
    """
    start = time.perf_counter()
    if model:
        plan = plan_for(model, plan)
    chosen = with_model_type(plan.model)
    refuse_untrained([chosen], "the zero-shot part of demo")
    config = {"command": "demo", **asdict(replace(plan, model=chosen))}
    folder = CommandFolder(Path(output_dir), config)
    sets = load_sets(plan.probes, DEFAULT_FILE, "test", mirror=None)
    from probelight.io.progress import progress_of
    from probelight.reports.build import build_report
    from probelight.reports.formats import page_line
    from probelight.reports.overview.story import print_story
    from probelight.results.load import load_results

    context = context_of(sets, RunContext(trainer, quiet=True))
    names = ("learning_rate", "epochs", "batch_size", "tuning")
    fit = {name: getattr(plan, name) for name in names}
    settings = [
        Setting(plan.dose, extra, seed, **fit) for extra in plan.extras for seed in plan.seeds
    ]
    subject = Subject(chosen, plan.original, plan.probe)
    # Without a control of the dose its verdict would be "cannot tell".
    control = replace(subject, probe=replace(plan.probe, control=CHOICE_ONLY))
    controls = [setting for setting in settings if setting.extra == plan.extras[0]]
    controls_of_model = [replace(chosen, random_weights=True)] if plan.random_weights else []
    scored = zero_shot_jobs(sets, [chosen, *controls_of_model], trainer)
    for job in unfinished(scored, folder):
        job.spec.check(context)
    bar = "1 of 4: accuracy before any training"
    run_jobs([replace(job, bar=bar) for job in scored], folder, context)
    curves = curves_of(plan.curve_probes, [chosen], plan.curve, ProbeOptions(), context)
    trace_curves(folder, curves, context, "2 of 4: learning curves, with and without language")
    jobs = [*inoculation_jobs(subject, settings, context)]
    jobs += inoculation_jobs(control, controls, context)
    bar = "3 of 4: fine-tuning on a probe, with and without replay"
    run_jobs([replace(job, bar=bar) for job in jobs], folder, context)
    with progress_of(enabled=trainer.progress_bar) as stage:
        stage.add_task("4 of 4: the report", total=None)
        page = build_report(folder.path)
    seconds = time.perf_counter() - start
    print_story(load_results(folder.path), page_line(page), f"in {seconds:.0f} seconds")
    return page


def plan_for(model: str, plan: DemoSettings) -> DemoSettings:
    """Return the plan of a model that has one of its own, or else `plan` with the model."""
    path = CONFIGS / "experiment" / f"demo_{model}.yaml"
    if not path.is_file():
        return replace(plan, model=model_of(model))
    if plan != _read_plan(CONFIGS / "experiment" / "demo.yaml"):
        raise UsageError(
            f"--model {model} has a plan of its own, {path}; leave out --plan, or give --config "
            "with that file and the options that you change"
        )
    return _read_plan(path)


def _read_plan(path: Path) -> DemoSettings:
    return typed(DemoSettings, read_yaml(path)["plan"], str(path), UsageError, within="plan")
