"""A sweep of inoculations: its grid, and the jobs of it, which are called its cells.

An original task (and what is trained before it) is one cell, shared by all others; `before` scores
it once a probe; each setting is a cell that trains and scores the selection items after every
epoch; for every dose and seed one last cell takes M*_k, the best of all settings and epochs, to the
report items, which nothing else reads (Richardson & Sabharwal 2020, section 4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, Literal

from probelight.io.errors import UsageError
from probelight.io.ranges import (
    BatchSize,
    LearningRate,
    NotEmpty,
    NumEpochs,
    NumItems,
    Seed,
    Settings,
    Within,
)
from probelight.protocols.engine.auto_kind import question_model, with_kind
from probelight.protocols.engine.kinds import AUTO
from probelight.protocols.engine.settings import ModelSettings
from probelight.protocols.inoculation.data import Parts, num_balancing
from probelight.protocols.inoculation.jobs import BEFORE, CELL, INOCULATION, SubjectJobs
from probelight.protocols.inoculation.settings import (
    Extra,
    InoculatedProbe,
    OriginalTask,
    Setting,
    Subject,
)
from probelight.protocols.jobs.context import RunContext
from probelight.protocols.jobs.job import Job

DEFAULT_DOSES = [100, 250, 500, 1000, 2000, 3000]
DEFAULT_EXTRAS: list[Extra] = ["none", "x1", "x2"]


@dataclass(frozen=True)
class SweepRow(Settings):
    """One probe on one model and original task, with its grid of settings.

    Args:
        model: A name under `models`.
        original: A name under `originals`.
        probe: The probe and its splits.
        doses: k, numbers of probe examples; of the default ones those that there are examples for.
        learning_rates: Peak rates; with `search: tpe` the lowest and the highest.
        extras: Add-some: none, x1 or x2; by default those of a dose that items are reserved for.
        seeds: Seeds of dose, order and dropout; M*_k is chosen for each.
        epochs: Epochs, each a candidate for M*_k.
        batch_size: Questions in an optimiser step.
    """

    model: str
    original: str
    probe: InoculatedProbe
    doses: Annotated[list[NumItems], NotEmpty()] = field(default_factory=DEFAULT_DOSES.copy)
    learning_rates: Annotated[list[LearningRate], NotEmpty()] = field(
        default_factory=lambda: [1e-5, 2e-5, 5e-5]
    )
    extras: Annotated[list[Extra], NotEmpty()] = field(default_factory=DEFAULT_EXTRAS.copy)
    seeds: Annotated[list[Seed], NotEmpty()] = field(default_factory=lambda: [0])
    epochs: NumEpochs = 3
    batch_size: BatchSize = 16


@dataclass(frozen=True)
class SweepGrid(Settings):
    """Everything that a sweep runs.

    Args:
        models: Pre-trained models by name.
        originals: Original tasks by name.
        rows: What is inoculated with what.
        search: "grid" runs every setting; "tpe" draws `num_trials` of them for each dose and seed.
        num_trials: Settings drawn by "tpe".
        trials_at_once: How many of them are drawn together, each in view of all that came before
            these: more can run at the same time, fewer are the better informed.
    """

    models: dict[str, ModelSettings]
    originals: dict[str, OriginalTask]
    rows: Annotated[list[SweepRow], NotEmpty()]
    search: Literal["grid", "tpe"] = "grid"
    num_trials: Annotated[int, Within(1, 10_000)] = 12
    trials_at_once: Annotated[int, Within(1, 10_000)] = 4


def sweep_jobs(grid: SweepGrid, context: RunContext) -> list[Job]:
    """The jobs of a sweep, each once, those that others need before them.

    Raises:
        UsageError: If a row names an unknown model or original task, or asks for more examples
            than there are.
    """
    jobs: dict[str, Job] = {}
    found = {name: with_kind(one) for name, one in grid.models.items() if one.kind == AUTO}
    grid = replace(grid, models={**grid.models, **found})
    for number, row in enumerate(grid.rows, start=1):
        for job in _row_jobs(grid, row, f"rows: number {number}", context):
            jobs.setdefault(job.key, job)
    return list(jobs.values())


def _row_jobs(grid: SweepGrid, row: SweepRow, place: str, context: RunContext) -> Iterator[Job]:
    model = _named(grid.models, row.model, f"{place}: model")
    task = _named(grid.originals, row.original, f"{place}: original")
    model = question_model(model, task.checkpoint, f"{place}: ")
    jobs = SubjectJobs(Subject(model, task, row.probe), context)
    if jobs.checkpoint == {}:
        raise UsageError(f"{place}: original.checkpoint {task.checkpoint} holds no *.safetensors")
    yield from jobs.originals
    name = f"{jobs.probe_name}-{row.original}-{row.model}{jobs.ending}"
    before = jobs.job(f"before-{name}", {"protocol": BEFORE})
    yield before
    for notice in (*jobs.parts.probe.notices, *jobs.parts.original.notices):
        context.say(f"{place}: {notice}")
    for dose, extras in _fitting(row, jobs.parts, place, context).items():
        fitting = replace(row, extras=extras)
        for seed in row.seeds:
            try:
                settings = list(_settings(grid, fitting, dose, seed, jobs))
            except UsageError as error:
                raise UsageError(f"{place}: {error}") from error
            own: list[Job] = []
            for label, config, num_steps, search in settings:
                trial = config.get("trial", 0)
                own.append(
                    jobs.job(
                        f"inoculate-{name}-k{dose}-{label}s{seed}",
                        {"protocol": CELL, "before_run": before.key, **config},
                        [before],
                        num_steps,
                        search,
                        follows=own[: trial - trial % grid.trials_at_once],
                    )
                )
            yield from own
            config = {
                "protocol": INOCULATION,
                "before_run": before.key,
                "candidates": [job.key for job in own],
                "dose": dose,
                "seed": seed,
            }
            yield jobs.job(f"chosen-{name}-k{dose}-s{seed}", config, own)


def _fitting(
    row: SweepRow, parts: Parts, place: str, context: RunContext
) -> dict[int, list[Extra]]:
    """The extras of each dose; of the defaults those that there are items for, which is said."""
    most, reserved = len(parts.probe.train), len(parts.original.reserved)
    doses = row.doses
    if doses == DEFAULT_DOSES and max(doses) > most:
        doses = [dose for dose in doses if dose <= most] or [most]
        context.say(f"{place}: doses {doses}, as {most} probe examples are left for doses")
    found = {}
    for dose in doses:
        found[dose] = row.extras
        if row.extras != DEFAULT_EXTRAS:
            continue
        found[dose] = [one for one in row.extras if num_balancing(dose, one) <= reserved]
        if left_out := ", ".join(one for one in row.extras if one not in found[dose]):
            context.say(
                f"{place}: dose {dose} without extra {left_out}, as {reserved} original-task "
                "examples are reserved"
            )
    return found


def _settings(
    grid: SweepGrid, row: SweepRow, dose: int, seed: int, jobs: SubjectJobs
) -> Iterator[tuple[str, dict[str, Any], int, dict[str, Any]]]:
    """Label, config fields, steps and search space of each setting of a dose and seed."""

    def setting(extra: Extra, rate: float) -> Setting:
        return Setting(
            dose,
            extra,
            seed,
            learning_rate=rate,
            epochs=row.epochs,
            batch_size=row.batch_size,
        )

    rates = [0.0] if grid.search == "tpe" else row.learning_rates
    tried = [setting(extra, rate) for extra in row.extras for rate in rates]
    steps = {one.extra: jobs.num_steps(one) for one in tried}
    if grid.search == "grid":
        for one in tried:
            label = f"lr{one.learning_rate:g}-{one.extra}-"
            yield label, {"setting": asdict(one)}, steps[one.extra], {}
        return
    search = _search_space(row)
    fixed = {name: value for name, value in asdict(tried[0]).items() if name not in search}
    for trial in range(grid.num_trials):
        # What a trial is drawn in view of is a part of what it is.
        drawn = {"trial": trial, "trials_at_once": grid.trials_at_once}
        yield f"trial{trial}-", {"setting": fixed, **drawn}, max(steps.values()), search


def _search_space(row: SweepRow) -> dict[str, Any]:
    low, high = min(row.learning_rates), max(row.learning_rates)
    if low <= 0:
        raise UsageError("learning_rates must be more than 0 with `search: tpe`")
    return {
        "learning_rate": {"low": low, "high": high, "log": True},
        "extra": {"choices": list(row.extras)},
    }


def _named(known: Mapping[str, Any], name: str, place: str) -> Any:
    if name not in known:
        raise UsageError(f"{place} is {name!r}; there are {', '.join(sorted(known))}")
    return known[name]
