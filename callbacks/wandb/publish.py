"""A report as one small run in Weights & Biases: its figures, its tables, its page."""

from __future__ import annotations

import csv
import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from probelight.callbacks.wandb.courier import Courier
from probelight.callbacks.wandb.settings import WandbSettings, not_online, open_run, wandb_client, wandb_id
from probelight.callbacks.wandb.workspace import WorkspaceTemplate
from probelight.io.escaping import from_cell

PAGE = ("report.html", "report.md")
ITEMS = "items"  # what the page could not hold
PATIENCE = 120.0  # seconds: nothing waits for a report but the person who asked for it


def publish(
    report_dir: Path,
    settings: WandbSettings,
    workspace: WorkspaceTemplate | None = None,
    patience: float = PATIENCE,
    client: Callable[[], Any] | None = None,
) -> bool:
    """Logs all figures and tables of a report, and the page as an artifact, in the sweep's group.

    The run has a fixed id, so a report that is made again goes on in the same one. It never
    raises: what went wrong is a warning, and the files of the report are there all the same.

    Args:
        report_dir: Where `train.py report` wrote `figures/` and `tables/`.
        settings: Project and group; the folder's name stands for a missing group.
        workspace: A workspace to make in the project; online alone.
        patience: Seconds to wait for W&B.
        client: Gives the wandb package; a parameter for tests.

    Returns:
        Whether everything was logged in time.
    """
    failures: list[Exception] = []
    kept_offline: list[Exception] = []

    def act() -> None:
        try:
            talk = (client or wandb_client)()
            offline = settings.offline()
            run, problem = _begin(report_dir, settings, offline, talk)
            kept_offline.extend([problem] if problem else [])
            _log(report_dir, run, talk)
            if workspace:
                _make(workspace, settings, offline or problem is not None, talk)
        except Exception as error:
            failures.append(error)

    talker = Courier()
    talker.send(act)
    in_time = talker.wait(patience)
    for problem in kept_offline:
        warnings.warn(not_online("report", report_dir, problem), RuntimeWarning, stacklevel=2)
    if failures or not in_time:
        reason = failures[0] if failures else f"no answer in {patience:g} s"
        warnings.warn(
            f"Weights & Biases did not take the report: {reason}. It is in {report_dir}",
            RuntimeWarning,
            stacklevel=2,
        )
    return in_time and not failures


def _begin(
    report_dir: Path, settings: WandbSettings, offline: bool, wandb: Any
) -> tuple[Any, Exception | None]:
    name = report_dir.resolve().name
    digest = hashlib.sha256(str(report_dir.resolve()).encode()).hexdigest()[:12]
    return open_run(
        settings,
        wandb,
        offline,
        group=settings.group or name,
        job_type="report",
        name=f"report-{name}",
        id=wandb_id(f"report-{name}-{digest}"),
        dir=str(report_dir),
    )


def _log(report_dir: Path, run: Any, wandb: Any) -> None:
    logged: dict[str, Any] = {}
    for path in sorted((report_dir / "figures").glob("*.png")):
        logged[f"figures/{path.stem}"] = wandb.Image(str(path))
    for path in sorted((report_dir / "tables").glob("*.csv")):
        columns, data = read_table(path)
        logged[f"tables/{path.stem}"] = wandb.Table(columns=columns, data=data)
    run.log(logged)
    run.log_artifact(_page(report_dir, wandb))
    run.summary.update(_costs(report_dir / "tables"))
    run.finish()


def _page(report_dir: Path, wandb: Any) -> Any:
    """The page with what lies beside it: whoever downloads it can open it."""
    artifact = wandb.Artifact("report", type="report")
    for name in PAGE:
        if (path := report_dir / name).exists():
            artifact.add_file(str(path), name=name)
    if (items := report_dir / ITEMS).is_dir():
        artifact.add_dir(str(items), name=ITEMS)
    return artifact


def _make(
    workspace: WorkspaceTemplate, settings: WandbSettings, offline: bool, wandb: Any
) -> None:
    """Makes a workspace, or says why there is none."""
    if offline or not settings.project:
        print(f"workspace {workspace.name}: not made, as W&B is offline here")
        return
    entity = settings.entity or wandb.Api().default_entity
    made = workspace.built(entity, settings.project)
    made.save()
    print(f"workspace {workspace.name}: {made.url}")


def read_table(path: Path) -> tuple[list[str], list[list[float | str | None]]]:
    """Columns and rows of a report's csv file, each column all numbers or all text."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    columns = [_column([from_cell(row[place]) for row in rows]) for place in range(len(header))]
    return header, [list(cells) for cells in zip(*columns, strict=True)]


def _column(texts: Sequence[str]) -> list[float | str | None]:
    # W&B refuses a column with values of several types, and draws numbers only from numbers.
    try:
        return [float(text) if text else None for text in texts]
    except ValueError:
        return [text or None for text in texts]


def _costs(tables_dir: Path) -> Mapping[str, float]:
    """Cost of each line and dose, by name: the mean over seeds where there are several."""
    means = _rows(tables_dir / "inoculation_seeds.csv")
    rows = means or [r for r in _rows(tables_dir / "inoculation.csv") if r["chosen"] == "True"]
    return {
        f"inoculation_cost/{_line(row)}/k={row['dose']}": float(row["inoculation_cost"])
        for row in rows
        if row["inoculation_cost"] and row["cost_interpretable"] == "True"
    }


def _line(row: Mapping[str, str]) -> str:
    """What a cost is of: two lines of a report never have the same."""
    parts = ("probe", "report_split", "selection", "original_task", "setup", "model")
    return "/".join(row[part] for part in parts if row.get(part))


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [{k: from_cell(v) for k, v in row.items()} for row in csv.DictReader(file)]
