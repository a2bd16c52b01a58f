"""`train.py sweep plan`, `work` and `status`: one config, one folder, any number of workers."""

from __future__ import annotations

import sys
from pathlib import Path

from callbacks.wandb.settings import DEFAULT_WANDB, WandbSettings
from jobs.context import DEFAULT_TRAINER, RunContext, TrainerSettings
from jobs.planned import Planned
from jobs.settings import DEFAULT_ENGINE, EngineSettings
from protocols.cli.command import Command, command
from protocols.inoculation.grid import SweepGrid


@command(
    Command(
        "queue an inoculation sweep's missing cells",
        example="train.py sweep plan --config configs/sweep/released.yaml --output_dir runs/sweep",
        shown="output_dir grid.models grid.originals grid.rows grid.search grid.num_trials "
        "storage engine.max_retries mirror trainer.accelerator trainer.threads wandb.project",
    )
)
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
    # Only now: it needs Optuna, which is not installed with all else.
    from protocols.inoculation.queued import plan_sweep

    plan_sweep(Path(output_dir), grid, storage, engine, RunContext(trainer, wandb, mirror))


@command(
    Command(
        "run queued cells until none is left",
        example="train.py sweep work --output_dir runs/sweep",
        shown="output_dir storage wait engine.max_retries engine.grace_seconds mirror "
        "trainer.accelerator trainer.devices wandb.project",
    )
)
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
    # Only now: it needs Optuna, which is not installed with all else.
    from protocols.inoculation.queued import work_on_sweep

    settings = Planned(RunContext(trainer, wandb, mirror), engine)
    # Without a config it goes by the settings of the plan.
    code = work_on_sweep(Path(output_dir), storage, settings, as_planned=grid is None, wait=wait)
    if code:
        sys.exit(code)


@command(
    Command(
        "what is done, running, waiting, failed",
        example="train.py sweep status --output_dir runs/sweep --watch true",
        shown="output_dir storage watch engine.poll_seconds",
    )
)
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
    # Only now: it needs Optuna, which is not installed with all else.
    from protocols.inoculation.queued import show_sweep

    show_sweep(Path(output_dir), storage, watch, engine.poll_seconds)


@command(Command("", positional=True))
def cell(run_dir: str) -> None:
    """Runs one planned cell in this process; `sweep work` starts it.

    Args:
        run_dir: Folder of the cell's run.
    """
    from jobs.process import cell as run_cell

    run_cell(run_dir)
