"""A report in Weights & Biases, and the workspaces that are made there."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest

from probelight.commands.report import report
from probelight.integrations import wandb as published
from probelight.integrations.wandb import (
    WorkspaceTemplate,
    inoculation_costs,
    publish,
    publish_results,
    read_table,
)
from probelight.io.errors import ConfigError, UsageError
from probelight.io.wandb import WandbSettings
from probelight.results.row import Row, Subset
from tests.fixtures.checkout import ROOT

SETTINGS = WandbSettings(project="p", mode="offline")
ONLINE = WandbSettings(project="p", mode="online")


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is used of the wandb package, with a server that answers, for one run."""
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setattr("probelight.io.wandb.check_server", lambda wandb: None)
    wandb = Mock(spec_set=["init", "Artifact", "Image", "Table"])
    monkeypatch.setattr(published, "wandb_client", lambda: wandb)
    wandb.Image.side_effect = lambda path: ("image", Path(path).read_bytes())
    wandb.Table.side_effect = lambda columns, data: (columns, data)
    wandb.init.return_value = Mock(spec_set=["log", "log_artifact", "summary", "finish"])
    wandb.init.return_value.summary = {}
    return wandb


@pytest.fixture
def report_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "released"
    for name in ("figures", "tables"):
        (folder / name).mkdir(parents=True)
    (folder / "figures" / "inoculation.png").write_bytes(b"plot")
    (folder / "figures" / "arrows.png").write_bytes(b"arrows")
    (folder / "figures" / "arrows.svg").write_text("<svg/>", encoding="utf-8")
    (folder / "report.html").write_text("<!DOCTYPE html>", encoding="utf-8")
    (folder / "items").mkdir()
    seeds = (
        "model,probe,dose,num_seeds,cost_interpretable,inoculation_cost,original_task\n"
        "dictionary-lm,hypernymy,100,3,True,0.012,definitions\n"
        "dictionary-lm,hypernymy,1000,3,False,0.03,definitions\n"
        "dictionary-lm,hypernymy,100,3,True,-0.01,science\n"
    )
    (folder / "tables" / "inoculation_seeds.csv").write_text(seeds, encoding="utf-8")
    return folder


def test_figures_tables_and_costs_are_one_small_run(report_dir: Path, wandb: Any) -> None:
    assert publish(report_dir, SETTINGS, summary={"capitals/verdict": "forgot"})
    expected = {"group": "released", "job_type": "report", "mode": "offline"}
    assert expected.items() <= wandb.init.call_args.kwargs.items()
    run = wandb.init.return_value
    [logged] = run.log.call_args.args
    assert logged["figures/inoculation"] == ("image", b"plot")
    columns, data = logged["tables/inoculation_seeds"]
    assert columns[2:4] == ["dose", "num_seeds"]
    assert data[0] == ["dictionary-lm", "hypernymy", 100.0, 3.0, "True", 0.012, "definitions"]
    assert {*logged} == {"figures/arrows", "figures/inoculation", "tables/inoculation_seeds"}
    wandb.Artifact.assert_called_once_with("report", type="report")
    page = report_dir / "report.html", report_dir / "items"
    added = [call(str(path), name=path.name) for path in page]
    artifact = wandb.Artifact.return_value
    assert artifact.add_file.mock_calls + artifact.add_dir.mock_calls == added
    # A cost that cannot be read is not in the summary.
    assert run.summary == {
        "capitals/verdict": "forgot",
        "inoculation_cost/hypernymy/definitions/dictionary-lm/k=100": 0.012,
        "inoculation_cost/hypernymy/science/dictionary-lm/k=100": -0.01,
    }
    run.finish.assert_called_once()


def compared(metric: str, system: str, block: str, **columns: Any) -> Row:
    subset = Subset.of("versus" if "−" in system else "model", system)
    return Row(metric=metric, probe="age", subset=subset, run_dir=f"runs/{block}", **columns)


