"""Data, contexts and commands of small curves on `curve_probes`."""

from __future__ import annotations

from pathlib import Path

import pytest

from probelight.commands.curve.data import CurveData, load_curve_data
from probelight.commands.curve.settings import CurveSettings, ProbeOptions
from probelight.runs.context import RunContext
from probelight.runs.settings import TrainerSettings

TRAINER = TrainerSettings(accelerator="cpu", progress_bar=False)


@pytest.fixture
def context(curve_probes: Path) -> RunContext:
    return RunContext(TRAINER, mirror=str(curve_probes / "mirror"))


@pytest.fixture
def pairs(curve_probes: Path) -> CurveData:
    return load(curve_probes, "pairs")


def load(folder: Path, name: str, **settings: object) -> CurveData:
    grid = CurveSettings(**settings)  # type: ignore[arg-type]
    path = str(folder / f"{name}.yaml")
    return load_curve_data(RunContext(mirror=str(folder / "mirror")), path, grid, ProbeOptions())


def curve_command(probes: Path, out: Path, *options: str) -> list[str]:
    quiet = ["--trainer.accelerator=cpu", "--trainer.progress_bar=false"]
    return ["curve", f"--mirror={probes / 'mirror'}", f"--output_dir={out}", *quiet, *options]
