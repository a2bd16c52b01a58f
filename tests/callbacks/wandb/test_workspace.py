from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probelight.callbacks.wandb import publish, workspace
from probelight.callbacks.wandb.settings import WandbSettings
from probelight.callbacks.wandb.workspace import WorkspaceTemplate
from tests.fixtures.checkout import ROOT
from probelight.protocols.report import report
from probelight.io.errors import ConfigError, UsageError

TEMPLATES = sorted((ROOT / "configs" / "wandb").glob("*.yaml"))
PANEL = "name: n\nsections:\n- name: s\n  panels:\n  - title: t\n"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_each_template_makes_the_panels_that_it_names(path: Path) -> None:
    template = WorkspaceTemplate.read(path)
    sent = template.built("team", "project")._to_model()
    assert (sent.entity, sent.project, sent.display_name) == ("team", "project", template.name)
    bank = sent.spec.section.panel_bank_config
    assert [section.name for section in bank.sections if section.panels] == [
        section.name for section in template.sections
    ]
    panels = [panel for section in bank.sections for panel in section.panels]
    assert [panel.config.chart_title for panel in panels] == [
        panel.title for section in template.sections for panel in section.panels
    ]


def test_what_is_drawn_is_what_runs_log() -> None:
    sent = WorkspaceTemplate.read(ROOT / "configs/wandb/inoculation.yaml").built("e", "p")
    panels = [panel for one in sent.sections for panel in one.panels]
    lines = {name for panel in panels if isinstance(panel.y, list) for name in panel.y}
    assert lines == {
        "val/probe_accuracy", "val/original_accuracy", "val/aggregate", "inoculation_cost",
        "learning_curve/probe_accuracy", "learning_curve/original_accuracy",
    }  # fmt: skip
    [curve] = [panel for panel in panels if panel.title.startswith("Accuracy against")]
    assert (curve.x, curve.log_x) == ("learning_curve/num_examples", True)
    [given] = [panel for panel in panels if panel.title.startswith("What inoculation gave")]
    assert (given.x.name, given.y.name) == ("report/original_accuracy", "report/probe_accuracy")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PANEL + "    line: [a]\n", "line"),
        (PANEL, "needs either `lines` or `points`"),
        (PANEL + "    lines: [a]\n    points: b\n", "needs either `lines` or `points`"),
        ("name: n\n", "sections"),
    ],
)
def test_a_mistake_in_a_template_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said) as caught:
        WorkspaceTemplate.read(path)
    assert str(path) in str(caught.value)


def test_a_workspace_needs_a_project_and_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--wandb.project"):
        report([Path("none")], workspace=TEMPLATES[0])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install wandb-workspaces"):
        workspace.check_library()


def test_it_is_made_online_in_the_project_of_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[tuple[str, str]] = []

    def built(self: WorkspaceTemplate, entity: str, project: str) -> Any:
        made.append((entity, project))
        return SimpleNamespace(save=lambda: None, url="https://w.example/x")

    monkeypatch.setattr(WorkspaceTemplate, "built", built)
    template = WorkspaceTemplate(name="n", sections=())
    client = SimpleNamespace(Api=lambda: SimpleNamespace(default_entity="me"))
    publish._make(template, WandbSettings("p"), False, client)
    publish._make(template, WandbSettings("p", entity="team"), False, client)
    publish._make(template, WandbSettings("p"), True, client)
    assert made == [("me", "p"), ("team", "p")]
    said = capsys.readouterr().out.splitlines()
    assert said == [
        "workspace n: https://w.example/x",
        "workspace n: https://w.example/x",
        "workspace n: not made, as W&B is offline here",
    ]
