"""The cells of an inoculation sweep, enumerated from its config without importing Lightning.

An original task (and what is trained before it) is one cell, shared by all others; `before` scores
it once a probe; each setting is a cell that trains and scores the selection items after every
epoch; for every dose and seed one last cell takes M*_k, the best of all settings and epochs, to the
report items, which nothing else reads (Richardson & Sabharwal 2020, section 4.1; SPEC E1).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from jobs.context import RunContext
from jobs.job import Job
from probes.catalog import ROOT
from protocols.engine.kinds import check_questions, kind_of
from protocols.engine.settings import ModelSettings
from protocols.inoculation.configs import (
    BEFORE,
    CELL,
    FIRST,
    INOCULATION,
    ORIGINAL_TASK,
    checkpoint_sha256,
    first_stage_config,
    inoculation_config,
    original_config,
)
from protocols.inoculation.data import (
    Splits,
    add_some,
    dose_of,
    first_stage_splits,
    original_splits,
    probe_splits,
)
from protocols.inoculation.settings import Extra, InoculatedProbe, OriginalTask, Setting
from storage.config.ranges import (
    BatchSize,
    LearningRate,
    NotEmpty,
    NumEpochs,
    NumItems,
    Seed,
    Settings,
    Within,
)
from storage.errors import UsageError

RUNNER = "protocols.inoculation.cell_runs:run_cell"


@dataclass(frozen=True)
class SweepRow(Settings):
    """One probe on one model and original task, with its grid of settings.

    Args:
        model: A name under `models`.
        original: A name under `originals`.
        probe: The probe and its splits.
        doses: k, numbers of probe examples.
        learning_rates: Peak rates; with `search: tpe` the lowest and the highest.
        extras: Add-some: none, x1 or x2.
        seeds: Seeds of dose, order and dropout; M*_k is chosen for each.
        epochs: Epochs, each a candidate for M*_k.
        batch_size: Questions in an optimiser step.
    """

    model: str
    original: str
    probe: InoculatedProbe
    doses: Annotated[list[NumItems], NotEmpty()] = field(
        default_factory=lambda: [100, 250, 500, 1000, 2000, 3000]
    )
    learning_rates: Annotated[list[LearningRate], NotEmpty()] = field(
        default_factory=lambda: [1e-5, 2e-5, 5e-5]
    )
    extras: Annotated[list[Extra], NotEmpty()] = field(default_factory=lambda: ["none", "x1", "x2"])
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
    """

    models: dict[str, ModelSettings]
    originals: dict[str, OriginalTask]
    rows: Annotated[list[SweepRow], NotEmpty()]
    search: Literal["grid", "tpe"] = "grid"
    num_trials: Annotated[int, Within(1, 10_000)] = 12


def enumerate_cells(grid: SweepGrid, context: RunContext) -> list[Job]:
    """All cells of a sweep, each once, those that others need before them.

    Raises:
        UsageError: If a row names an unknown model or original task, or asks for more examples
            than there are.
    """
    cells: dict[str, Job] = {}
    for number, row in enumerate(grid.rows, start=1):
        for cell in _row_cells(grid, row, f"rows: number {number}", context):
            cells.setdefault(cell.key, cell)
    return list(cells.values())


def _row_cells(grid: SweepGrid, row: SweepRow, place: str, context: RunContext) -> Iterator[Job]:
    model = _named(grid.models, row.model, f"{place}: model")
    task = _named(grid.originals, row.original, f"{place}: original")
    check_questions(model, task.checkpoint, f"{place}: ")
    task_data, probe_data = original_splits(task, context), probe_splits(row.probe, context)
    parts, checkpoint = (probe_data, task_data), _checkpoint(task, place)
    size = weights_bytes(model)
    needs: tuple[str, ...] = ()
    for needed in _original_cells(model, task, task_data, context, size):
        yield needed
        needs = (needed.key,)

    def config(protocol: str, **more: Any) -> dict[str, Any]:
        found = inoculation_config(protocol, model, task, row.probe, parts, context.trainer)
        return {**found, "checkpoint": checkpoint, "model_run": list(needs), **more}

    name = f"{probe_data.files[0].config.name}-{row.original}-{row.model}"
    before = Job(f"before-{name}", config(BEFORE), RUNNER, needs, 0, size)
    yield before
    for dose in row.doses:
        for seed in row.seeds:
            settings = list(_setting_cells(grid, row, dose, seed, parts, place))
            own = [
                Job(
                    f"inoculate-{name}-k{dose}-{label}s{seed}",
                    config(CELL, before_run=before.key, **fields),
                    RUNNER,
                    (before.key,),
                    num_steps,
                    size,
                    search,
                )
                for label, fields, num_steps, search in settings
            ]
            yield from own
            keys = tuple(cell.key for cell in own)
            yield Job(
                f"chosen-{name}-k{dose}-s{seed}",
                config(
                    INOCULATION,
                    before_run=before.key,
                    candidates=list(keys),
                    dose=dose,
                    seed=seed,
                ),
                RUNNER,
                keys,
                0,
                size,
            )


