"""`train.py sweep plan`, `run` and `status`: one config, one folder, any number of GPUs.

A grid of inoculations becomes the runs of the sweep. An original task (and what is trained before
it) is one run that all others share; `before` scores it once per probe;
each setting is a run that trains and scores the selection items after every epoch; for every dose
and seed one last run takes M*_k, the best of all settings and epochs, to the report items, which
nothing else reads (Richardson & Sabharwal 2020, section 4.1).
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from probelight.commands.command import Command, command
from probelight.commands.inoculation.continued import continued_task
from probelight.commands.inoculation.data import Tasks, load_tasks, measured_sets, num_balancing
from probelight.commands.inoculation.runs import SubjectJobs
from probelight.commands.inoculation.settings import (
    KEEPING_NOTHING,
    Extra,
    InoculatedProbe,
    Keeping,
    OriginalTask,
    Setting,
    Strength,
    Subject,
)
from probelight.io import ranges
from probelight.io.errors import UsageError
from probelight.io.package import program
from probelight.io.progress import counted
from probelight.io.settings import Settings
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.models.checkpoint_errors import PretrainedError
from probelight.models.chosen_models import with_model_type
from probelight.models.registry import AUTO, ModelSettings
from probelight.models.tuning import FULL_TUNING, LORA, Tuning
from probelight.results.run_folder import CommandFolder, planned_keys
from probelight.runs.context import RunContext
from probelight.runs.estimates import Plan, detectable_table, plan_of
from probelight.runs.fencing import without_driver
from probelight.runs.on_ray.cluster import Resources
from probelight.runs.plan import StoredPlan, is_finished, plan_jobs, wandb_group
from probelight.runs.settings import (
    DEFAULT_SWEEP_ENGINE,
    DEFAULT_TRAINER,
    RaySettings,
    TrainerSettings,
    expected_device,
)
from probelight.runs.spec import Job, Trial
from probelight.runs.status import show_status
from probelight.training.modules import check_tuning, question_model

DEFAULT_DOSES = [100, 250, 500, 1000, 2000, 3000]
DEFAULT_EXTRAS: list[Extra] = ["none", "x1", "x2"]


@dataclass(frozen=True)
class KeepingGrid(Settings):
    """A method against forgetting; each of its settings is reported.

    Args:
        method: "none", a method of `Keeping`, or "lora".
        strengths: Strengths of the method, or ranks of lora. By default only its default strength.
        learning_rates: Peak rates instead of the row's. A lower rate also reduces forgetting.
    """

    method: Literal["none", "replay", "l2_sp", "distillation", "lora"] = "none"
    strengths: Annotated[list[Strength], ranges.Distinct()] = field(default_factory=list)
    learning_rates: Annotated[list[ranges.LearningRate], ranges.Distinct()] = field(
        default_factory=list
    )

    def methods(self) -> list[tuple[Keeping, Tuning]]:
        """Return the method at each strength; UsageError for a strength that it cannot have."""
        if self.method == "lora":
            if odd := [strength for strength in self.strengths if strength != int(strength)]:
                raise UsageError(f"strengths of lora are ranks: give whole numbers, not {odd[0]:g}")
            ranks = [int(strength) for strength in self.strengths] or [Tuning.rank]
            return [(KEEPING_NOTHING, Tuning(LORA, rank=rank)) for rank in ranks]
        strengths: list[float | None] = [*self.strengths] or [None]
        return [(Keeping(self.method, strength), FULL_TUNING) for strength in strengths]


@dataclass(frozen=True)
class SweepRow(Settings):
    """One probe on one model and original task, with its grid of settings.

    Args:
        model: A name under `models`.
        original: A name under `originals`.
        probe: The probe and its splits.
        doses: k, numbers of probe examples. Of the default doses, those with enough examples.
        learning_rates: Peak rates; with `search: tpe`, the lowest and the highest.
        extras: Add-some: none, x1 or x2. By default (null) those for which the dose has enough
            reserved items, or only none with methods against forgetting. Each extra that you give
            is tried with each method.
        keeping: Methods against forgetting to compare at equal gain on the probe; each of their
            settings is reported at its best epoch. By default the sweep trains without any, and
            reports M*_k alone.
        seeds: Seeds of dose, order and dropout; M*_k is chosen for each seed.
        epochs: Number of epochs. The model after each one is a candidate for M*_k.
        batch_size: Questions per optimiser step.
        tuning: Which weights to train.
    """

    model: str
    original: str
    probe: InoculatedProbe
    doses: Annotated[list[ranges.NumItems], ranges.Distinct(1)] = field(
        default_factory=DEFAULT_DOSES.copy
    )
    learning_rates: Annotated[list[ranges.LearningRate], ranges.Distinct(1)] = field(
        default_factory=lambda: [1e-5, 2e-5, 5e-5]
    )
    extras: Annotated[list[Extra], ranges.Distinct(1)] | None = None
    keeping: Annotated[list[KeepingGrid], ranges.Distinct()] = field(default_factory=list)
    seeds: Annotated[list[ranges.Seed], ranges.Distinct(1)] = field(default_factory=lambda: [0])
    epochs: ranges.NumEpochs = 3
    batch_size: ranges.BatchSize = 16
    tuning: Tuning = FULL_TUNING


@dataclass(frozen=True)
class SweepGrid(Settings):
    """Everything that a sweep runs.

    Args:
        models: Pre-trained models, by name.
        originals: Original tasks, by name.
        rows: Which model and original task to inoculate with which probe.
        search: "grid" runs every setting; "tpe" draws `num_trials` of them for each dose and seed.
        num_trials: Number of settings that "tpe" draws.
        trials_at_once: How many settings to draw together, given the results of all earlier ones.
            With more, more runs can run at the same time; with fewer, each draw knows more
            results.
    """

    models: dict[str, ModelSettings]
    originals: dict[str, OriginalTask]
    rows: Annotated[list[SweepRow], ranges.Distinct(1)]
    search: Literal["grid", "tpe"] = "grid"
    num_trials: Annotated[int, ranges.Within(1, 10_000)] = 12
    trials_at_once: Annotated[int, ranges.Within(1, 10_000)] = 4


@command(
    Command(
        example="train.py sweep plan --config configs/sweep/released.yaml --output_dir runs/sweep",
        options="output_dir grid.models grid.originals grid.rows grid.search grid.num_trials "
        "engine.cpus_per_cell engine.gpus_per_cell engine.memory_per_cell engine.max_retries "
        "mirror trainer.accelerator trainer.threads wandb.project",
    )
)
def plan(
    output_dir: ranges.PathText,
    grid: SweepGrid,
    engine: RaySettings = DEFAULT_SWEEP_ENGINE,
    mirror: ranges.Mirror | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    wandb: WandbSettings = DEFAULT_WANDB,
    force: bool = False,
) -> Plan:
    """Plans the runs of a sweep, and prints what they cost and which differences they can show.

    Args:
        output_dir: Folder of the sweep, which all nodes must see.
        grid: Models, original tasks and probes, and the settings to try.
        engine: Resources of a run, and how often a failed one is tried again.
        mirror: Folder or address with copies of the released files.
        trainer: Device and batch settings of the runs.
        wandb: Logging to Weights & Biases, in addition to the local files.
        force: Let runs train even if the estimate says that they do not fit into memory.

    Returns:
        The runs, and what they take of time, memory and disk.
    """
    folder, context = Path(output_dir), RunContext(trainer, wandb, mirror, force=force)
    device = expected_device(trainer.accelerator)
    resources = Resources.of(engine, trainer, has_gpus=device == "gpu")
    jobs = sweep_jobs(grid, context)
    CommandFolder(folder, {"command": "sweep"})
    with without_driver(folder, engine.take_over):
        planned = plan_jobs(folder, jobs)
        dropped_keys = (planned_keys(folder) or frozenset()) - {job.key for job in planned}
        StoredPlan(context, engine, planned).keep(folder)
    item_sets = []  # what rows are selected and reported on
    for row in grid.rows:
        model, task = continued_task(grid.models[row.model], grid.originals[row.original])
        subject = Subject(model, task, row.probe)
        item_sets += measured_sets(load_tasks(context, subject), row.original, len(row.seeds))
    estimate = plan_of(jobs, folder, device, resources.num_sharing)
    lines = [*estimate.lines, f"resources: a run takes {resources}"]
    if dropped_keys:
        dropped = counted(len(dropped_keys), "run")
        lines.append(
            f"no longer in the plan: {dropped}, which stay in the folder, but do not count"
        )
    estimate = replace(estimate, lines=tuple(lines), detectable=detectable_table(item_sets))
    estimate.show()
    if trainer.threads is None:
        print("trainer.threads is not set: results may differ in the last bits between machines")
    is_left = not all(is_finished(folder / "runs", job.key) for job in planned)
    print(f"next: {_next_command(folder, is_left)}")
    return estimate


def sweep_jobs(grid: SweepGrid, context: RunContext) -> list[Job]:
    """Return the jobs of a sweep, each once, with those that others need before them."""
    jobs: dict[str, Job] = {}
    models = dict(grid.models)
    for name, model in models.items():
        if model.kind == AUTO:
            with _prefix_refusals(f"models.{name}"):
                models[name] = with_model_type(model)
    grid = replace(grid, models=models)
    for number, row in enumerate(grid.rows, start=1):
        for job in _row_jobs(grid, row, f"rows: number {number}", context):
            jobs.setdefault(job.key, job)
    return list(jobs.values())


def _row_jobs(grid: SweepGrid, row: SweepRow, label: str, context: RunContext) -> Iterator[Job]:
    """Yield the jobs of a row, which messages call by the label."""
    model = _entry_named(grid.models, row.model, f"{label}: model")
    task = _entry_named(grid.originals, row.original, f"{label}: original")
    with _prefix_refusals(f"{label}: models.{row.model}"):
        model, task = continued_task(model, task)
        model = question_model(model, task.given_model)
        if row.keeping and row.tuning != FULL_TUNING:
            raise UsageError("tuning and keeping: give lora as one of the methods in keeping")
        methods = [method for entry in row.keeping for method in entry.methods()]
        check_tuning(model, "mc_qa", row.tuning, *(tuning for _, tuning in methods))
    with _prefix_refusals(label):
        subject = Subject(model, task, row.probe)
        jobs = SubjectJobs(subject, context, f"{row.original}-{row.model}")
    yield from jobs.originals
    yield jobs.before_job
    for notice in (*jobs.tasks.probe.notices, *jobs.tasks.original.notices):
        context.say(f"{label}: {notice}")
    for dose, extras in _fitting_extras(row, jobs.tasks, label, context).items():
        for seed in row.seeds:
            fitting = replace(row, extras=extras)
            with _prefix_refusals(label):
                if row.keeping:
                    candidate_sets = _method_candidates(grid, fitting, dose, seed, jobs)
                else:
                    candidate_sets = [("", _candidates(grid, fitting, dose, seed, jobs))]
            # Of each, M* is chosen: with methods against forgetting among the epochs alone.
            for method, candidates in candidate_sets:
                yield from candidates
                yield jobs.report(candidates, dose, seed, method)


@contextmanager
def _prefix_refusals(label: str) -> Iterator[None]:
    """Begin the message of a refusal in the block with the label of its entry in the grid."""
    try:
        yield
    except (UsageError, PretrainedError) as error:
        raise type(error)(f"{label}: {error}") from error


def _entry_named(entries: Mapping[str, Any], name: str, label: str) -> Any:
    """Return what a row names; UsageError for an unknown name."""
    if name not in entries:
        raise UsageError(f"{label} is {name!r}; choose from {', '.join(sorted(entries))}")
    return entries[name]


def _fitting_extras(
    row: SweepRow, tasks: Tasks, label: str, context: RunContext
) -> dict[int, list[Extra]]:
    """Return the extras of each dose; of the defaults those that there are enough items for."""
    num_left, reserved = len(tasks.probe.train), len(tasks.original.reserved)
    doses = row.doses
    if doses == DEFAULT_DOSES and max(doses) > num_left:
        doses = [dose for dose in doses if dose <= num_left] or [num_left]
        context.say(f"{label}: doses {doses}, because {num_left} probe examples are left for doses")
    extras_by_dose = {}
    default: list[Extra] = ["none"] if row.keeping else DEFAULT_EXTRAS
    for dose in doses:
        if row.extras is not None:
            extras_by_dose[dose] = row.extras
            continue
        extras = [extra for extra in default if num_balancing(dose, extra) <= reserved]
        extras_by_dose[dose] = extras
        if too_large := ", ".join(extra for extra in default if extra not in extras):
            context.say(
                f"{label}: dose {dose} without extra {too_large}, because only {reserved} "
                "original-task examples are reserved"
            )
    return extras_by_dose


def _method_candidates(
    grid: SweepGrid, row: SweepRow, dose: int, seed: int, jobs: SubjectJobs
) -> list[tuple[str, list[Job]]]:
    """Return a name and the job of each method against forgetting at each rate."""
    if grid.search != "grid":
        raise UsageError(
            f"keeping compares every setting, but search {grid.search} draws only some; give "
            "search grid"
        )
    candidates_by_key = {}
    for entry in row.keeping:
        rates = entry.learning_rates or row.learning_rates
        for method, rate, extra in product(entry.methods(), rates, row.extras or ()):
            setting = _setting(row, dose, seed, extra, rate, *method)
            extra_suffix = "" if extra == "none" else f"-{extra}"
            job = jobs.candidate(setting)
            candidates_by_key[job.key] = f"{setting.name_suffix}-lr{rate:g}{extra_suffix}", [job]
    return [*candidates_by_key.values()]


def _candidates(
    grid: SweepGrid, row: SweepRow, dose: int, seed: int, jobs: SubjectJobs
) -> list[Job]:
    """Return the jobs of a dose and seed: one per setting of the grid, or one per trial of tpe."""
    extras, rates = row.extras or [], row.learning_rates
    if grid.search == "grid":
        settings = (_setting(row, dose, seed, *pair) for pair in product(extras, rates))
        return [jobs.candidate(setting) for setting in settings]
    space: dict[str, dict[str, Any]] = {
        "learning_rate": {"low": min(rates), "high": max(rates), "log": True},
        "extra": {"choices": extras},
    }
    largest = _setting(row, dose, seed, extras[-1], max(rates))
    trials: list[Job] = []
    for number in range(grid.num_trials):
        # What a trial is drawn in view of is a part of what it is.
        trial = Trial(space, number, grid.trials_at_once)
        earlier = trials[: number - number % grid.trials_at_once]
        trials.append(jobs.candidate(largest, trial, earlier))
    return trials


def _setting(
    row: SweepRow,
    dose: int,
    seed: int,
    extra: Extra,
    rate: float,
    keeping: Keeping = KEEPING_NOTHING,
    tuning: Tuning | None = None,
) -> Setting:
    """Return a setting of a row."""
    return Setting(
        dose,
        extra,
        seed,
        learning_rate=rate,
        epochs=row.epochs,
        batch_size=row.batch_size,
        tuning=tuning or row.tuning,
        keeping=keeping,
    )


@command(
    Command(
        example="train.py sweep run --output_dir runs/sweep",
        options="output_dir engine.address engine.cpus_per_cell engine.gpus_per_cell "
        "engine.max_retries engine.stop_seconds engine.take_over mirror trainer.accelerator "
        "trainer.devices wandb.project",
    )
)
def run(
    output_dir: ranges.PathText,
    engine: RaySettings = DEFAULT_SWEEP_ENGINE,
    mirror: ranges.Mirror | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    wandb: WandbSettings = DEFAULT_WANDB,
    force: bool = False,
) -> None:
    """Runs on Ray every planned run that has no result yet, and waits until all have ended.

    It uses the settings of the plan, except those that you set here to other than their default.
    The exit code is 0 if all runs are finished, 1 if some have failed for good, and 130 or 143
    after Ctrl-C or SIGTERM, once the runs have saved their state. Rerun the same command to
    resume.

    Args:
        output_dir: Folder of the sweep.
        engine: Where runs are computed, what each takes, and how often a failed one is tried again.
        mirror: Folder or address with copies of the released files.
        trainer: Device and batch settings of the runs.
        wandb: Logging to Weights & Biases. By default the sweep is the group.
        force: Let runs train even if the estimate says that they do not fit into memory.
    """
    # Only now: it needs Ray, which is not installed with all else.
    from probelight.runs.on_ray.drive import run_plan

    folder = Path(output_dir)
    planned = StoredPlan.read(folder).under(RunContext(trainer, wandb, mirror, force=force), engine)
    wandb = planned.context.wandb
    wandb = replace(wandb, group=wandb_group(folder, wandb))
    planned = replace(planned, context=replace(planned.context, wandb=wandb))
    code = run_plan(CommandFolder(folder, {"command": "sweep"}), planned)
    print(f"results{' so far' if code else ''}: {folder / 'results.csv'}")
    if code == 0:
        print(f"next: {_next_command(folder, is_left=False)}")
    elif code == 1:
        print(f"tracebacks: {folder}/runs/<run>/error.txt")
        print(f"to retry the failed runs: {_next_command(folder, is_left=True)}")
    if code:
        sys.exit(code)


def _next_command(folder: Path, is_left: bool) -> str:
    """Return the command to give next."""
    command = "sweep run --output_dir" if is_left else "report"
    return f"{program()} {command} {shlex.quote(str(folder))}"


@command(
    Command(
        example="train.py sweep status --output_dir runs/sweep --watch true",
        options="output_dir watch",
    )
)
def status(output_dir: ranges.PathText, watch: bool = False) -> None:
    """Shows what is done, running (where, how far), waiting and failed, and the time left.

    It only reads the folder, so it works on any machine that can see it.

    Args:
        output_dir: Folder of the sweep.
        watch: Keep refreshing until the sweep has ended.
    """
    folder = Path(output_dir)
    show_status(folder, StoredPlan.read(folder).jobs, watch)


@command(Command(positional=True))
def attempt(run_dir: ranges.PathText) -> None:
    """Attempts one planned run in this process; `sweep run` starts it.

    Args:
        run_dir: Folder of the run.
    """
    from probelight.runs.attempt import run_attempt

    run_attempt(run_dir)
