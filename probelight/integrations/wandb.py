"""Logs a finished report as a run in Weights & Biases, and makes workspaces from configs/wandb."""

from __future__ import annotations

import csv
import hashlib
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from probelight.io.documents import read_yaml
from probelight.io.errors import ConfigError, UsageError
from probelight.io.escaping import from_cell
from probelight.io.process import is_first_process
from probelight.io.settings import STRICT, typed
from probelight.io.wandb import Courier, WandbSettings, not_online, open_run, wandb_client, wandb_id
from probelight.results.row import Row

if TYPE_CHECKING:
    from wandb_workspaces.reports.v2 import LinePlot, ScatterPlot
    from wandb_workspaces.workspaces import Workspace

STEP = "trainer/global_step"
_COMPARED = ("model", "versus")  # subsets of rows of a comparison


def publish(
    report_dir: Path,
    settings: WandbSettings,
    workspace: WorkspaceTemplate | None = None,
    patience: float = 120.0,
    summary: Mapping[str, float | str] | None = None,
    job_type: str = "report",
) -> bool:
    """Log the figures, tables and page of a report as one run in the sweep's group.

    The run has a fixed id, so a new version of the report continues it. Nothing is raised: problems
    become warnings, and the files of the report remain.

    Args:
        report_dir: Folder that `train.py report` wrote, or the command that `job_type` names.
        settings: Project and group; by default the group is the folder's name.
        workspace: Workspace to make in the project, if W&B is online.
        patience: Seconds to wait for W&B.
        summary: Numbers and words for the summary of the run.
        job_type: What the run is; of another command than a report results.csv is logged too.

    Returns:
        Whether everything was logged in time.
    """
    failures: list[Exception] = []
    kept_offline: list[Exception] = []

    def send_all() -> None:
        try:
            wandb = wandb_client()
            offline = settings.offline()
            name = report_dir.resolve().name
            digest = hashlib.sha256(str(report_dir.resolve()).encode()).hexdigest()[:12]
            run, problem = open_run(
                settings,
                wandb,
                offline,
                group=settings.group or name,
                job_type=job_type,
                name=f"{job_type}-{name}",
                id=wandb_id(f"{job_type}-{name}-{digest}"),
                dir=str(report_dir),
            )
            kept_offline.extend([problem] if problem else [])
            run.summary.update(dict(summary or {}))
            log_report(report_dir, run, wandb, job_type)
            if workspace:
                make_workspace(workspace, settings, offline or problem is not None, wandb)
        except Exception as error:
            failures.append(error)

    subject = "report" if job_type == "report" else f"run of {job_type}"
    courier = Courier()
    courier.send(send_all)
    in_time = courier.wait(patience)
    for problem in kept_offline:
        warnings.warn(not_online(subject, report_dir, problem), RuntimeWarning, stacklevel=2)
    if failures or not in_time:
        reason = failures[0] if failures else f"no answer in {patience:g} s"
        warnings.warn(
            f"the {subject} could not be logged to Weights & Biases: {reason}. It is in "
            f"{report_dir}",
            RuntimeWarning,
            stacklevel=2,
        )
    return in_time and not failures


def publish_results(
    output_dir: str | Path, settings: WandbSettings, job_type: str, rows: Sequence[Row]
) -> None:
    """Log what a command measured without training as one run, if a project is named.

    Its summary has the numbers of all items as `accuracy/PROBE/MODEL`, and behind that the rule if
    it is not the model's own, and the run where several have the same name.
    """
    if not settings.project or not is_first_process():
        return
    named_rows = [
        ("/".join(filter(None, (row.metric, row.probe, subject, row.scoring))), row)
        for row in rows
        for subject in [row.subset.text if row.subset else row.model]
        if not row.perturbation and (row.subset is None or row.subset.kind in _COMPARED)
    ]
    num_named = Counter(name for name, _ in named_rows)
    summary = {
        name if num_named[name] == 1 else f"{name}/{Path(row.run_dir).name}": row.value
        for name, row in named_rows
    }
    publish(Path(output_dir), settings, summary=summary, job_type=job_type)


def log_report(report_dir: Path, run: Any, wandb: Any, job_type: str = "report") -> None:
    """Log figures, tables, the page with its files, and the costs, and end the run."""
    logged: dict[str, Any] = {}
    for path in sorted((report_dir / "figures").glob("*.png")):
        logged[f"figures/{path.stem}"] = wandb.Image(str(path))
    tables = sorted((report_dir / "tables").glob("*.csv"))
    for path in [*tables, report_dir / "results.csv"] if job_type != "report" else tables:
        columns, data = read_table(path)
        logged[f"tables/{path.stem}"] = wandb.Table(columns=columns, data=data)
    run.log(logged)
    if (report_dir / "report.html").exists():
        page = wandb.Artifact(job_type, type="report")
        for name in ("report.html", "report.md"):
            if (path := report_dir / name).exists():
                page.add_file(str(path), name=name)
        if (items := report_dir / "items").is_dir():  # what the page could not hold
            page.add_dir(str(items), name="items")
        run.log_artifact(page)
    run.summary.update(inoculation_costs(report_dir / "tables"))
    run.finish()


