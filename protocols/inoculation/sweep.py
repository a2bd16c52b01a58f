"""`train.py sweep plan`, `work` and `status`: one config, one folder, any number of workers."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from callbacks.wandb.settings import DEFAULT_WANDB, WandbSettings
from jobs.context import DEFAULT_TRAINER, TrainerSettings
from jobs.settings import DEFAULT_ENGINE, EngineSettings
from protocols.inoculation.cells import SweepGrid, SweepRow, enumerate_cells
from protocols.inoculation.data import original_splits, probe_splits
from results.run_folder import CommandFolder
from storage.errors import UsageError

try:
    from jobs.plan import detectable_table, plan_cells, plan_lines
    from jobs.planned import Planned, wandb_group
    from jobs.process import Orders
    from jobs.queue.entry import RUNNING
    from jobs.queue.queue import Queue
    from jobs.queue.storage import open_study
    from jobs.queue.worker import Worker
    from jobs.status import show_status
except ImportError as error:
    raise UsageError(f"sweeps need Optuna ({error}); pip install 'probelight[sweep]'") from error


def plan(
    output_dir: str,
    grid: SweepGrid,
    storage: str | None = None,
    engine: EngineSettings = DEFAULT_ENGINE,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> None:
    """Queues the cells of a sweep that have no result; again, only those missing or failed.

    Args:
        output_dir: Folder of the sweep, seen by all workers.
        grid: What is inoculated with what.
        storage: SQLAlchemy URL of the queue; OUTPUT_DIR/sweep.db, for workers of one machine, when
            left out. PostgreSQL: postgresql+psycopg://user@host/database.
        engine: Retries, heartbeats and waiting times.
        mirror: Folder or address that stands for the addresses of the released files.
        trainer: Device and batch settings of the cells.
        wandb: Weights & Biases, in addition to the local files.
    """
    folder = Path(output_dir)
    cells = enumerate_cells(grid, trainer, mirror)
    CommandFolder(folder, {"command": "sweep"})
    queue = Queue(open_study(folder, storage, create=True))
    Planned(trainer, wandb, engine, mirror, tuple(cell.key for cell in cells)).keep(folder)
    found = plan_cells(folder, cells, queue)
    for line in plan_lines(found, queue.entries(), folder, _device(trainer)):
        print(line)
    rows = [line for row in grid.rows for line in _item_sets(grid, row, mirror)]
    Console().print(detectable_table(rows))
    if trainer.threads is None:
        print("trainer.threads is not set: results may differ in the last bits between machines")
    where = "" if storage is None else " --storage ..."
    print(f"next: train.py sweep work --output_dir {folder}{where}, as often as you like")


def work(
    output_dir: str,
    grid: SweepGrid | None = None,
    storage: str | None = None,
    engine: EngineSettings = DEFAULT_ENGINE,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    wandb: WandbSettings = DEFAULT_WANDB,
    wait: bool = True,
) -> None:
    """Runs queued cells until none is left; start it as often as you like, on any machine.

    Without a config it goes by the settings of the plan, but for those given here at other than
    their default. Exits with 0 when all cells are finished, with 1 when some have failed for good
    or wait for what nobody runs, and with 143 after SIGTERM, once its cell has saved its state and
    waits again.

    Args:
        output_dir: Folder of the sweep.
        grid: What is queued is what `sweep plan` planned; a config may hold it all the same.
        storage: URL of the queue, as for `sweep plan`.
        engine: Retries, heartbeats and waiting times.
        mirror: Stands for the addresses of the released files.
        trainer: Device and batch settings of the cells.
        wandb: Weights & Biases; the group is the sweep unless it is set.
        wait: Wait for other workers' cells, which may be needed by others or have to be taken
            over; without, end as soon as no cell can be started.
    """
    folder = Path(output_dir)
    said = Planned(trainer, wandb, engine, mirror)
    planned = None if grid is not None else Planned.read(folder)
    settings = said if planned is None else planned.under(said)
    study = open_study(folder, storage, busy_seconds=settings.engine.grace_seconds)
    orders = Orders(
        trainer=replace(settings.trainer, progress_bar=False),
        wandb=replace(settings.wandb, group=wandb_group(folder, settings.wandb)),
        mirror=settings.mirror,
    )
    queue = Queue(study)
    elsewhere = {str(e.owner) for e in queue.entries() if e.state is RUNNING and e.elsewhere}
    if elsewhere and storage is None:
        _say(
            f"{', '.join(sorted(elsewhere))} seems to work on another machine: an SQLite file is "
            "for the workers of one; give them all a PostgreSQL with --storage"
        )
    code = Worker(folder, queue, settings.engine, orders, wait, say=_say).run()
    path = CommandFolder(folder, {"command": "sweep"}).write_results()
    print(f"results so far: {path}")
    if code:
        sys.exit(code)


def status(
    output_dir: str,
    grid: SweepGrid | None = None,
    storage: str | None = None,
    engine: EngineSettings = DEFAULT_ENGINE,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    wandb: WandbSettings = DEFAULT_WANDB,
    watch: bool = False,
) -> None:
    """Shows what is done, running (by whom, how far), waiting and failed, and the time left.

    Args:
        output_dir: Folder of the sweep.
        grid: Not used, like all but the next two: one config serves plan, work and status.
        storage: URL of the queue, as for `sweep plan`.
        engine: `poll_seconds` is the time between two looks of --watch.
        mirror: Not used.
        trainer: Not used.
        wandb: Not used.
        watch: Look again and again until the sweep has ended.
    """
    folder = Path(output_dir)
    show_status(folder, Queue(open_study(folder, storage)), watch, engine.poll_seconds)


def _item_sets(grid: SweepGrid, row: SweepRow, mirror: str | None) -> list[tuple[str, int, int]]:
    """Name, number of items and number of seeds of what a row is selected and reported on."""
    sets = {
        row.probe.name: probe_splits(row.probe, mirror),
        row.original: original_splits(grid.originals[row.original], mirror),
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
