"""The commands under `--engine.kind ray`: the results of the same command without it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from probelight import cli
from probelight.runs.plan import PlannedJob, State, statuses

pytestmark = pytest.mark.slow

FIXED = ["--trainer.accelerator=cpu", "--trainer.threads=1"]
RAY = ["--engine.kind=ray", "--engine.cpus_per_cell=1"]


def twice(command: Sequence[str], tmp_path: Path) -> tuple[Path, Path]:
    """The command here and on Ray, each in a folder of its own."""
    local, ray = tmp_path / "here", tmp_path / "ray"
    assert cli.main([*command, *FIXED, f"--output_dir={local}"]) == 0
    assert cli.main([*command, *FIXED, *RAY, f"--output_dir={ray}"]) == 0
    return local, ray


def assert_same(local: Path, ray: Path) -> None:
    assert (ray / "results.csv").read_text() == (local / "results.csv").read_text()
    cells = [PlannedJob(path.name, "") for path in (ray / "runs").iterdir()]
    states = statuses(ray, cells)
    assert {status.state for status in states} == {State.DONE}
    assert all(status.attempt is not None and status.attempt.number == 1 for status in states)
    assert not list(local.glob("runs/*/attempt.json"))  # nothing of Ray where none was asked for


def test_probes_are_scored_as_in_one_process(tmp_path: Path) -> None:
    command = ["zero-shot", "--probes=age_small,antonym_small"]
    assert_same(*twice(command, tmp_path))


def test_an_original_task_and_its_inoculation_are_two_cells(
    tmp_path: Path, inoculation_config: dict[str, Any]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(inoculation_config))
    local, ray = twice(["inoculate", f"--config={path}"], tmp_path)
    assert_same(local, ray)
    assert len(list(ray.glob("runs/*"))) == 2