def read_table(path: Path) -> tuple[list[str], list[list[float | str | None]]]:
    """Return columns and rows of a csv file; each column is all numbers or all text, as for W&B."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    columns: list[list[float | str | None]] = []
    for index in range(len(header)):
        texts = [from_cell(row[index]) for row in rows]
        try:
            columns.append([float(text) if text else None for text in texts])
        except ValueError:
            columns.append([text or None for text in texts])
    return header, [list(cells) for cells in zip(*columns, strict=True)]


def inoculation_costs(tables_dir: Path) -> dict[str, float]:
    """Return the cost of each line and dose by name, averaged over seeds if there are several."""
    rows: list[dict[str, str]] = []
    for name, chosen_only in (("inoculation_seeds.csv", False), ("inoculation.csv", True)):
        if not rows and (path := tables_dir / name).exists():
            with path.open(encoding="utf-8", newline="") as file:
                table = [{k: from_cell(v) for k, v in row.items()} for row in csv.DictReader(file)]
            rows = [row for row in table if not chosen_only or row["chosen"] == "True"]
    line_columns = ("probe", "report_split", "selection", "original_task", "setup", "model")
    costs = {}
    for row in rows:
        if row["inoculation_cost"] and row["cost_interpretable"] == "True":
            line = "/".join(row[column] for column in line_columns if row.get(column))
            costs[f"inoculation_cost/{line}/k={row['dose']}"] = float(row["inoculation_cost"])
    return costs


def make_workspace(
    template: WorkspaceTemplate, settings: WandbSettings, offline: bool, wandb: Any
) -> None:
    """Make a workspace, or print why there is none."""
    if offline or not settings.project:
        print(f"workspace {template.name}: not made, because W&B is offline")
        return
    workspace = template.built(settings.entity or wandb.Api().default_entity, settings.project)
    workspace.save()
    print(f"workspace {template.name}: {workspace.url}")


@dataclass(frozen=True, kw_only=True)
class PanelTemplate:
    """A panel with `lines` over the steps of each run, or with `points`, one per run."""

    __pydantic_config__: ClassVar = STRICT

    title: str
    x: str = STEP  # metric of the horizontal axis
    lines: tuple[str, ...] = ()  # metrics drawn against it
    points: str = ""  # metric of each run's summary drawn against it
    log_x: bool = False

    def built(self) -> LinePlot | ScatterPlot:
        """Return the panel as an object of W&B's library."""
        import wandb_workspaces.reports.v2 as wr

        if self.points:
            x, y = wr.SummaryMetric(self.x), wr.SummaryMetric(self.points)
            return wr.ScatterPlot(title=self.title, x=x, y=y, log_x=self.log_x)
        return wr.LinePlot(title=self.title, x=self.x, y=list(self.lines), log_x=self.log_x)


@dataclass(frozen=True, kw_only=True)
class SectionTemplate:
    """Panels under one heading."""

    __pydantic_config__: ClassVar = STRICT

    name: str
    panels: tuple[PanelTemplate, ...]


@dataclass(frozen=True, kw_only=True)
class WorkspaceTemplate:
    """A workspace, without the project it is made in."""

    __pydantic_config__: ClassVar = STRICT

    name: str
    sections: tuple[SectionTemplate, ...]

    @classmethod
    def read(cls, path: Path) -> WorkspaceTemplate:
        """Read the template in a file.

        Raises:
            ConfigError: If it cannot be read, if a key is unknown or missing, or if a panel has
                neither or both of `lines` and `points`.
        """
        template = typed(cls, read_yaml(path), str(path), ConfigError)
        for panel in (panel for section in template.sections for panel in section.panels):
            if bool(panel.lines) == bool(panel.points):
                raise ConfigError(
                    f"{path}: the panel {panel.title!r} needs either `lines` or `points`"
                )
        return template

    def built(self, entity: str, project: str) -> Workspace:
        """Return the workspace in a project; `save` sends it."""
        import wandb_workspaces.workspaces as ws

        sections = [
            ws.Section(
                name=section.name, is_open=True, panels=[panel.built() for panel in section.panels]
            )
            for section in self.sections
        ]
        return ws.Workspace(entity=entity, project=project, name=self.name, sections=sections)


def check_library() -> None:
    """Raise UsageError if W&B's library for workspaces is not installed."""
    from importlib.util import find_spec

    if find_spec("wandb_workspaces") is None:
        raise UsageError(
            "--workspace needs W&B's library for workspaces: pip install wandb-workspaces "
            "(or the extra `wandb` of this project)"
        )
