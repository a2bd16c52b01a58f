"""A workspace of Weights & Biases from a file of configs/wandb, made through W&B's own library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from probelight.io.errors import ConfigError, UsageError
from probelight.io.typed import STRICT, typed
from probelight.io.yaml_file import read_yaml

if TYPE_CHECKING:
    from wandb_workspaces.reports.v2 import LinePlot, ScatterPlot
    from wandb_workspaces.workspaces import Workspace

STEP = "trainer/global_step"


@dataclass(frozen=True, kw_only=True)
class PanelTemplate:
    """A panel: `lines` over the steps of each run, or `points`, one a run.

    Attributes:
        title: What stands above it.
        x: The metric of the horizontal axis.
        lines: The metrics that are drawn against it.
        points: The metric of each run's summary that is drawn against it.
        log_x: Whether the horizontal axis is logarithmic.
    """

    __pydantic_config__: ClassVar = STRICT

    title: str
    x: str = STEP
    lines: tuple[str, ...] = ()
    points: str = ""
    log_x: bool = False

    def built(self) -> LinePlot | ScatterPlot:
        """The panel as W&B's library has it."""
        import wandb_workspaces.reports.v2 as wr

        if self.points:
            x, y = wr.SummaryMetric(self.x), wr.SummaryMetric(self.points)
            return wr.ScatterPlot(title=self.title, x=x, y=y, log_x=self.log_x)
        return wr.LinePlot(title=self.title, x=self.x, y=list(self.lines), log_x=self.log_x)


@dataclass(frozen=True, kw_only=True)
class SectionTemplate:
    """Panels below one heading."""

    __pydantic_config__: ClassVar = STRICT

    name: str
    panels: tuple[PanelTemplate, ...]


@dataclass(frozen=True, kw_only=True)
class WorkspaceTemplate:
    """A workspace without the project that it is made in."""

    __pydantic_config__: ClassVar = STRICT

    name: str
    sections: tuple[SectionTemplate, ...]

    @classmethod
    def read(cls, path: Path) -> WorkspaceTemplate:
        """The template in a file.

        Raises:
            ConfigError: If it cannot be read, a key is unknown or missing, or a panel has both
                `lines` and `points`, or neither.
        """
        template = typed(cls, read_yaml(path), str(path), ConfigError)
        for panel in (panel for section in template.sections for panel in section.panels):
            if bool(panel.lines) == bool(panel.points):
                raise ConfigError(
                    f"{path}: the panel {panel.title!r} needs either `lines` or `points`"
                )
        return template

    def built(self, entity: str, project: str) -> Workspace:
        """The workspace in a project; `save` sends it."""
        import wandb_workspaces.workspaces as ws

        sections = [
            ws.Section(
                name=section.name, is_open=True, panels=[panel.built() for panel in section.panels]
            )
            for section in self.sections
        ]
        return ws.Workspace(entity=entity, project=project, name=self.name, sections=sections)


def check_library() -> None:
    """Refuses a workspace where W&B's library for them is not installed.

    Raises:
        UsageError: If it is not there.
    """
    from importlib.util import find_spec

    if find_spec("wandb_workspaces") is None:
        raise UsageError(
            "--workspace needs W&B's library for workspaces: pip install wandb-workspaces "
            "(or the extra `wandb` of this project)"
        )
