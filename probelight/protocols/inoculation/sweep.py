"""`train.py sweep plan`, `run` and `status`: one config, one folder, any number of GPUs."""

from __future__ import annotations

import sys
from pathlib import Path

from probelight.io.ranges import PathText
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.protocols.cli.command import Command, command
from probelight.protocols.inoculation.grid import SweepGrid
from probelight.protocols.jobs.context import DEFAULT_TRAINER, RunContext, TrainerSettings
from probelight.protocols.jobs.settings import DEFAULT_SWEEP_ENGINE, RaySettings


@command(
    Command(
        "plan an inoculation sweep's cells",
        example="train.py sweep plan --config configs/sweep/released.yaml --output_dir runs/sweep",
        shown="output_dir grid.models grid.originals grid.rows grid.search grid.num_trials "
        "engine.cpus_per_cell engine.gpus_per_cell engine.memory_per_cell engine.max_retries "
        "mirror trainer.accelerator trainer.threads wandb.project",
    )
)
def plan(
    output_dir: PathText,
    grid: SweepGrid,
    engine: RaySettings = DEFAULT_SWEEP_ENGINE,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> None:
    """Plans the cells of a sweep, and says what they take and what they can show.

    Args:
        output_dir: Folder of the sweep, seen by all nodes.
        grid: What is inoculated with what.
        engine: What a cell takes of a node, and how often it is tried.
        mirror: Folder or address that stands for the addresses of the released files.
        trainer: Device and batch settings of the cells.
        wandb: Weights & Biases, in addition to the local files.
    """
    from probelight.protocols.inoculation.sweep_folder import plan_sweep

    plan_sweep(Path(output_dir), grid, engine, RunContext(trainer, wandb, mirror))


@command(
    Command(
        "run the planned cells without a result",
        example="train.py sweep run --output_dir runs/sweep",
        shown="output_dir engine.address engine.cpus_per_cell engine.gpus_per_cell "
        "engine.max_retries engine.stop_seconds engine.take_over mirror trainer.accelerator "
        "trainer.devices wandb.project",
    )
)
def run(
    output_dir: PathText,
    engine: RaySettings = DEFAULT_SWEEP_ENGINE,
    mirror: str | None = None,
    trainer: TrainerSettings = DEFAULT_TRAINER,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> None:
    """Puts every planned cell without a result on Ray, and stays until all have ended.

    It goes by the settings of the plan, but for those given here at other than their default.
    Exits with 0 when all cells are finished, with 1 when some have failed for good, and with 130
    and 143 after Ctrl-C and SIGTERM, once the cells have saved their state; the same command goes
    on from there.

    Args:
        output_dir: Folder of the sweep.
        engine: Where the cells run, what each takes, and how often it is tried.
        mirror: Stands for the addresses of the released files.
        trainer: Device and batch settings of the cells.
        wandb: Weights & Biases; the group is the sweep unless it is set.
    """
    from probelight.protocols.inoculation.sweep_folder import run_sweep

    code = run_sweep(Path(output_dir), engine, RunContext(trainer, wandb, mirror))
    if code:
        sys.exit(code)


@command(
    Command(
        "what is done, running, waiting, failed",
        example="train.py sweep status --output_dir runs/sweep --watch true",
        shown="output_dir watch",
    )
)
def status(output_dir: PathText, watch: bool = False) -> None:
    """Shows what is done, running (where, how far), waiting and failed, and the time left.

    It reads the folder alone, from any machine that sees it.

    Args:
        output_dir: Folder of the sweep.
        watch: Look again and again until the sweep has ended.
    """
    from probelight.protocols.inoculation.sweep_folder import show_sweep

    show_sweep(Path(output_dir), watch)


@command(Command("", positional=True))
def cell(run_dir: PathText) -> None:
    """Runs one planned cell in this process; `sweep run` has it started.

    Args:
        run_dir: Folder of the cell's run.
    """
    from probelight.protocols.jobs.cells.process import cell as run_cell

    run_cell(run_dir)
