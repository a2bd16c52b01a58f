"""A sweep's queue: its cells put into it, worked on and shown."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from jobs.context import RunContext, TrainerSettings
from jobs.planned import Planned, wandb_group
from jobs.settings import EngineSettings
from protocols.inoculation.data import original_splits, probe_splits
from protocols.inoculation.grid import SweepGrid, SweepRow, sweep_jobs
from results.run_folder import CommandFolder
from storage.errors import UsageError

try:
    from jobs.plan import detectable_table, plan_cells, plan_lines
    from jobs.process import Orders
    from jobs.queue.entry import RUNNING
    from jobs.queue.queue import Queue
    from jobs.queue.storage import open_study
    from jobs.queue.worker import Worker
    from jobs.status import show_status
except ImportError as error:
    raise UsageError(f"sweeps need Optuna ({error}); pip install 'probelight[sweep]'") from error


def plan_sweep(
    folder: Path, grid: SweepGrid, storage: str | None, engine: EngineSettings, context: RunContext
) -> None:
    """Queues the cells that have no result, and says what they cost and what they can show."""
    cells = sweep_jobs(grid, context)
    CommandFolder(folder, {"command": "sweep"})
    queue = Queue(open_study(folder, storage, create=True))
    Planned(context, engine, tuple(cell.key for cell in cells)).keep(folder)
    found = plan_cells(folder, cells, queue)
    for line in plan_lines(found, queue.entries(), folder, _device(context.trainer)):
        print(line)
    rows = [line for row in grid.rows for line in _item_sets(grid, row, context)]
    Console().print(detectable_table(rows))
    if context.trainer.threads is None:
        print("trainer.threads is not set: results may differ in the last bits between machines")
    where = "" if storage is None else " --storage ..."
    print(f"next: train.py sweep work --output_dir {folder}{where}, as often as you like")


def work_on_sweep(
    folder: Path, storage: str | None, said: Planned, *, as_planned: bool, wait: bool
) -> int:
    """Runs queued cells until none is left.

    Args:
        folder: Folder of the sweep.
        storage: URL of its queue.
        said: The settings given to this worker.
        as_planned: Those of the plan hold where `said` has the default.
        wait: Wait for other workers' cells.

    Returns:
        The exit code, as `Worker.run` gives it.
    """
    planned = Planned.read(folder) if as_planned else None
    settings = said if planned is None else planned.under(said)
    study = open_study(folder, storage, busy_seconds=settings.engine.grace_seconds)
    context = settings.context
    quiet = replace(
        context,
        trainer=replace(context.trainer, progress_bar=False),
        wandb=replace(context.wandb, group=wandb_group(folder, context.wandb)),
    )
    queue = Queue(study)
    elsewhere = {str(e.owner) for e in queue.entries() if e.state is RUNNING and e.elsewhere}
    if elsewhere and storage is None:
        _say(
            f"{', '.join(sorted(elsewhere))} seems to work on another machine: an SQLite file is "
            "for the workers of one; give them all a PostgreSQL with --storage"
        )
    code = Worker(folder, queue, settings.engine, Orders(quiet), wait, say=_say).run()
    path = CommandFolder(folder, {"command": "sweep"}).write_results()
    print(f"results so far: {path}")
    return code


def show_sweep(folder: Path, storage: str | None, watch: bool, seconds: float) -> None:
    """Prints the status, once or every so many seconds."""
    show_status(folder, Queue(open_study(folder, storage)), watch, seconds)


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


def _say(line: str) -> None:
    print(line, flush=True)