def _original_cells(
    model: ModelSettings,
    task: OriginalTask,
    splits: Splits,
    context: RunContext,
    size: int,
) -> Iterator[Job]:
    if task.checkpoint is not None:
        return
    needs: tuple[str, ...] = ()
    if task.first is not None:
        stage = first_stage_splits(task.first, task.seed, context)
        config = first_stage_config(model, task, stage, context.trainer)
        steps = task.first.epochs * math.ceil(len(stage.train) / task.first.batch_size)
        first = Job(f"{FIRST}-{task.first.name}-{model.label}", config, RUNNER, (), steps, size)
        yield first
        needs = (first.key,)
    config = original_config(model, task, splits, context.trainer)
    steps = task.epochs * math.ceil(len(splits.train) / task.batch_size)
    name = f"{ORIGINAL_TASK}-{task.name}-{model.label}"
    yield Job(name, {**config, "model_run": list(needs)}, RUNNER, needs, steps, size)


def _setting_cells(
    grid: SweepGrid,
    row: SweepRow,
    dose: int,
    seed: int,
    parts: tuple[Splits, Splits],
    place: str,
) -> Iterator[tuple[str, dict[str, Any], int, dict[str, Any]]]:
    """Label, config fields, steps and search space of each setting of a dose and seed."""
    probe_data, task_data = parts
    sizes = {}
    try:
        for extra in row.extras:
            added = add_some(task_data, dose, extra, seed)
            sizes[extra] = len(dose_of(probe_data, dose, seed)) + len(added)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error
    steps = {e: row.epochs * math.ceil(size / row.batch_size) for e, size in sizes.items()}
    if grid.search == "tpe":
        setting = asdict(Setting(dose, "none", 0.0, row.epochs, row.batch_size, seed))
        drawn = {"learning_rate", "extra"}
        fixed = {name: value for name, value in setting.items() if name not in drawn}
        search = _search_space(row, place)
        for trial in range(grid.num_trials):
            yield f"trial{trial}-", {"setting": fixed, "trial": trial}, max(steps.values()), search
        return
    for extra in row.extras:
        for rate in row.learning_rates:
            setting = asdict(Setting(dose, extra, rate, row.epochs, row.batch_size, seed))
            yield f"lr{rate:g}-{extra}-", {"setting": setting}, steps[extra], {}


def _search_space(row: SweepRow, place: str) -> dict[str, Any]:
    low, high = min(row.learning_rates), max(row.learning_rates)
    if low <= 0:
        raise UsageError(f"{place}: learning_rates must be more than 0 with `search: tpe`")
    return {
        "learning_rate": {"low": low, "high": high, "log": True},
        "extra": {"choices": list(row.extras)},
    }


def _named(known: Mapping[str, Any], name: str, place: str) -> Any:
    if name not in known:
        raise UsageError(f"{place} is {name!r}; there are {', '.join(sorted(known))}")
    return known[name]


def _checkpoint(task: OriginalTask, place: str) -> dict[str, str] | None:
    """What a given original-task model holds: a retrained one is another one."""
    if task.checkpoint is None:
        return None
    found = checkpoint_sha256(task.checkpoint)
    if not found:
        raise UsageError(f"{place}: original.checkpoint {task.checkpoint} holds no *.safetensors")
    return found


@cache
def weights_bytes(model: ModelSettings) -> int:
    """Bytes of a local model's weights in single precision; 0 where it is not known."""
    if (known := kind_of(model).num_weights) is not None:
        return 4 * known
    name = model.name_or_path
    folder = ROOT / "assets" / "dictionary-lm" if name == "embedded" else Path(name)
    return 4 * sum(_num_weights(path) for path in folder.glob("*.safetensors"))


def _num_weights(path: Path) -> int:
    """Counted in the header of the file: its 8 first bytes say how long that is."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return sum(math.prod(entry["shape"]) for entry in header.values() if "shape" in entry)
