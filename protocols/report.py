"""`train.py report`: makes the page, and shows a sweep's end in Weights & Biases if asked to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from callbacks.wandb.settings import DEFAULT_WANDB, WandbSettings
from protocols.cli.command import Command, command
from results.planned import planned_cells


@command(
    Command(
        "tables, figures and one page from result files",
        example="train.py report runs/curve --output_dir runs/report",
        shown="folder output_dir medals wandb.project wandb.group",
        positional=True,
    )
)
def report(
    folder: Path,
    output_dir: Path | None = None,
    medals: Path | None = None,
    wandb: WandbSettings = DEFAULT_WANDB,
) -> Path:
    """Tables, figures and one page from the result files below a folder.

    Args:
        folder: Output folder of a command, or one that holds several.
        output_dir: Where the report goes; the folder itself where it is none.
        medals: A YAML file with the rule for medals; the shipped one where it is none.
        wandb: With a project, the inoculation plot, the Pareto figure and the tables are logged
            as a small run of the group.

    Returns:
        The path of the HTML page.

    Raises:
        FileNotFoundError: If the folder holds no result that can be read.
    """
    from reports.build import build_report

    page_path = build_report(folder, output_dir, medals)
    print(said_of_page(page_path))
    if wandb.project:
        from callbacks.wandb.publish import publish

        publish(page_path.parent, replace(wandb, group=wandb.group or _group(folder)))
    return page_path


def said_of_page(page_path: Path) -> str:
    """Where a page is, so that it can be opened from any folder."""
    return f"page: {page_path.resolve()}"


def _group(folder: Path) -> str | None:
    """The group of a sweep's cells, if the folder is a sweep's."""
    if planned_cells(folder) is None:
        return None
    from jobs.planned import Planned, wandb_group

    return wandb_group(folder, Planned.read(folder).context.wandb)