def test_the_scores_of_a_command_are_a_run_with_its_table(
    tmp_path: Path, wandb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "scores"
    folder.mkdir()
    (folder / "results.csv").write_text("metric,value\naccuracy,0.5\n", encoding="utf-8")
    row = Row(
        model="bert", probe="age", metric="accuracy", value=0.5, split="dev", run_dir="runs/d"
    )
    rows = [
        row,
        replace(row, scoring="sum", value=0.25),
        replace(row, metric="auc", value=0.75),
        replace(row, subset=Subset.of("template", "1"), value=0.0),  # a part of the items
        replace(row, perturbation="shuffled", value=0.0),
        replace(row, probe="size"),
        replace(row, probe="size", split="test", value=1.0, run_dir="runs/t"),
    ]
    publish_results(str(folder), SETTINGS, "zero-shot", rows)
    about = {"group": "scores", "job_type": "zero-shot", "name": "zero-shot-scores"}
    assert about.items() <= wandb.init.call_args.kwargs.items()
    run = wandb.init.return_value
    assert run.summary == {
        "accuracy/age/bert": 0.5,
        "accuracy/age/bert/sum": 0.25,
        "auc/age/bert": 0.75,
        "accuracy/size/bert/d": 0.5,
        "accuracy/size/bert/t": 1.0,
    }
    run.log.assert_called_once_with({"tables/results": (["metric", "value"], [["accuracy", 0.5]])})
    run.log_artifact.assert_not_called()  # there is no page
    (folder / "report.html").write_text("<!DOCTYPE html>", encoding="utf-8")
    blocks = [
        compared("accuracy", "a", "one", value=0.5),
        compared("p_value", "a − b", "one", value=0.01),
        compared("accuracy", "a", "two", value=0.75),
    ]
    run.summary.clear()
    publish_results(folder, SETTINGS, "compare", blocks)
    assert run.summary == {
        "accuracy/age/a/one": 0.5,
        "p_value/age/a − b": 0.01,
        "accuracy/age/a/two": 0.75,
    }
    wandb.Artifact.assert_called_once_with("compare", type="report")
    assert wandb.init.call_args.kwargs["id"].startswith("compare-scores-")
    # Off by default, and of several processes the first one logs.
    publish_results(folder, WandbSettings(), "compare", blocks)
    monkeypatch.setattr(published, "is_first_process", lambda: False)
    publish_results(folder, SETTINGS, "compare", blocks)
    assert wandb.init.call_count == 2


def test_the_costs_of_one_seed_are_those_of_the_chosen_runs(report_dir: Path) -> None:
    tables = report_dir / "tables"
    (tables / "inoculation_seeds.csv").unlink()
    (tables / "inoculation.csv").write_text(
        "model,probe,report_split,dose,chosen,cost_interpretable,inoculation_cost\n"
        "ESIM,hypernymy,test,100,True,True,0.02\nESIM,hypernymy,test,100,False,True,0.05\n"
    )
    assert inoculation_costs(tables) == {"inoculation_cost/hypernymy/test/ESIM/k=100": 0.02}


def test_a_report_made_again_is_the_same_run(report_dir: Path, wandb: Any) -> None:
    for _ in range(2):
        publish(report_dir, WandbSettings("p", group="g", mode="online"))
    first, again = wandb.init.call_args_list
    assert first == again
    assert (first.kwargs["resume"], first.kwargs["group"]) == ("allow", "g")


def test_a_column_is_all_numbers_or_all_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n,2\n", encoding="utf-8")
    assert read_table(path) == (["a", "b"], [[1.0, "x"], [None, "2"]])


def test_a_report_that_cannot_be_online_is_written_to_disk(
    report_dir: Path,
    wandb: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    refuse = Mock(side_effect=ConnectionError("https://w.example does not answer"))
    monkeypatch.setattr("probelight.io.wandb.check_server", refuse)
    with pytest.warns(RuntimeWarning, match="does not answer.*send it later with `wandb sync`"):
        assert publish(report_dir, ONLINE, WorkspaceTemplate(name="n", sections=()))
    assert wandb.init.call_args.kwargs["mode"] == "offline"
    wandb.init.return_value.finish.assert_called_once()
    assert "workspace n: not made" in capsys.readouterr().out


def test_failing_and_hanging_are_a_warning(report_dir: Path, wandb: Any) -> None:
    release = threading.Event()
    wandb.init.side_effect = ConnectionError("no route to host")
    with pytest.warns(RuntimeWarning, match="no route to host"):
        assert not publish(report_dir, SETTINGS)
    wandb.init.side_effect = lambda **arguments: release.wait(30)
    start = time.perf_counter()
    with pytest.warns(RuntimeWarning, match=r"no answer in 0\.2 s"):
        assert not publish(report_dir, SETTINGS, patience=0.2)
    assert time.perf_counter() - start < 5
    release.set()


TEMPLATES = sorted((ROOT / "configs" / "wandb").glob("*.yaml"))
PANEL = "name: n\nsections:\n- name: s\n  panels:\n  - title: t\n"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_each_template_makes_the_panels_that_it_names(path: Path) -> None:
    template = WorkspaceTemplate.read(path)
    sent = template.built("team", "project")._to_model()
    assert (sent.entity, sent.project, sent.display_name) == ("team", "project", template.name)
    bank = sent.spec.section.panel_bank_config
    panels_by_section = [
        (section.name, [panel.config.chart_title for panel in section.panels])
        for section in bank.sections
        if section.panels
    ]
    named = [(s.name, [panel.title for panel in s.panels]) for s in template.sections]
    assert panels_by_section == named


def test_what_is_drawn_is_what_runs_log() -> None:
    sent = WorkspaceTemplate.read(ROOT / "configs/wandb/inoculation.yaml").built("e", "p")
    panels = [panel for section in sent.sections for panel in section.panels]
    lines = {name for panel in panels if isinstance(panel.y, list) for name in panel.y}
    assert lines == {
        "val/probe_accuracy", "val/original_accuracy", "val/aggregate", "inoculation_cost",
        "learning_curve/probe_accuracy", "learning_curve/original_accuracy",
    }  # fmt: skip
    [curve] = [panel for panel in panels if panel.title.startswith("Accuracy against")]
    assert (curve.x, curve.log_x) == ("learning_curve/num_examples", True)
    [scatter] = [panel for panel in panels if panel.title.startswith("Gain and cost of")]
    assert (scatter.x.name, scatter.y.name) == ("report/original_accuracy", "report/probe_accuracy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PANEL + "    line: [a]\n", "line"),
        (PANEL, "needs either `lines` or `points`"),
        (PANEL + "    lines: [a]\n    points: b\n", "needs either `lines` or `points`"),
        ("name: n\n", "sections"),
    ],
)
def test_a_mistake_in_a_template_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        WorkspaceTemplate.read(path)
    assert str(path) in str(caught.value)


def test_a_workspace_needs_a_project_and_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"--wandb\.project"):
        report([Path("none")], workspace=TEMPLATES[0])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install wandb-workspaces"):
        published.check_library()


def test_it_is_made_online_in_the_project_of_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[tuple[str, str]] = []

    def built(self: WorkspaceTemplate, entity: str, project: str) -> Any:
        calls.append((entity, project))
        return SimpleNamespace(save=lambda: None, url="https://w.example/x")

    monkeypatch.setattr(WorkspaceTemplate, "built", built)
    template = WorkspaceTemplate(name="n", sections=())
    client = SimpleNamespace(Api=lambda: SimpleNamespace(default_entity="me"))
    published.make_workspace(template, WandbSettings("p"), False, client)
    published.make_workspace(template, WandbSettings("p", entity="team"), False, client)
    published.make_workspace(template, WandbSettings("p"), True, client)
    assert calls == [("me", "p"), ("team", "p")]
    outcomes = ["https://w.example/x", "https://w.example/x", "not made, because W&B is offline"]
    assert capsys.readouterr().out.splitlines() == [f"workspace n: {text}" for text in outcomes]
