"""A small grid of inoculations on the tiny model and probes, and what tests of it share."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from probelight import cli
from probelight.commands.inoculation.settings import InoculatedProbe, OriginalTask
from probelight.commands.inoculation.sweep import SweepGrid, SweepRow
from probelight.models.registry import ModelSettings
from probelight.runs.context import RunContext
from probelight.runs.settings import TrainerSettings
from probelight.runs.spec import Job

KEPT = {"model.safetensors", "head.safetensors", "predictions.jsonl", "metrics.csv"}
TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False, checkpoint_every=2, threads=1)


@pytest.fixture
def grid(inoculation_config: dict[str, Any], second: InoculatedProbe) -> SweepGrid:
    task = replace(OriginalTask(**inoculation_config["original"]), epochs=1)
    row = SweepRow(
        model="tiny",
        original="colours",
        probe=second,
        doses=[8, 12],
        learning_rates=[1e-3, 1e-4],
        extras=["none", "x1"],
        seeds=[0],
        epochs=1,
        batch_size=8,
    )
    model = ModelSettings(**inoculation_config["model"], kind="transformer")
    return SweepGrid({"tiny": model}, {"colours": task}, [row])


@pytest.fixture
def finished(inoculation_config: dict[str, Any], tmp_path: Path) -> Path:
    output_dir = tmp_path / "out"
    assert run(inoculation_config, output_dir, tmp_path) == 0
    return output_dir


@pytest.fixture
def mirror(tiny_probes: Path) -> str:
    return str(tiny_probes / "mirror")


@pytest.fixture
def task(tiny_probes: Path) -> OriginalTask:
    """An original task that reports on a share of its 80 train items."""
    return OriginalTask(
        "colours",
        [str(tiny_probes / "first.yaml")],
        report_share=0.2,
        selection_share=0.1,
        reserved_share=0.3,
        epochs=2,
        learning_rate=1e-3,
        seed=5,
    )


@pytest.fixture
def second(tiny_probes: Path) -> InoculatedProbe:
    return InoculatedProbe(str(tiny_probes / "second.yaml"), selection_items=20)


@pytest.fixture
def context(mirror: str) -> RunContext:
    return run_context(mirror)


@pytest.fixture
def second_worded(tiny_probes: Path, tmp_path: Path) -> Path:
    """The second probe with two other wordings."""
    config = yaml.safe_load((tiny_probes / "second.yaml").read_text())
    config["base_url"] = "https://example.org/tiny/"
    config |= {"arguments": r"(\w+) (.+)", "phrasings": {"one": "of {2} {1}", "two": "{2} , {1}"}}
    path = tmp_path / "second.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def run_context(mirror: str) -> RunContext:
    return RunContext(TRAINER, mirror=mirror)


def with_a_line_less(mirror: str, copy: Path, probe: str) -> Path:
    """The train file of a probe in a copy of the mirror, without its last line."""
    shutil.copytree(mirror, copy)
    path = copy / "tiny" / probe / "train.jsonl"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    return path


def kinds(cells: list[Job]) -> list[str]:
    return [cell.spec.protocol for cell in cells]


def run(config: dict[str, Any], output_dir: Path, tmp_path: Path) -> int:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    return cli.main(["inoculate", "--config", str(path), "--output_dir", str(output_dir)])


def assert_same(folder_a: Path, folder_b: Path) -> None:
    first, second = outcome(folder_a), outcome(folder_b)
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []


def outcome(folder: Path) -> dict[str, Any]:
    """Everything that must not depend on an interruption."""
    contents: dict[str, Any] = {"results": (folder / "results.csv").read_bytes()}
    for path in sorted(folder.glob("runs/*/**/*")):
        if path.name in KEPT:
            contents[str(path.relative_to(folder))] = path.read_bytes()
    return contents
