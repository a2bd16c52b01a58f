"""`train.py report`: makes the page, and logs it to Weights & Biases if asked to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from probelight.commands.command import Command, command
from probelight.io.errors import UsageError
from probelight.io.package import shipped_path
from probelight.io.wandb import DEFAULT_WANDB, WandbSettings
from probelight.results.run_folder import planned_keys


@command(
    Command(
        example="train.py report runs/curve runs/inoculation --output_dir runs/report",
        options="folder output_dir medals wandb.project wandb.group workspace",
        positional=True,
    )
)
def report(
    folder: list[Path],
    output_dir: Path | None = None,
    medals: Path | None = None,
    wandb: WandbSettings = DEFAULT_WANDB,
    workspace: Path | None = None,
) -> Path:
    """Makes tables, figures and one page from the result files in one or several folders.

    Args:
        folder: Output folders of commands, or folders that contain several of them; all go on one
            page.
        output_dir: Folder of the report. By default the folder itself; needed if you give several.
        medals: YAML file with the rule for medals; by default the shipped one.
        wandb: With a project, all figures and tables are logged as a small run of the group, and
            the page as its artifact.
        workspace: YAML file as in configs/wandb. A workspace with its panels is made in the W&B
            project.

    Returns:
        The path of the HTML page.

    Raises:
        FileNotFoundError: If a folder holds no result that can be read.
        UsageError: If several folders come without an output folder, or a workspace without a
            project.
        ConfigError: If the workspace's file or the rule for medals is malformed.
    """
    from probelight.reports.build import build_report
    from probelight.reports.formats import page_line

    if len(folder) > 1 and output_dir is None:
        raise UsageError("give --output_dir FOLDER for the page of several folders")
    template = None
    if workspace:
        from probelight.integrations.wandb import WorkspaceTemplate, check_library

        if not wandb.project:
            raise UsageError("--workspace needs a W&B project; give --wandb.project NAME")
        check_library()
        template = WorkspaceTemplate.read(Path(shipped_path(str(workspace))))
    page_path = build_report(folder, output_dir or folder[0], medals)
    print(page_line(page_path))
    if wandb.project:
        from probelight.integrations.wandb import publish
        from probelight.runs.plan import StoredPlan, wandb_group

        if not wandb.group and len(folder) == 1 and planned_keys(folder[0]) is not None:
            # The group of a sweep's cells.
            cells_wandb = StoredPlan.read(folder[0]).context.wandb
            wandb = replace(wandb, group=wandb_group(folder[0], cells_wandb))
        publish(page_path.parent, wandb, template)
    return page_path
