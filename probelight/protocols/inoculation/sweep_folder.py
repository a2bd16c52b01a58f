"""A sweep's folder: its cells planned, run on Ray, and shown."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from probelight.protocols.inoculation.data import original_splits, probe_splits
from probelight.protocols.inoculation.grid import SweepGrid, SweepRow, sweep_jobs
from probelight.protocols.jobs.cells.driver_claim import without_driver
from probelight.protocols.jobs.context import RunContext, TrainerSettings
from probelight.protocols.jobs.job import record_pending
from probelight.protocols.jobs.on_ray.resources import Need
from probelight.protocols.jobs.plan import detectable_table, plan_jobs, plan_lines
from probelight.protocols.jobs.planned import Planned, wandb_group
from probelight.protocols.jobs.progress import counted
from probelight.protocols.jobs.settings import RaySettings
from probelight.protocols.jobs.status import show_status
from probelight.results.run_folder import CommandFolder
from probelight.results.run_status import planned_cells


def plan_sweep(folder: Path, grid: SweepGrid, engine: RaySettings, context: RunContext) -> None:
    """Makes the folders of the cells, and says what they cost and what they can show.

    A plan takes the place of the one before, which nobody may be running meanwhile.

    Raises:
        UsageError: If a `sweep run` is at work in the folder, or cells are to take what Ray does
            not give.
    """
    device = _device(context.trainer)
    need = Need.of(engine, context.trainer, has_gpus=device == "gpu")
    jobs = sweep_jobs(grid, context)
    CommandFolder(folder, {"command": "sweep"})
    with without_driver(folder, engine.take_over):
        plan = plan_jobs(folder, jobs)
        gone = (planned_cells(folder) or frozenset()) - {cell.key for cell in plan.cells}
        Planned(context, engine, plan.cells).keep(folder)
    for line in [*plan_lines(plan, folder, device), f"resources: a cell takes {need}"]:
        print(line)
    if gone:
        cells = counted(len(gone), "cell")
        print(f"no more in the plan: {cells} of the one before; their runs stay, uncounted")
    rows = [line for row in grid.rows for line in _item_sets(grid, row, context)]
    Console().print(detectable_table(rows))
    if context.trainer.threads is None:
        print("trainer.threads is not set: results may differ in the last bits between machines")
    print(f"next: {_next(folder, is_left=bool(plan.left))}")


def run_sweep(folder: Path, engine: RaySettings, context: RunContext) -> int:
    """Runs the cells without a result; the exit code, as `drive` gives it.

    Args:
        folder: Folder of the sweep.
        engine: Its settings; those of the plan hold where these have the default.
        context: As `engine`.
    """
    # Only now: it needs Ray, which is not installed with all else.
    from probelight.protocols.jobs.on_ray.drive import drive
    from probelight.protocols.jobs.view import RunView

    planned = Planned.read(folder).under(context, engine)
    trainer, wandb = planned.context.trainer, planned.context.wandb
    quiet = replace(
        planned.context,
        trainer=replace(trainer, progress_bar=False),
        wandb=replace(wandb, group=wandb_group(folder, wandb)),
    )
    command = CommandFolder(folder, {"command": "sweep"})
    code = drive(folder, replace(planned, context=quiet), RunView(trainer.progress_bar))
    if code in (0, 1):  # else it was stopped, and time is short
        record_pending(command.runs_dir, quiet.wandb)
    print(f"results{' so far' if code else ''}: {command.write_results()}")
    if code == 0:
        print(f"next: {_next(folder, is_left=False)}")
    elif code == 1:
        print(f"tracebacks: {folder}/runs/<cell>/error.txt")
        print(f"to try again what failed: {_next(folder, is_left=True)}")
    return code


def show_sweep(folder: Path, watch: bool) -> None:
    """Prints the status, once or again and again."""
    show_status(folder, Planned.read(folder).cells, watch)


def _next(folder: Path, is_left: bool) -> str:
    command = "sweep run --output_dir" if is_left else "report"
    return f"train.py {command} {shlex.quote(str(folder))}"


def _item_sets(grid: SweepGrid, row: SweepRow, context: RunContext) -> list[tuple[str, int, int]]:
    """Name, number of items and number of seeds of what a row is selected and reported on."""
    sets = {
        row.probe.name: probe_splits(row.probe, context),
        row.original: original_splits(grid.originals[row.original], context),
    }
    return [
        (f"{name} {split}", len(items), len(row.seeds))
        for name, splits in sets.items()
        for split, items in (("selection", splits.selection), ("report", splits.report))
        if items
    ]


def _device(trainer: TrainerSettings) -> str:
    """What "auto" will be, as far as can be told without torch."""
    auto = "gpu" if shutil.which("nvidia-smi") else "cpu"
    return {"cpu": "cpu", "auto": auto}.get(trainer.accelerator, "gpu")
